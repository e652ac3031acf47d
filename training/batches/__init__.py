"""From packed rows to batches, as a function of the step."""
