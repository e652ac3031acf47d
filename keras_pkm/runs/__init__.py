"""A run on disk: its files, its presets, its recipe, and its users' errors.

It stands below training and export, so that neither needs the other.
"""
