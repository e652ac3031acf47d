"""Perplexity, memory reads, and how sure a difference is."""
