"""A mixture of experts beside a feed-forward network, as a control."""

import math
from typing import Any

import keras
from keras import ops

_CAPACITY = 2.0
_BALANCE = 0.01


class MixtureOfExperts(keras.layers.Layer):
    """A network that all tokens take, and others, of which each takes `top_k`.

    As in Switch and GShard, an expert has room in training for twice its even
    share of a batch, tokens beyond that pass it by, and a loss keeps experts
    balanced. As in DeepSeekMoE, one network is shared, so that a token that is
    passed by has one, too. Outside of training there is room for all.

    Args:
        num_experts: int. The number of networks besides the shared one.
        intermediate_dim: int. The width of each.
        top_k: int. How many of them a token takes.
        rate: float. The learning rate of the experts, times that of all other
            weights: their weights are divided by it, and multiplied when they
            are used, which an optimizer such as Adam does not see.

    References:

    - Fedus et al., 2022, [Switch Transformers](https://arxiv.org/abs/2101.03961)
    - Dai et al., 2024, [DeepSeekMoE](https://arxiv.org/abs/2401.06066)
    """

    def __init__(
        self,
        num_experts: int,
        intermediate_dim: int,
        top_k: int,
        rate: float = 1.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.rate = rate
        self.num_experts = num_experts
        self.intermediate_dim = intermediate_dim
        self.top_k = min(top_k, num_experts)

    def build(self, inputs_shape: tuple[Any, ...]) -> None:
        dim = inputs_shape[-1]
        self.router = keras.layers.Dense(self.num_experts, use_bias=False)
        self.router.build((None, dim))
        self.first_shared = keras.layers.Dense(
            self.intermediate_dim, activation="gelu"
        )
        self.first_shared.build((None, dim))
        self.second_shared = keras.layers.Dense(dim)
        self.second_shared.build((None, self.intermediate_dim))
        shapes = {
            "first": (dim, self.intermediate_dim),
            "second": (self.intermediate_dim, dim),
        }
        for name, (rows, columns) in shapes.items():
            limit = math.sqrt(6 / (rows + columns)) / self.rate
            weights = self.add_weight(
                shape=(self.num_experts, rows, columns),
                initializer=keras.initializers.RandomUniform(-limit, limit),
                name=name,
            )
            biases = self.add_weight(
                shape=(self.num_experts, 1, columns),
                initializer="zeros",
                name=f"{name}_bias",
            )
            setattr(self, f"_{name}", (weights, biases))

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        shape = ops.shape(inputs)
        tokens = ops.reshape(inputs, (-1, inputs.shape[-1]))
        count = ops.shape(tokens)[0]
        chances = ops.softmax(self.router(tokens), axis=-1)
        gates, experts = ops.top_k(chances, self.top_k)
        if self.top_k > 1:
            gates = gates / ops.sum(gates, axis=-1, keepdims=True)
        # The best choice of all tokens comes before the second one of any.
        gates = ops.reshape(ops.transpose(gates), (-1,))
        experts = ops.reshape(ops.transpose(experts), (-1,))
        chosen = ops.one_hot(experts, self.num_experts, dtype="int32")
        place = ops.sum((ops.cumsum(chosen, axis=0) - 1) * chosen, axis=-1)
        if training:
            reads = ops.cast(self.top_k * count, "float32")
            room = ops.ceil(_CAPACITY * reads / self.num_experts)
            room = ops.maximum(ops.cast(room, "int32"), 1)
        else:
            room = ops.max(ops.sum(chosen, axis=0))
        has_room = place < room
        # Tokens without room share a place that nobody reads.
        nowhere = self.num_experts * room
        slot = ops.where(has_room, experts * room + place, nowhere)
        rows = ops.tile(tokens, (self.top_k, 1))
        gathered = ops.segment_sum(rows, slot, nowhere + 1)[:-1]
        gathered = ops.reshape(
            gathered, (self.num_experts, room, inputs.shape[-1])
        )
        hidden = keras.activations.gelu(self._dense(gathered, self._first))
        outputs = self._dense(hidden, self._second)
        outputs = ops.reshape(outputs, (-1, inputs.shape[-1]))
        outputs = ops.take(outputs, ops.where(has_room, slot, 0), axis=0)
        outputs = outputs * (gates * ops.cast(has_room, gates.dtype))[:, None]
        outputs = ops.reshape(outputs, (self.top_k, count, inputs.shape[-1]))
        share = ops.mean(ops.cast(chosen, chances.dtype), axis=0)
        balance = ops.sum(share * ops.mean(chances, axis=0))
        self.add_loss(_BALANCE * self.num_experts * balance)
        shared = self.second_shared(self.first_shared(tokens))
        return ops.reshape(ops.sum(outputs, axis=0) + shared, shape)

    def _dense(self, inputs: Any, weights: tuple[Any, Any]) -> Any:
        """One layer of all experts."""
        kernels, biases = (self.rate * each for each in weights)
        return ops.matmul(inputs, kernels) + biases

    def compute_output_shape(
        self, inputs_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return inputs_shape


def put_experts(block: keras.layers.Layer, experts: MixtureOfExperts) -> None:
    """Puts a mixture of experts in place of a block's feed-forward network.

    Args:
        block: A built `TransformerEncoder` or `TransformerDecoder` of KerasHub.
        experts: The mixture, not built yet.
    """
    first, second = (
        "_feedforward_intermediate_dense",
        "_feedforward_output_dense",
    )
    experts.build((None, getattr(block, second).units))
    block._tracker.unlock()
    for name, layer in ((first, keras.layers.Identity()), (second, experts)):
        block._layers.remove(getattr(block, name))
        setattr(block, name, layer)
    block._tracker.lock()
