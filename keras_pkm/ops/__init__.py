"""Pure functions of tensors: the search over product keys and the read."""

from keras_pkm.ops.embedding_bag import embedding_bag
from keras_pkm.ops.product_key_search import product_key_search

__all__ = ["embedding_bag", "product_key_search"]
