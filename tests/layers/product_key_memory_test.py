import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.layers import ProductKeyMemory
from tests.contracts import check_config_round_trip
from tests.contracts import fixed_rng
from tests.contracts import fresh_rng

SMALL = {"num_sub_keys": 8, "num_heads": 2, "top_k": 4, "key_dim": 6}


def small_layer(**kwargs):
    return ProductKeyMemory(**{**SMALL, **kwargs})


def test_weights_have_the_documented_names_and_shapes():
    layer = small_layer(value_dim=5)
    layer.build((None, 10))
    shapes = {w.path.split("/", 1)[1]: tuple(w.shape) for w in layer.weights}
    assert shapes == {
        "query_projection/kernel": (10, 12),
        "query_projection/bias": (12,),
        "query_normalization/gamma": (12,),
        "query_normalization/beta": (12,),
        "query_normalization/moving_mean": (12,),
        "query_normalization/moving_variance": (12,),
        "sub_keys": (2, 2, 8, 3),
        "table/values": (64, 5),
        "output_projection/kernel": (5, 10),
    }
    assert layer.num_slots == 64
    assert layer.query_normalization_layer.momentum == 0.9
    assert layer.query_normalization_layer.epsilon == 1e-5


def test_initial_weights():
    layer = ProductKeyMemory(64, 2, 4, 32)
    layer.build((None, 100))
    bound = 1 / np.sqrt(16)
    sub_keys = np.asarray(layer.sub_keys)
    assert np.abs(sub_keys).max() <= bound
    np.testing.assert_allclose(sub_keys.std(), bound / np.sqrt(3), rtol=0.05)
    values = np.asarray(layer.table.values)
    np.testing.assert_allclose(values.std(), 0.1, rtol=0.05)
    # Heads and halves start apart.
    assert not np.allclose(sub_keys[0, 0], sub_keys[0, 1])
    assert not np.allclose(sub_keys[0, 0], sub_keys[1, 0])


def test_the_initial_output_is_small():
    """Std √(heads / (top_k · value_dim)): ResM starts next to plain BERT."""
    layer = ProductKeyMemory(num_sub_keys=64, num_heads=4, key_dim=64)
    outputs = layer(tf.random.normal((500, 256)), training=True)
    expected = np.sqrt(4 / (32 * 256))
    np.testing.assert_allclose(np.std(outputs), expected, rtol=0.15)


@pytest.mark.parametrize(
    "config",
    [
        {"value_dim": 3},
        {"query_normalization": "layer"},
        {"query_normalization": None, "query_dropout": 0.1},
        {"value_dropout": 0.2},
    ],
)
def test_config(config):
    copy = check_config_round_trip(small_layer(**config))
    for name, value in config.items():
        assert getattr(copy, name) == value


@pytest.mark.parametrize("leading", [(7,), (2, 3), (2, 3, 4), (1, 1, 1, 2)])
def test_any_leading_dimensions(leading):
    layer = small_layer()
    inputs = tf.random.normal((*leading, 10))
    mask = fresh_rng().random(leading) < 0.7
    outputs, (slots, weights) = layer(
        inputs, mask=mask, return_memory_access=True
    )
    assert outputs.shape == inputs.shape
    assert slots.shape == weights.shape == (*leading, 2, 4)
    flat = layer(tf.reshape(inputs, (-1, 10)), mask=mask.reshape(-1))
    np.testing.assert_array_equal(tf.reshape(outputs, (-1, 10)), flat)


@pytest.mark.parametrize("filling", [0.0, 1e6, np.nan, np.inf])
def test_padding_takes_part_in_nothing(filling):
    rng = fixed_rng()
    inputs = rng.normal(size=(4, 9, 10)).astype("float32")
    mask = np.arange(9) < [[9], [3], [5], [1]]
    filled = np.where(mask[..., None], inputs, filling).astype("float32")
    results = []
    for tokens, padding_mask in (
        (inputs[mask], None),
        (filled, mask),
        (filled, mask.astype("int32")),
    ):
        keras.utils.set_random_seed(1)
        layer = small_layer()
        layer.build((None, 10))
        tokens = tf.constant(tokens)
        with tf.GradientTape() as tape:
            tape.watch(tokens)
            outputs, (_, weights) = layer(
                tokens,
                mask=padding_mask,
                training=True,
                return_memory_access=True,
            )
            loss = tf.reduce_sum(tf.sin(outputs))
        gradients = tape.gradient(
            loss, [tokens, *(w.value for w in layer.trainable_weights)]
        )
        input_gradient, *gradients = map(tf.convert_to_tensor, gradients)
        if padding_mask is not None:
            assert np.all(outputs.numpy()[~mask] == 0)
            assert np.all(weights.numpy()[~mask] == 0)
            assert np.all(input_gradient.numpy()[~mask] == 0)
            outputs = outputs.numpy()[mask]
            input_gradient = input_gradient.numpy()[mask]
        statistics = layer.query_normalization_layer.moving_mean.numpy()
        results.append([outputs, input_gradient, statistics, *gradients])
    for result in results[1:]:
        for actual, expected in zip(result, results[0]):
            np.testing.assert_allclose(actual, expected, atol=2e-6)


