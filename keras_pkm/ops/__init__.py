"""The search over product keys, the read, and what tables are."""

from keras_pkm.ops.embedding_bag import embedding_bag
from keras_pkm.ops.implementation import use_implementation
from keras_pkm.ops.portable_reads import portable_reads
from keras_pkm.ops.product_key_search import product_key_search
from keras_pkm.ops.value_tables import mark_as_table

__all__ = [
    "embedding_bag",
    "mark_as_table",
    "portable_reads",
    "product_key_search",
    "use_implementation",
]
