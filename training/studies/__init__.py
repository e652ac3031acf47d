"""Comparisons: candidates, settings and seeds become trials, tables, plots."""
