"""The memory layer of this library, and others written in Keras."""

import functools

import keras
import numpy as np
import tensorflow as tf
from keras import ops

import keras_pkm
from benchmarks.contenders.flat_memory import FlatMemory
from benchmarks.contenders.sizes import MemorySizes
from benchmarks.contenders.sizes import batch
from benchmarks.timing.in_turn import Case


class PlainMemory(keras.layers.Layer):
    """A product-key memory of stock layers, operations and weights."""

    def __init__(self, sizes: MemorySizes):
        super().__init__()
        self.sizes = sizes

    def build(self, inputs_shape):
        sizes = self.sizes
        self.query = keras.layers.Dense(sizes.num_heads * sizes.key_dim)
        self.query.build(inputs_shape)
        self.norm = keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5)
        self.norm.build((None, sizes.num_heads * sizes.key_dim))
        half = sizes.key_dim // 2
        self.keys = self.add_weight(
            shape=(sizes.num_heads, 2, sizes.num_sub_keys, half),
            initializer=keras.initializers.RandomUniform(
                -(half**-0.5), half**-0.5
            ),
        )
        self.values = self.add_weight(
            shape=(sizes.num_sub_keys**2, sizes.width),
            initializer=keras.initializers.RandomNormal(
                stddev=sizes.width**-0.5
            ),
        )

    def call(self, inputs, training=None):
        sizes = self.sizes
        queries = self.norm(self.query(inputs), training=training)
        queries = ops.reshape(
            queries, (-1, sizes.num_heads, 2, sizes.key_dim // 2)
        )
        scores = ops.einsum("thsd,hsnd->thsn", queries, self.keys)
        scores, slots = ops.top_k(scores, sizes.top_k)
        flat = (-1, sizes.num_heads, sizes.top_k**2)
        candidates = ops.reshape(
            scores[:, :, 0, :, None] + scores[:, :, 1, None, :], flat
        )
        slots = ops.reshape(
            slots[:, :, 0, :, None] * sizes.num_sub_keys
            + slots[:, :, 1, None, :],
            flat,
        )
        scores, best = ops.top_k(candidates, sizes.top_k)
        slots = ops.take_along_axis(slots, best, axis=-1)
        weights = ops.softmax(scores)
        rows = ops.take(self.values, slots, axis=0)
        return ops.einsum("thk,thkw->tw", weights, rows)


def ours(sizes: MemorySizes, tokens: int) -> Case:
    """`ProductKeyMemory` with `PKMAdam`."""
    layer = keras_pkm.layers.ProductKeyMemory(
        num_sub_keys=sizes.num_sub_keys,
        num_heads=sizes.num_heads,
        top_k=sizes.top_k,
        key_dim=sizes.key_dim,
        implementation="fastest",
    )
    case = _case(layer, keras_pkm.optimizers.PKMAdam(), sizes, tokens)
    read = tf.function(functools.partial(layer, return_memory_access=True))
    _, (slots, _) = read(batch(sizes, tokens)[0], training=True)
    case.facts["rows read"] = len(np.unique(slots))
    return case


def flat(sizes: MemorySizes, tokens: int) -> Case:
    """A memory without product keys, for serving."""
    layer = FlatMemory(
        sizes.num_sub_keys**2, sizes.num_heads, sizes.top_k, sizes.key_dim
    )
    inputs = tf.constant(batch(sizes, tokens)[0])
    layer.build(inputs.shape)
    return Case(
        {"forward": _ended(lambda: layer(inputs))},
        {"parameters": layer.count_params()},
    )


def plain(sizes: MemorySizes, tokens: int) -> Case:
    """Stock operations with stock Adam."""
    return _case(PlainMemory(sizes), keras.optimizers.Adam(), sizes, tokens)


def _case(layer, optimizer, sizes, tokens):
    inputs, upstream = (tf.constant(array) for array in batch(sizes, tokens))
    layer.build(inputs.shape)
    variables = layer.trainable_variables

    def backward():
        with tf.GradientTape() as tape:
            outputs = layer(inputs, training=True)
        return tape.gradient(outputs, [v.value for v in variables], upstream)

    @_ended
    def step():
        optimizer.apply_gradients(zip(backward(), variables))

    def build_and_step():
        if not optimizer.built:
            optimizer.build(variables)
        return step()

    return Case(
        {
            "forward": _ended(lambda: layer(inputs, training=False)),
            "forward + backward": _ended(backward),
            "train step": build_and_step,
        },
        {"parameters": sum(v.shape.num_elements() for v in variables)},
    )


def _ended(function):
    """The function as a graph; a call returns when all devices are done."""
    graph = tf.function(function, autograph=False)

    def call():
        results = graph()
        tf.test.experimental.sync_devices()
        return results

    return call
