"""Measures perplexity, memory reads, and the certainty of differences."""
