"""Measures language models on text: perplexity and memory usage."""
