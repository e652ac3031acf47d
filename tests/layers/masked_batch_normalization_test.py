import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.layers import MaskedBatchNormalization
from keras_pkm.layers.masked_batch_normalization import part_of_a_batch
from tests.contracts import assert_close
from tests.contracts import check_config_round_trip
from tests.contracts import fresh_rng


def test_without_mask_equals_keras():
    inputs = tf.random.normal((40, 6), mean=3.0)
    ours = MaskedBatchNormalization(momentum=0.8, epsilon=1e-4)
    theirs = keras.layers.BatchNormalization(momentum=0.8, epsilon=1e-4)
    for training in (True, True, False):
        assert_close(
            ours(inputs, training=training),
            theirs(inputs, training=training),
        )
    for actual, expected in zip(ours.weights, theirs.weights):
        assert actual.name == expected.name
        np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_parts_of_a_batch_move_statistics_as_far_as_the_batch():
    inputs = fresh_rng().normal(3.0, size=(10, 6)).astype("float32")
    whole, in_parts = MaskedBatchNormalization(), MaskedBatchNormalization()
    whole(inputs, training=True)
    with part_of_a_batch(4):
        for _ in range(4):
            in_parts(inputs, training=True)
    for actual, expected in zip(in_parts.weights, whole.weights, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_moments_are_exact_far_from_zero():
    # E[x²] - E[x]² in float32 has no digit left here.
    inputs = fresh_rng().normal(5000, 1e-1, (500, 3))
    layer = MaskedBatchNormalization()
    layer.build(inputs.shape)
    mean, variance, _ = layer._masked_moments(
        tf.constant(inputs, "float32"), None
    )
    rounded = inputs.astype("float32").astype("float64")
    assert_close(mean, rounded.mean(0), 1e-6)
    assert_close(variance, rounded.var(0), 1e-4)
    # In the first steps, too.
    outputs = layer(tf.constant(inputs, "float32"), training=True)
    np.testing.assert_allclose(np.std(outputs, 0), 1, rtol=1e-2)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_inputs_are_not_rounded(policy):
    inputs = np.array([[1000.0], [1001.0], [1002.0], [70000.0]], "float32")
    mask = np.array([True, True, True, False])
    layer = MaskedBatchNormalization(dtype=policy)
    outputs = layer(inputs, training=True, mask=mask)
    expected = np.array([-1, 0, 1]) * 1.5**0.5
    np.testing.assert_allclose(outputs[:3, 0], expected, atol=1e-3)
    clone = MaskedBatchNormalization.from_config(layer.get_config())
    assert clone(inputs, training=True).dtype == "float32"


def test_masks():
    inputs = fresh_rng().normal(size=(2, 5, 3)).astype("float32")
    layer = MaskedBatchNormalization()
    with pytest.raises(ValueError, match=r"shape of `inputs`.*\(2, 1\)"):
        layer(inputs, training=True, mask=np.ones((2, 1), "bool"))
    with_mask = tf.constant(inputs)
    with_mask._keras_mask = tf.constant([[True] * 4 + [False]] * 2)
    outputs = layer(with_mask, training=True)
    np.testing.assert_allclose(np.mean(outputs[:, :4], (0, 1)), 0, atol=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, None])
def test_a_bad_batch_leaves_the_moving_statistics(bad):
    layer = MaskedBatchNormalization()
    layer(tf.random.normal((20, 3)), training=True)
    before = [weight.numpy() for weight in layer.non_trainable_weights]
    inputs = np.ones((20, 3), "float32")
    mask = np.ones(20, bool)
    if bad is None:
        mask[:] = False
    else:
        inputs[7, 1] = bad
    layer(inputs, training=True, mask=mask)
    after = [weight.numpy() for weight in layer.non_trainable_weights]
    np.testing.assert_array_equal(before, after)


def test_a_frozen_layer_uses_its_moving_statistics():
    layer = MaskedBatchNormalization()
    inputs = tf.random.normal((20, 3), mean=2.0)
    layer(inputs, training=True)
    layer.trainable = False
    before = [weight.numpy() for weight in layer.weights]
    np.testing.assert_array_equal(
        layer(inputs, training=True), layer(inputs, training=False)
    )
    for old, new in zip(before, layer.weights):
        np.testing.assert_array_equal(old, new)


def test_replicas_share_moments_and_gradients(mirrored):
    """Ragged masks, one replica nearly empty, in one pass and in two."""
    rng = fresh_rng()
    inputs = rng.normal(size=(16, 5)).astype("float32")
    inputs[8:] += 3
    target = rng.normal(size=(16, 5)).astype("float32")
    mask = rng.random(16) < 0.6
    mask[9:] = False
    mask[8] = True

    def run(strategy):
        with strategy.scope():
            layer = MaskedBatchNormalization()
            layer.build((None, 5))
            kernel = tf.Variable(tf.eye(5))
        data = tf.data.Dataset.from_tensors((inputs, target, mask))
        data = strategy.experimental_distribute_dataset(
            data.unbatch().batch(16)
        )

        def step(inputs, target, mask):
            with tf.GradientTape() as tape:
                outputs = layer(inputs @ kernel, training=True, mask=mask)
                errors = tf.where(mask[:, None], (outputs - target) ** 2, 0)
                loss = tf.reduce_sum(errors * [1.0, 2.0, 3.0, 4.0, 5.0])
            variables = [kernel, layer.gamma.value, layer.beta.value]
            return tf.distribute.get_replica_context().all_reduce(
                "sum", tape.gradient(loss, variables)
            )

        compiled = tf.function(lambda batch: strategy.run(step, batch))
        for batch in data:
            gradients = compiled(batch)
        return layer, [
            strategy.experimental_local_results(gradient)
            for gradient in gradients
        ]

    one, one_gradients = run(tf.distribute.get_strategy())
    two, two_gradients = run(mirrored)
    assert_close(one.moving_mean, 0.1 * inputs[mask].mean(0))
    for expected, actual in zip(one.weights, two.weights):
        for component in mirrored.experimental_local_results(actual.value):
            np.testing.assert_allclose(component, expected, atol=1e-6)
    for expected, actual in zip(one_gradients, two_gradients):
        for component in actual:
            assert_close(component, expected[0])


def test_config():
    layer = MaskedBatchNormalization(momentum=0.7, center=False)
    copy = check_config_round_trip(layer)
    assert (copy.momentum, copy.center) == (0.7, False)
    for argument in ("axis", "renorm", "synchronized"):
        with pytest.raises(ValueError, match=f"no argument `{argument}`"):
            MaskedBatchNormalization(**{argument: True})


@pytest.mark.parametrize("shape", [(6, 4, 3), (2, 3, 4, 3)])
def test_any_rank_gives_what_flat_tokens_give(shape):
    rng = fresh_rng()
    inputs = rng.normal(size=shape).astype("float32")
    mask = rng.random(shape[:-1]) < 0.7
    layer, flat = MaskedBatchNormalization(), MaskedBatchNormalization()
    for some in (None, mask):
        outputs = layer(inputs, training=True, mask=some)
        expected = flat(
            inputs.reshape(-1, 3),
            training=True,
            mask=None if some is None else some.ravel(),
        )
        np.testing.assert_allclose(
            outputs, np.reshape(expected, shape), atol=1e-5
        )
    np.testing.assert_allclose(layer.moving_mean, flat.moving_mean, atol=1e-6)
