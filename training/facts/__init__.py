"""Facts that models learn: random facts, and facts as text."""
