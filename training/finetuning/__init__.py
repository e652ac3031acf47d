"""Fine-tuning: recipe, tasks, seeds and results."""
