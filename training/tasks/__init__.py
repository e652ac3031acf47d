"""The tasks to fine-tune on: their files, labels and scores."""
