"""A memory with one whole key a slot, without product keys."""

import keras
from keras import ops

from keras_pkm.ops import embedding_bag


class FlatMemory(keras.layers.Layer):
    """A memory in which every token scores the keys of all slots.

    Otherwise it is `keras_pkm.layers.ProductKeyMemory` without query
    normalization.
    """

    def __init__(self, num_slots, num_heads=4, top_k=32, key_dim=256):
        super().__init__()
        self.num_slots = num_slots
        self.num_heads = num_heads
        self.top_k = top_k
        self.key_dim = key_dim

    def build(self, inputs_shape):
        width = inputs_shape[-1]
        self.query_projection = keras.layers.Dense(
            self.num_heads * self.key_dim
        )
        self.query_projection.build(inputs_shape)
        limit = self.key_dim**-0.5
        self.keys = self.add_weight(
            shape=(self.num_heads, self.num_slots, self.key_dim),
            initializer=keras.initializers.RandomUniform(-limit, limit),
        )
        self.values = self.add_weight(
            shape=(self.num_slots, width),
            initializer=keras.initializers.RandomNormal(stddev=width**-0.5),
        )

    def call(self, inputs):
        queries = ops.reshape(
            self.query_projection(inputs), (-1, self.num_heads, self.key_dim)
        )
        scores = ops.einsum("thd,hnd->thn", queries, self.keys)
        scores, slots = ops.top_k(scores, self.top_k)
        reads = (-1, self.num_heads * self.top_k)
        return embedding_bag(
            self.values,
            ops.reshape(ops.cast(slots, "int32"), reads),
            ops.reshape(ops.softmax(scores), reads),
            implementation="fastest",
        )
