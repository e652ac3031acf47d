"""Calls: eager, in graphs, under XLA, and what is declared of the outputs."""

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

import keras_pkm
from tests.conformance.comparing import right_or_refused
from tests.conformance.comparing import same_outputs
from tests.conformance.descriptors import BATCH
from tests.conformance.descriptors import IN_DEPTH
from tests.conformance.descriptors import LAYERS
from tests.conformance.descriptors import LENGTH
from tests.conformance.descriptors import MEMORY
from tests.conformance.descriptors import MODELS
from tests.conformance.descriptors import WIDTH
from tests.conformance.descriptors import built
from tests.conformance.descriptors import inputs_of
from tests.conformance.descriptors import make_layer
from tests.conformance.descriptors import make_model
from tests.conformance.known_defects import cases
from tests.contracts import assert_close


def each(test, names):
    return pytest.mark.parametrize("name", cases(test, names))


@each("graph", [*LAYERS, *(name for name in MODELS if name not in IN_DEPTH)])
def test_a_graph_gives_what_eager_calls_give(name):
    """The tests of exports trace all other models."""
    model, inputs = built(name), inputs_of(name)
    graph = tf.function(model, autograph=False)
    same_outputs(graph(inputs), model(inputs))


POLICIES = (
    "float32",
    "mixed_bfloat16",
    "mixed_float16",
    "bfloat16",
    "float16",
    "float64",
)


@pytest.mark.parametrize("policy", POLICIES)
@each("declared_outputs", LAYERS)
def test_outputs_are_as_declared(name, policy):
    layer, inputs = make_layer(name, dtype=policy), inputs_of(name)
    spec = layer.compute_output_spec(keras.KerasTensor(inputs.shape))
    symbolic = layer(keras.KerasTensor(inputs.shape))
    for training in (False, True):
        outputs = layer(inputs, training=training)
        for declared in (spec, symbolic):
            assert tuple(declared.shape) == tuple(outputs.shape)
            assert declared.dtype == keras.backend.standardize_dtype(
                outputs.dtype
            )
        assert tuple(layer.compute_output_shape(inputs.shape)) == outputs.shape
        assert np.isfinite(np.asarray(tf.cast(outputs, "float64"))).all()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["MemoryBertBackbone", "MemoryBackbone"])
def test_outputs_of_models_are_as_declared(name, policy):
    """What they read, too."""
    backbone = make_model(name, policy)
    model = keras.Model(
        backbone.inputs, [backbone.output, backbone.memory_outputs]
    )
    for declared, outputs in zip(
        keras.tree.flatten(model.output),
        keras.tree.flatten(model(inputs_of(name))),
        strict=True,
    ):
        assert declared.dtype == keras.backend.standardize_dtype(outputs.dtype)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "float64"])
def test_a_block_may_have_another_policy_than_its_memory(policy):
    block = keras_hub.layers.TransformerEncoder(8, 2)
    block.build((BATCH, LENGTH, WIDTH))
    layer = keras_pkm.layers.MemoryBlock(block, MEMORY, dtype=policy)
    inputs = inputs_of("MemoryBlock")
    assert layer(inputs).dtype == block(inputs).dtype == "float32"
    assert layer(keras.KerasTensor(inputs.shape)).dtype == "float32"


@each("xla", LAYERS)
def test_xla_gives_what_eager_calls_give(name):
    model, inputs = built(name), inputs_of(name)
    graph = tf.function(model, autograph=False, jit_compile=True)
    same_outputs(graph(inputs), model(inputs))


def gradients(layer, inputs):
    """Those of the inputs and of all weights, in training."""
    variables = [weight.value for weight in layer.trainable_weights]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = layer(inputs, training=True)
        loss = tf.reduce_sum(outputs * tf.sin(outputs))
    found = tape.gradient(loss, [inputs, *variables])
    return [tf.convert_to_tensor(gradient) for gradient in found]


@each("gradient_under_xla", ["MaskedBatchNormalization", "ProductKeyMemory"])
def test_gradients_under_xla_are_right_or_refused(name):
    """As in a train step of one's own. The other layer holds these two."""
    layer, inputs = make_layer(name), inputs_of(name)

    @tf.function(jit_compile=True)
    def compiled():
        return gradients(layer, inputs)

    right_or_refused(compiled, lambda: gradients(layer, inputs))


@each("jit_compile", IN_DEPTH)
def test_compile_refuses_xla_for_memories(name):
    """Keras warns, and goes on without."""
    model = make_model(name)
    arguments = {"optimizer": "sgd", "loss": "mse", "jit_compile": True}
    if name in LAYERS and not LAYERS[name].has_memory:
        model.compile(**arguments)
        assert model.jit_compile
        return
    with pytest.warns(UserWarning, match="doesn't support `jit_compile=True`"):
        model.compile(**arguments)
    assert not model.jit_compile


class MadeInBuild(keras.layers.Layer):
    """A user's layer, of whose memory Keras knows nothing at `compile`."""

    def __init__(self, name):
        super().__init__()
        self._kind = name

    def build(self, shape):
        self.inner = LAYERS[self._kind].make()
        self.inner.build(shape)

    def call(self, inputs, training=None):
        return self.inner(inputs, training=training)


@each("jit_compile_before_build", ["ProductKeyMemory"])
def test_compile_refuses_xla_for_memories_that_are_yet_to_be(name):
    inputs = inputs_of(name)

    def losses(jit_compile):
        keras.utils.set_random_seed(1)
        model = keras.Sequential([MadeInBuild(name)])
        model.compile("sgd", "mse", jit_compile=jit_compile)
        return model.fit(inputs, inputs, epochs=2, verbose=0).history["loss"]

    right_or_refused(lambda: losses(True), lambda: losses(False))


@each("any_rank", ["MaskedBatchNormalization"])
def test_the_channels_come_last_whatever_the_rank(name):
    inputs = inputs_of(name)
    cube = tf.reshape(inputs, (4, -1, WIDTH))
    for training in (False, True):
        expected = LAYERS[name].make()(inputs, training=training)
        actual = LAYERS[name].make()(cube, training=training)
        assert_close(tf.reshape(actual, (-1, WIDTH)), expected)
