"""Which implementation a memory's graphs get."""

import pytest
import tensorflow as tf

from keras_pkm.layers import PKMTransformerEncoder
from keras_pkm.layers import ProductKeyMemory
from keras_pkm.ops import portable_reads
from keras_pkm.ops import use_implementation
from tests.contracts import assert_close

SIZES = {"num_sub_keys": 8, "num_heads": 2, "top_k": 4, "key_dim": 8}


def has_xla_kernels(layer, training):
    """Whether a graph of the layer has functions that XLA compiles."""
    graph = tf.function(lambda x: layer(x, training=training))
    spec = tf.TensorSpec((None, 6))
    functions = graph.get_concrete_function(spec).graph.as_graph_def().library
    return any(f.attr["_XlaMustCompile"].b for f in functions.function)


@pytest.mark.parametrize(
    "own, around, training, served",
    [
        ("auto", "auto", True, False),
        ("auto", "fastest", True, True),
        ("auto", "portable", False, False),
        # A layer's own choice counts more than what is around it.
        ("fastest", "portable", True, True),
        ("portable", "fastest", False, False),
    ],
)
def test_the_layer_s_choice_and_what_is_around_it(
    own, around, training, served
):
    layer = ProductKeyMemory(**SIZES, implementation=own)
    layer.build((None, 6))
    with use_implementation(around):
        assert has_xla_kernels(layer, True) == training
        assert has_xla_kernels(layer, False) == served
    with portable_reads():
        assert not has_xla_kernels(layer, True)


def test_both_give_the_same():
    x = tf.random.normal((20, 6))
    layer = ProductKeyMemory(**SIZES)
    layer.build((None, 6))
    call = tf.function(layer, reduce_retracing=True)
    with use_implementation("portable"):
        expected = call(x)
    with use_implementation("fastest"):
        assert_close(tf.function(layer)(x), expected, 1e-6)


def test_a_block_passes_it_on():
    block = PKMTransformerEncoder(
        block="resm",
        memory={**SIZES, "implementation": "portable"},
        intermediate_dim=8,
        num_heads=2,
    )
    assert block.memory.implementation == "portable"
    assert "implementation" in block.get_config()["memory"]["config"]


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="`implementation`.*'fast'"):
        ProductKeyMemory(implementation="fast")
    with pytest.raises(ValueError, match="`name`.*'fast'"):
        use_implementation("fast")
