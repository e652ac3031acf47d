import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.layers import PKMTransformerEncoder
from tests.contracts import assert_close

MEMORY = {"num_sub_keys": 8, "num_heads": 2, "top_k": 4, "key_dim": 6}


def encoder(block="resm", **kwargs):
    memory = None if block == "ffn" else MEMORY
    return PKMTransformerEncoder(24, 2, block=block, memory=memory, **kwargs)


@pytest.fixture
def inputs():
    return tf.random.normal((3, 7, 16))


@pytest.fixture
def padding_mask():
    return np.arange(7) < [[7], [2], [5]]


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"dropout": 0.3},
        {"normalize_first": True, "activation": "gelu"},
        {"layer_norm_epsilon": 1e-12, "kernel_initializer": "he_normal"},
        {"dtype": "mixed_bfloat16"},
    ],
)
@pytest.mark.parametrize("training", [False, True])
def test_ffn_is_the_encoder_of_keras_hub(
    inputs, padding_mask, config, training
):
    ours = PKMTransformerEncoder(24, 2, **config)
    theirs = keras_hub.layers.TransformerEncoder(24, 2, **config)
    ours.build(inputs.shape)
    theirs.build(inputs.shape)
    names = [w.path.split("/", 1)[1] for w in theirs.weights]
    assert [w.path.split("/", 1)[1] for w in ours.weights] == names
    ours.set_weights(theirs.get_weights())
    attention_mask = np.tri(7, dtype=bool)[None].repeat(3, 0)
    for masks in (
        {},
        {"padding_mask": padding_mask},
        {"attention_mask": attention_mask},
        {"padding_mask": padding_mask, "attention_mask": attention_mask},
    ):
        results = []
        for layer in (ours, theirs):
            for dropout in layer._flatten_layers():
                if hasattr(dropout, "seed_generator"):
                    dropout.seed_generator.state.assign([0, 7])
            with tf.GradientTape() as tape:
                outputs = layer(inputs, training=training, **masks)
                loss = tf.reduce_sum(tf.cast(outputs, "float32") ** 3)
            variables = [weight.value for weight in layer.weights]
            results.append([outputs, *tape.gradient(loss, variables)])
        for actual, expected in zip(*results):
            assert np.all(actual == expected)


def test_ffn_hides_what_any_mask_hides(inputs, padding_mask):
    """Keras' own mask counts beside an explicit one, as in keras-hub's."""
    ours = PKMTransformerEncoder(24, 2)
    theirs = keras_hub.layers.TransformerEncoder(24, 2)
    ours.build(inputs.shape)
    theirs.build(inputs.shape)
    ours.set_weights(theirs.get_weights())

    def masked():
        # Keras takes the mask off the tensor that a layer is called with.
        x = tf.constant(np.array(inputs))
        x._keras_mask = tf.constant(np.tile(np.arange(7) != 2, (3, 1)))
        return x

    attention_mask = np.tri(7, dtype=bool)[None].repeat(3, 0)
    found = []
    for masks in (
        {"padding_mask": padding_mask},
        {"padding_mask": padding_mask, "attention_mask": attention_mask},
    ):
        found.append(ours(masked(), **masks))
        np.testing.assert_array_equal(found[-1], theirs(masked(), **masks))
    alone = ours(inputs, padding_mask=padding_mask)
    assert not np.array_equal(found[0], alone)


def test_ffn_attention_scores_are_those_of_keras_hub(inputs):
    ours = PKMTransformerEncoder(24, 2)
    theirs = keras_hub.layers.TransformerEncoder(24, 2)
    ours.build(inputs.shape)
    theirs.build(inputs.shape)
    ours.set_weights(theirs.get_weights())
    for actual, expected in zip(
        ours(inputs, return_attention_scores=True),
        theirs(inputs, return_attention_scores=True),
    ):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("normalize_first", [False, True])
