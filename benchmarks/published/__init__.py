"""Measures the figures of the README and the docs, and writes their tables."""