def test_the_keras_mask_is_the_padding_mask():
    inputs = tf.random.normal((2, 4, 10))
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 0]], bool)
    layer = small_layer()
    symbolic = keras.Input((4, 10))
    model = keras.Model(symbolic, layer(keras.layers.Masking(7.0)(symbolic)))
    masked = tf.where(mask[..., None], inputs, 7.0)
    np.testing.assert_array_equal(model(masked), layer(masked, mask=mask))
    assert np.all(model(masked).numpy()[~mask] == 0)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(policy):
    layer = small_layer(dtype=policy, value_dim=4)
    with tf.GradientTape() as tape:
        outputs, (_, weights) = layer(
            tf.random.normal((6, 10)), training=True, return_memory_access=True
        )
        loss = tf.reduce_sum(tf.cast(outputs, "float32"))
    assert outputs.dtype == policy.removeprefix("mixed_")
    assert weights.dtype == tf.float32
    assert all(weight.dtype == "float32" for weight in layer.weights)
    gradient = tape.gradient(loss, layer.table.values.value)
    assert isinstance(gradient, tf.IndexedSlices)
    assert gradient.values.dtype == tf.float32
    # Only the projections are rounded.
    reference = small_layer(value_dim=4)
    reference.build((None, 10))
    reference.set_weights(layer.get_weights())
    inputs = tf.random.normal((50, 10))
    actual = tf.cast(layer(inputs), "float32")
    error = np.abs(actual - reference(inputs)).mean()
    assert error < 0.1 * np.abs(actual).mean()


def test_dropouts_act_in_training_only():
    inputs = tf.random.normal((20, 10))
    for name in ("query_dropout", "value_dropout"):
        layer = small_layer(query_normalization=None, **{name: 0.5})
        plain = layer(inputs, training=False)
        np.testing.assert_array_equal(plain, layer(inputs, training=False))
        assert not np.allclose(plain, layer(inputs, training=True))
    dropped = layer(inputs, training=True).numpy()
    assert 0.3 < (dropped == 0).mean() < 0.7


@pytest.mark.parametrize(
    "argument, value, message",
    [
        ("num_sub_keys", 0, "positive integer"),
        ("num_sub_keys", 2.5, "positive integer"),
        ("num_sub_keys", 50_000, "at most 46,340"),
        ("num_heads", -1, "positive integer"),
        ("top_k", 9, "at most `num_sub_keys`"),
        ("top_k", 0, "positive integer"),
        ("top_k", "a", "positive integer. Received: top_k='a'"),
        ("top_k", [4], "positive integer. Received: top_k="),
        ("top_k", float("nan"), "positive integer"),
        (
            "query_dropout",
            "a",
            "must be in .0, 1.. Received: query_dropout='a'",
        ),
        ("key_dim", 7, "must be even"),
        ("value_dim", 0, "positive integer"),
        ("query_normalization", "instance", '"half_layer" or None'),
        ("query_dropout", 1.0, r"\[0, 1\)"),
        ("value_dropout", -0.1, r"\[0, 1\)"),
        ("gate", "none", "True or False"),
        ("query_hidden_dims", 64, "a list of positive integers"),
        ("table", "a", "a `keras_pkm.layers.ValueTable`"),
    ],
)
def test_impossible_arguments(argument, value, message):
    with pytest.raises(ValueError, match=message) as raised:
        small_layer(**{argument: value})
    assert f"`{argument}`" in str(raised.value)
    assert str(value) in str(raised.value).replace("_", "")


def test_impossible_inputs():
    with pytest.raises(ValueError, match="last dimension"):
        small_layer().build((2, None))
    with pytest.raises(ValueError, match=r"`mask`.*\(2, 3\)"):
        small_layer()(tf.ones((2, 3, 10)), mask=tf.ones((2, 4)))
    with pytest.raises(ValueError, match=r"`mask`.*\(2, 3, 1\)"):
        small_layer()(tf.ones((2, 3, 10)), mask=tf.ones((2, 3, 1)))
    with pytest.raises(ValueError, match="`mask` must be a tensor"):
        small_layer()(tf.ones((1, 2, 10)), mask=[[1, 0]])


def test_symbolic_memory_access():
    inputs = keras.Input((None, 10))
    outputs, (slots, weights) = small_layer()(inputs, return_memory_access=True)
    model = keras.Model(inputs, [outputs, slots, weights])
    values = model(tf.random.normal((2, 3, 10)))
    for value, symbol in zip(values, (outputs, slots, weights)):
        assert value.dtype == symbol.dtype
        assert value.shape[2:] == symbol.shape[2:]
