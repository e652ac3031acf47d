"""Graphs of stock operations: tokens, windows, the encoder, its tables."""
