"""Smaller value tables, and what they change."""
