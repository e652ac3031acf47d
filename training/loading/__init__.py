"""Loads the model that a flag names."""
