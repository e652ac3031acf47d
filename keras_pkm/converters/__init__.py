"""Checkpoints of other libraries: tables of names, and arrays.

`from_preset` of models reads them by the hook in
`keras_pkm.models.checkpoint_readers`.
"""

from keras_pkm.converters.hugging_face import HuggingFaceDirectory

__all__ = ["HuggingFaceDirectory"]
