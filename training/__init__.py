"""Pretraining with product-key memory: data, recipes and the command."""
