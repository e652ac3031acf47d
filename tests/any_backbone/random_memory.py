"""A kind of memory that the package does not know, as a user may write it."""

import keras
from keras import ops

import keras_pkm


@keras.saving.register_keras_serializable("tests")
class RandomMemory(keras_pkm.layers.Memory):
    """Reads the slots that random directions, which stay fixed, point to."""

    def __init__(self, num_slots=64, num_heads=2, top_k=4, seed=0, **kwargs):
        super().__init__(num_slots, num_heads, top_k, **kwargs)
        self.seed = seed

    def build_address(self, dim):
        self.directions = self.add_weight(
            shape=(dim, self.num_heads, self.num_slots),
            initializer=keras.initializers.RandomNormal(seed=self.seed),
            trainable=False,
            name="directions",
        )

    def address(self, tokens, mask, training):
        tokens = ops.cast(tokens, "float32")
        directions = ops.cast(self.directions, "float32")
        scores = ops.einsum("td,dhn->thn", tokens, directions)
        scores, slots = ops.top_k(scores, self.top_k)
        return ops.cast(slots, "int32"), ops.softmax(scores)

    def get_config(self):
        return {**super().get_config(), "seed": self.seed}
