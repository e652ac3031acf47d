"""Smaller value tables, and their effect on the model."""
