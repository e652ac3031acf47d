"""Keras layers: the memory, its batch norm, and the blocks around it."""

from keras_pkm.layers.masked_batch_normalization import MaskedBatchNormalization
from keras_pkm.layers.memory_block import MemoryBlock
from keras_pkm.layers.pkm_transformer_encoder import PKMTransformerEncoder
from keras_pkm.layers.product_key_memory import ProductKeyMemory

__all__ = [
    "MaskedBatchNormalization",
    "MemoryBlock",
    "PKMTransformerEncoder",
    "ProductKeyMemory",
]
