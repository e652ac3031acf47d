"""SavedModels, their signatures and their model cards."""
