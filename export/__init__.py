"""SavedModels that any TensorFlow program loads, without this package."""
