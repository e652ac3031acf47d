"""A run on disk: its files, its presets, its recipe, and errors of its user."""
