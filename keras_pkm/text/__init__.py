"""The layout of a model's inputs: special tokens and windows."""
