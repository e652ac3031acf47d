"""A run on disk: the names of its files, its recipe, and errors for users."""
