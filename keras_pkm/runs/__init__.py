"""A run on disk: its files, its presets, its recipe, and errors for users.

Training and export both use it, so that neither needs the other.
"""
