"""The update rule: by hand, against stock Adam, on bad steps."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.optimizers import LinearWarmup
from keras_pkm.optimizers import PKMAdam
from tests.contracts import fresh_rng
from tests.optimizers.row_sparse import slices
from tests.optimizers.row_sparse import table


@pytest.mark.parametrize("compiled", [False, True])
def test_two_steps_by_hand(compiled):
    """Step 1 reads rows 0 (twice) and 2; step 2 reads row 2; row 1 never."""
    values = table([[1, 2], [3, 4], [5, 6]])
    optimizer = PKMAdam(1.0, 0.1, beta_1=0.8, beta_2=0.9, epsilon=1e-3)
    optimizer.build([values])
    apply = optimizer.apply
    if compiled:
        apply = tf.function(apply)
    apply([slices([0, 2, 0], [[1, 0], [2, -2], [3, 1]], (3, 2))])
    apply([slices([2], [[1, 4]], (3, 2))])

    def alpha(t):
        return 0.1 * np.sqrt(1 - 0.9**t) / (1 - 0.8**t)

    # Row 0: the gradients of both reads are summed, then squared: 4² + 1².
    m0, v0 = 0.2 * np.array([4.0, 1]), 0.1 * np.array([16.0, 1])
    row0 = np.array([1.0, 2]) - alpha(1) * m0 / (np.sqrt(v0) + 1e-3)
    m2, v2 = 0.2 * np.array([2.0, -2]), 0.1 * np.array([4.0, 4])
    row2 = np.array([5.0, 6]) - alpha(1) * m2 / (np.sqrt(v2) + 1e-3)
    m2 = 0.8 * m2 + 0.2 * np.array([1.0, 4])
    v2 = 0.9 * v2 + 0.1 * np.array([1.0, 16])
    row2 -= alpha(2) * m2 / (np.sqrt(v2) + 1e-3)

    np.testing.assert_allclose(values[0], row0, rtol=1e-6)
    np.testing.assert_allclose(values[2], row2, rtol=1e-6)
    np.testing.assert_array_equal(values[1], [3, 4])
    momentum, velocity = optimizer._momentums[0], optimizer._velocities[0]
    np.testing.assert_allclose(momentum, [m0, [0, 0], m2], rtol=1e-6)
    np.testing.assert_allclose(velocity, [v0, [0, 0], v2], rtol=1e-6)
    assert optimizer.iterations == 2


@pytest.mark.parametrize("dense", [False, True])
def test_a_row_with_an_all_zero_gradient_is_unread(dense):
    values = table(np.ones((4, 3)))
    optimizer = PKMAdam(1.0, 0.1)
    optimizer.build([values])
    first = slices([0, 1], np.ones((2, 3)), (4, 3))
    # Row 1: zero. Row 2: the two reads cancel. Row 3: one entry is not zero.
    second = slices(
        [1, 2, 2, 3], [[0, 0, 0], [1, 1, 1], [-1, -1, -1], [0, 1, 0]], (4, 3)
    )
    optimizer.apply([tf.convert_to_tensor(first) if dense else first])
    before = [np.array(v) for v in optimizer.variables[2:]] + [np.array(values)]
    optimizer.apply([tf.convert_to_tensor(second) if dense else second])
    after = [np.array(v) for v in optimizer.variables[2:]] + [np.array(values)]
    changed = {
        tuple(row)
        for old, new in zip(before, after)
        if old.shape == (4, 3)
        for row in np.argwhere((old != new).any(-1))
    }
    assert changed == {(3,)}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"clipnorm": 0.5},
        {"global_clipnorm": 0.5},
        {"clipvalue": 0.01},
        {"beta_1": 0.5, "beta_2": 0.7, "epsilon": 1e-3},
    ],
)
def test_all_else_is_stock_adam(options):
    rng = fresh_rng()
    start = [rng.normal(size=s).astype("float32") for s in [(5, 3), (7,), ()]]
    schedule = LinearWarmup(1e-2, 2, 10)
    results = []
    for optimizer in (
        PKMAdam(schedule, **options),
        keras.optimizers.Adam(schedule, **options),
    ):
        variables = [keras.Variable(value) for value in start]
        optimizer.build(variables)
        gradient_rng = np.random.default_rng(5)
        for _ in range(4):
            optimizer.apply(
                [
                    tf.constant(gradient_rng.normal(size=v.shape), "float32")
                    for v in variables
                ]
            )
        results.append([np.array(v) for v in variables])
    for actual, expected in zip(*results):
        if "global_clipnorm" in options:
            np.testing.assert_allclose(actual, expected, rtol=1e-6)
        else:
            np.testing.assert_array_equal(actual, expected)


def test_slices_of_other_variables_are_summed_first():
    """As an embedding's: stock Adam takes v wrong where an index repeats."""
    embeddings = [keras.Variable(np.ones((3, 2)), name="e") for _ in range(2)]
    gradient = slices([1, 1], [[1, 2], [3, 4]], (3, 2))
    PKMAdam(0.1).apply([gradient], embeddings[:1])
    keras.optimizers.Adam(0.1).apply(
        [tf.convert_to_tensor(gradient)], embeddings[1:]
    )
    np.testing.assert_array_equal(*embeddings)


