"""Facts that models learn: random ones, and facts as text."""
