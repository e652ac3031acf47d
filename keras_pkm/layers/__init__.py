"""Keras layers: memories, their tables, and the blocks around them."""

from keras_pkm.layers.fact_memory import FactMemory
from keras_pkm.layers.masked_batch_normalization import MaskedBatchNormalization
from keras_pkm.layers.memory import Memory
from keras_pkm.layers.memory_block import MemoryBlock
from keras_pkm.layers.ngram_memory import NGramMemory
from keras_pkm.layers.pkm_transformer_encoder import PKMTransformerEncoder
from keras_pkm.layers.product_key_memory import ProductKeyMemory
from keras_pkm.layers.value_table import ValueTable

__all__ = [
    "FactMemory",
    "MaskedBatchNormalization",
    "Memory",
    "MemoryBlock",
    "NGramMemory",
    "PKMTransformerEncoder",
    "ProductKeyMemory",
    "ValueTable",
]
