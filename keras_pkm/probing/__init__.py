"""Measures what models, and exported models, read in their memories."""
