"""Readers for checkpoints of other libraries.

The models' `from_preset` finds them through the hook in
`keras_pkm.models.checkpoint_readers`.
"""

from keras_pkm.converters.hugging_face import HuggingFaceDirectory

__all__ = ["HuggingFaceDirectory"]
