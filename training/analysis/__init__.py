"""Shows how a model uses its memories: what is read, measured and drawn."""
