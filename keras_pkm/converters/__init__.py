"""Readers for checkpoints of other libraries."""

from keras_pkm.converters.hugging_face import HuggingFaceDirectory

__all__ = ["HuggingFaceDirectory"]
