"""Measures time and memory, and prints tables of both."""
