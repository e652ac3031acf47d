"""Analyzes how a model uses its memories: reads, measurements, plots."""
