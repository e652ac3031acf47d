"""The tasks for fine-tuning: their files, labels and scores."""
