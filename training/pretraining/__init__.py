"""Pretraining: recipe, checks, data, stages, logs and results."""
