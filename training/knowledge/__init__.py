"""How many facts a model can know."""