@pytest.mark.parametrize("clip", ["clipnorm", "clipvalue", "global_clipnorm"])
def test_clips_after_repeated_rows_are_summed(clip):
    """Sparse with repeats and dense gradients must end the same."""
    rng = fresh_rng()
    rows = rng.integers(0, 4, 9)
    values = rng.normal(size=(9, 3))
    dense_gradient = np.zeros((6, 3))
    np.add.at(dense_gradient, rows, values)
    kernel_gradient = tf.constant(rng.normal(size=(2, 2)), "float32")
    results = []
    for gradient in (
        slices(rows, values, (6, 3)),
        tf.constant(dense_gradient, "float32"),
    ):
        variables = [table(np.ones((6, 3))), keras.Variable(np.ones((2, 2)))]
        optimizer = PKMAdam(0.1, 0.1, epsilon=1.0, **{clip: 0.7})
        optimizer.apply([gradient, kernel_gradient], variables)
        results.append([np.array(v) for v in variables])
    for sparse, dense in zip(*results):
        np.testing.assert_allclose(sparse, dense, rtol=1e-5)
    unclipped = [table(np.ones((6, 3))), keras.Variable(np.ones((2, 2)))]
    PKMAdam(0.1, 0.1, epsilon=1.0).apply([gradient, kernel_gradient], unclipped)
    assert not np.allclose(unclipped[0], results[0][0], rtol=1e-4)


@keras.saving.register_keras_serializable("tests")
def half():
    return 0.5


@pytest.mark.parametrize("name", ["learning_rate", "memory_learning_rate"])
@pytest.mark.parametrize(
    "rate",
    [
        half,
        LinearWarmup(1.0, 0, 2),
        keras.saving.serialize_keras_object(LinearWarmup(1.0, 0, 2)),
        1,
        np.float32(0.5),
    ],
    ids=["function", "schedule", "config", "int", "numpy"],
)
def test_rates_as_keras_takes_them(name, rate):
    optimizer = PKMAdam(**{name: rate})
    config = json.loads(json.dumps(optimizer.get_config()))
    for each in (optimizer, PKMAdam.from_config(config)):
        each.build([table(np.ones((3, 2)))])
        each.iterations.assign(1)
        expected = 1 if rate == 1 else 0.5
        assert float(getattr(each, name)) == expected


def test_a_step_at_the_rate_of_a_function():
    values = table(np.ones((3, 2)))
    optimizer = PKMAdam(memory_learning_rate=half, memory_rule="sgd")
    optimizer.build([values])
    gradient = tf.IndexedSlices(
        tf.ones((1, 2)), tf.constant([1]), tf.constant([3, 2])
    )
    optimizer.apply([gradient], [values])
    np.testing.assert_array_equal(values, [[1, 1], [0.5, 0.5], [1, 1]])


@pytest.mark.parametrize("wrong", [-1, float("nan"), True, "2"])
def test_the_memory_rate_is_set_to_rates_alone(wrong):
    optimizer = PKMAdam()
    optimizer.memory_learning_rate = np.float32(0.5)
    with pytest.raises(ValueError, match="`memory_learning_rate` must be"):
        optimizer.memory_learning_rate = wrong
    assert optimizer.memory_learning_rate == 0.5
