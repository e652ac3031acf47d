"""Measures masked language models on text: perplexity, use of memories."""
