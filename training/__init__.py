"""Trains, measures and teaches models: the commands and their parts."""
