"""Graphs of stock operations for tokens, windows, encoder and tables."""
