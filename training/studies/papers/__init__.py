"""The paper's comparison, made of the commands."""
