"""The trained model to export, and what is known of its run."""
