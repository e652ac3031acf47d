"""The trained model to export, with its run's recipe and results."""