@pytest.mark.parametrize("block, alpha, beta", [("pkm", 0, 1), ("resm", 1, 1)])
def test_the_equation(
    inputs, padding_mask, block, alpha, beta, normalize_first
):
    """x' = LN(x + α·FFN(x) + β·PKM(x)), with FFN and LN of keras-hub."""
    layer = encoder(block, normalize_first=normalize_first)
    layer.build(inputs.shape)
    plain = keras_hub.layers.TransformerEncoder(
        24, 2, normalize_first=normalize_first
    )
    plain.build(inputs.shape)
    paths = {w.path.split("/", 1)[1]: w for w in plain.weights}
    for weight in layer.weights:
        path = weight.path.split("/", 1)[1]
        if path in paths:
            paths[path].assign(weight)

    attention = plain._self_attention_layer
    mask = padding_mask[:, None].astype("int32")
    norm1 = plain._self_attention_layer_norm
    norm2 = plain._feedforward_layer_norm
    if normalize_first:
        normed = norm1(inputs)
        x = inputs + attention(normed, normed, attention_mask=mask)
        read = norm2(x)
    else:
        x = norm1(inputs + attention(inputs, inputs, attention_mask=mask))
        read = x
    ffn = plain._feedforward_output_dense(
        plain._feedforward_intermediate_dense(read)
    )
    memory = layer.memory(read, mask=padding_mask)
    expected = x + alpha * ffn + beta * memory
    if not normalize_first:
        expected = norm2(expected)
    outputs, access = layer(
        inputs, padding_mask=padding_mask, return_memory_access=True
    )
    assert_close(outputs, expected, 1e-6)
    _, expected_access = layer.memory(
        read, mask=padding_mask, return_memory_access=True
    )
    np.testing.assert_array_equal(access[0], expected_access[0])


def test_the_ffn_s_dropout_leaves_the_memory_alone(inputs):
    layer = encoder("resm", dropout=0.9999)
    layer.build(inputs.shape)
    # Attention and FFN are dropped as good as whole.
    norm1, norm2 = (
        layer._self_attention_layer_norm,
        layer._feedforward_layer_norm,
    )
    layer.memory.query_normalization_layer.trainable = False
    x = norm1(inputs)
    expected = norm2(x + layer.memory(x))
    assert_close(layer(inputs, training=True), expected, 1e-5)


def test_pkm_has_no_ffn(inputs):
    layer = encoder("pkm")
    layer.build(inputs.shape)
    assert not [w for w in layer.weights if "feedforward_inter" in w.path]
    assert not [w for w in layer.weights if "feedforward_out" in w.path]
    assert [w for w in layer.weights if "feedforward_layer_norm" in w.path]


def test_symbolic_outputs():
    inputs = keras.Input((None, 16))
    x, scores, (slots, weights) = encoder()(
        inputs, return_attention_scores=True, return_memory_access=True
    )
    model = keras.Model(inputs, [x, scores, slots, weights])
    outputs = model(tf.random.normal((2, 5, 16)))
    assert [tuple(t.shape) for t in outputs] == [
        (2, 5, 16),
        (2, 2, 5, 5),
        (2, 5, 2, 4),
        (2, 5, 2, 4),
    ]


def test_impossible_arguments(inputs):
    with pytest.raises(ValueError, match='`block`.*"ffn" or "pkm".*memory'):
        PKMTransformerEncoder(24, 2, block="memory")
    with pytest.raises(ValueError, match="`memory` must be None for a block"):
        PKMTransformerEncoder(24, 2, memory={"num_sub_keys": 8})
    with pytest.raises(ValueError, match="`return_memory_access=True`"):
        encoder("ffn")(inputs, return_memory_access=True)
    with pytest.raises(ValueError, match="`num_heads` must be at most"):
        PKMTransformerEncoder(24, 17)(inputs)
    with pytest.raises(ValueError, match="the known width.*, None"):
        PKMTransformerEncoder(24, 2).build((None, None, None))
    with pytest.raises(ValueError, match="`key_dim` must be even"):
        PKMTransformerEncoder(24, 2, block="pkm", memory={"key_dim": 3})
    with pytest.raises(ValueError, match="key_dimension"):
        PKMTransformerEncoder(24, 2, block="pkm", memory={"key_dimension": 3})
