"""The search over product keys and the read: pure functions of tensors."""

from keras_pkm.ops.embedding_bag import embedding_bag
from keras_pkm.ops.implementation import use_implementation
from keras_pkm.ops.portable_reads import portable_reads
from keras_pkm.ops.product_key_search import product_key_search

__all__ = [
    "embedding_bag",
    "portable_reads",
    "product_key_search",
    "use_implementation",
]
