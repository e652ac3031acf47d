"""Turns packed rows into batches, as a function of the step."""
