"""Shared by the commands: the model of a run, errors that name flags."""
