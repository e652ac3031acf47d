"""Measures how many facts a model can know."""
