"""Teaches a trained model something new, and shows what it forgets."""
