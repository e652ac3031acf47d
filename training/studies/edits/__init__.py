"""Compares ways to teach facts to a finished language model."""
