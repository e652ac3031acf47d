"""The SavedModels, their signatures and their model card."""
