"""Compares ways to teach a model: what each learns, and what it forgets."""
