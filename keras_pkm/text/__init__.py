"""How text is laid out as a model's inputs: special tokens, windows."""
