"""Speed and memory side by side with others, and what is too long for tests."""
