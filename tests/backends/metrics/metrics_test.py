"""Metrics on every backend, against sums in float64 of numpy."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_pkm.metrics import ClassMemoryUsage
from keras_pkm.metrics import MatthewsCorrelation
from keras_pkm.metrics import MemoryStaleness
from keras_pkm.metrics import MemoryUsage
from keras_pkm.metrics import format_memory_usage
from keras_pkm.metrics.class_labels import class_labels
from keras_pkm.metrics.dtypes import WIDEST_FLOAT
from keras_pkm.metrics.exact_sums import FloatSums
from keras_pkm.metrics.numbers import result_numbers

BACKEND = keras.backend.backend()
# On TensorFlow, `tests/metrics` tries the same, and more.
pytestmark = [pytest.mark.slow] if BACKEND == "tensorflow" else []
WAYS = {
    "tensorflow": ["eager", "graph", "xla"],
    "jax": ["eager", "jit"],
    "torch": ["eager"],
}[BACKEND]
each_way = pytest.mark.parametrize("way", WAYS)
ROUNDING = 1e-6 if WIDEST_FLOAT == "float32" else 1e-12


def functions(metric, way):
    """The functions that update a metric and that return its result."""
    if way == "eager":
        return metric.update_state, metric.result
    if BACKEND == "tensorflow":
        import tensorflow as tf

        return (
            tf.function(metric.update_state, jit_compile=way == "xla"),
            tf.function(metric.result, jit_compile=way == "xla"),
        )
    import jax

    new_state = jax.jit(metric.stateless_update_state)
    result = jax.jit(metric.stateless_result)

    def values():
        return [variable.value for variable in metric.variables]

    def update(*arguments):
        new = new_state(values(), *arguments)
        for variable, value in zip(metric.variables, new):
            variable.assign(value)

    return update, lambda: result(values())


def figures(metric, way, updates):
    """The result after some updates, as Python numbers."""
    update, result = functions(metric, way)
    for arguments in updates:
        update(*map(ops.convert_to_tensor, arguments))
    return keras.tree.map_structure(float, result())


def accesses(rng, num_slots, count=3):
    """Slots, weights, labels and masks of some batches."""
    shape = (8, 5, 3, 2)
    return [
        (
            rng.integers(0, num_slots, shape).astype("int32"),
            rng.random(shape).astype("float32"),
            rng.integers(-1, 3, 8).astype("int32"),
            rng.random(shape[:2]) < 0.7,
        )
        for _ in range(count)
    ]


def counts_by_hand(batches, num_slots, labels=(-1, 0, 1, 2)):
    """The counts of examples that have one of some labels."""
    sums = {
        name: np.zeros(num_slots)
        for name in ("reads", "top1", "top1_of_token", "weights")
    }
    for slots, weights, classes, mask in batches:
        kept = mask & np.isin(classes, labels)[:, None]
        for token, shares in zip(slots[kept], weights[kept].astype("float64")):
            np.add.at(sums["reads"], token, 1)
            np.add.at(sums["weights"], token, shares)
            np.add.at(sums["top1"], token[range(3), shares.argmax(-1)], 1)
            sums["top1_of_token"][token.reshape(-1)[shares.argmax()]] += 1
    return sums


def divergence(amounts):
    p = amounts[amounts > 0] / amounts.sum()
    return np.log(len(amounts)) + np.sum(p * np.log(p))


@each_way
def test_memory_usage(way):
    num_slots = 50
    batches = accesses(np.random.default_rng(0), num_slots)
    metric = MemoryUsage(num_slots)
    actual = figures(metric, way, [(s, w, m) for s, w, _, m in batches])
    sums = counts_by_hand(batches, num_slots)
    expected = {
        "mu": np.mean(sums["reads"] > 0),
        "top1_mu": np.mean(sums["top1"] > 0),
        "top1_token_mu": np.mean(sums["top1_of_token"] > 0),
        "kl_u": divergence(sums["reads"]),
        "kl_w": divergence(sums["weights"]),
        "top1_reads": sums["top1"].sum(),
    }
    assert actual == pytest.approx(expected, ROUNDING, ROUNDING)
    for name, values in metric.counts.items():
        is_exact = name != "weights"
        assert values.dtype == ("int64" if is_exact else "float64")
        np.testing.assert_allclose(
            values, sums[name], 0 if is_exact else ROUNDING
        )
    metric.reset_state()
    assert not any(map(float, metric.result().values()))


@each_way
def test_class_memory_usage(way):
    batches = accesses(np.random.default_rng(1), 50)
    metric = ClassMemoryUsage(50)
    actual = figures(metric, way, batches)
    no, yes = (counts_by_hand(batches, 50, [label])["top1"] for label in (0, 1))
    np.testing.assert_array_equal(metric.counts, [no, yes])
    p, q = yes / yes.sum(), no / no.sum()
    smoothed = (no + 0.5) / (no.sum() + 25)
    kept = p > 0
    expected = {
        "kl": np.sum(p[kept] * np.log(p[kept] / smoothed[kept])),
        "outside": p[q == 0].sum(),
        "iou": np.minimum(p, q).sum() / np.maximum(p, q).sum(),
        "reads_0": no.sum(),
        "reads_1": yes.sum(),
    }
    assert actual == pytest.approx(expected, ROUNDING, ROUNDING)


@each_way
def test_memory_staleness(way):
    metric = MemoryStaleness(4)
    reads = [[1, 0, 2, 0], [0, 0, 3, 0], [0, 0, 1, 1]]
    updates = list(zip(np.array(reads, "int32"), [0, 5, 2**31 - 1]))
    actual = figures(metric, way, updates)
    assert metric.last_steps.tolist() == [0, -1, 2**31 - 1, 2**31 - 1]
    assert metric.last_steps.dtype == "int64"
    assert actual == {"fresh": 0.5, "stale": 0.25, "never": 0.25}


@each_way
def test_steps_that_do_not_grow(way):
    metric = MemoryStaleness(2)
    update, _ = functions(metric, way)
    update(ops.array([1, 0]), ops.array(3))
    for step in (2, 3):
        arguments = ops.array([1, 1]), ops.array(step)
        if way in ("xla", "jit"):  # where nothing can be raised
            update(*arguments)
        else:
            with pytest.raises(Exception, match="`step` must be .* larger"):
                update(*arguments)
    assert metric.last_steps.tolist() == [3, -1]
    with pytest.raises(ValueError, match=r"below 2\*\*31"):
        metric.update_state([1, 1], 2**31)


def correlation(confusion):
    """The common formula, in float64."""
    total, c = confusion.sum(), np.trace(confusion)
    true, predicted = confusion.sum(1), confusion.sum(0)
    return (c * total - true @ predicted) / np.sqrt(
        (total**2 - predicted @ predicted) * (total**2 - true @ true)
    )


@each_way
@pytest.mark.parametrize(("num_classes", "weighted"), [(2, False), (5, True)])
def test_matthews_correlation(way, num_classes, weighted):
    """Of 30,000 examples, 99.9 % are of one class."""
    rng = np.random.default_rng(2)
    size = (3, 10_000)
    true, noise = rng.integers(0, num_classes, (2, *size))
    true[rng.random(size) < 0.999] = 0
    predicted = np.where(rng.random(size) < 5e-4, noise, true)
    weights = rng.random(size) if weighted else np.ones(size)
    actual = figures(
        MatthewsCorrelation(num_classes),
        way,
        zip(
            true.astype("int32"),
            np.eye(num_classes, dtype="float32")[predicted],
            weights.astype("float32"),
        ),
    )
    confusion = np.zeros((num_classes, num_classes))
    np.add.at(confusion, (true, predicted), weights.astype("float32"))
    expected = correlation(confusion)
    assert 0.2 < expected < 0.9
    # The common formula itself loses some digits here.
    assert actual == pytest.approx(expected, 5 * ROUNDING)


@each_way
@pytest.mark.parametrize(
    ("confusion", "expected"),
    [
        ([[0, 0], [0, 0]], 0),
        ([[5, 0], [7, 0]], 0),
        ([[5, 7], [0, 0]], 0),
        ([[3e9, 0], [0, 5e9]], 1),
        ([[0, 3], [5, 0]], -1),
        ([[1e30, 0], [0, 1e30]], 1),
        ([[1e-30, 0], [0, 1e-30]], 1),
    ],
)
def test_extremes_of_matthews_correlation(way, confusion, expected):
    cells = [
        (np.array([true]), np.eye(2)[[predicted]], np.array([weight]))
        for (true, predicted), weight in np.ndenumerate(confusion)
        if weight
    ]
    assert figures(MatthewsCorrelation(), way, cells) == expected


WRONG = [
    ([0, 2], [[1.0, 0], [0, 1]]),
    ([0, -1], [[1.0, 0], [0, 1]]),
    ([0, 0.9], [[1.0, 0], [0, 1]]),
    ([[1, 1], [0, 1]], [[1.0, 0], [0, 1]]),
    ([0, 1], [0.5, 1.5]),
]


@each_way
@pytest.mark.parametrize(("true", "predicted"), WRONG)
def test_wrong_values(way, true, predicted):
    metric = MatthewsCorrelation()
    update, result = functions(metric, way)
    arguments = ops.array(true), ops.array(predicted)
    if way in ("xla", "jit"):  # where nothing can be raised
        update(*arguments)
        assert np.isnan(float(result()))
    else:
        with pytest.raises(Exception, match="`y_(true|pred)`.* must be"):
            update(*arguments)


@pytest.mark.parametrize("texts", [["0", "1"], np.array(["0", "1"], object)])
def test_labels_that_are_texts(texts):
    with pytest.raises(ValueError, match="`y_true` must be numbers"):
        MatthewsCorrelation().update_state(texts, np.eye(2))


def test_lengths_that_do_not_fit():
    with pytest.raises(ValueError, match="the same number of examples"):
        MatthewsCorrelation().update_state([0, 1, 1], np.eye(2))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "bool"])
def test_labels_of_all_dtypes(dtype):
    labels = np.array([0, 1, 1, 0], dtype)
    assert ops.convert_to_numpy(
        class_labels(labels, "labels", 300)
    ).tolist() == [
        0,
        1,
        1,
        0,
    ]


def test_integer_labels_that_float32_cannot_hold():
    labels = np.array([2**24 + 1, 2**30 + 1], "int32")
    for num_classes in (None, 2**31 - 1):
        classes = class_labels(labels, "labels", num_classes)
        np.testing.assert_array_equal(ops.convert_to_numpy(classes), labels)


def preset(metric, name, values):
    """Sets a metric's variable."""
    (variable,) = (v for v in metric.variables if v.name == name)
    variable.assign(values)


def test_a_batch_without_examples():
    """Such as that of a replica which gets none of the last ones."""
    metric = ClassMemoryUsage(4)
    metric.update_state(np.zeros((0, 3, 1, 2)), np.zeros((0, 3, 1, 2)), [])
    assert metric.counts.sum() == 0


@each_way
def test_counts_are_exact(way):
    start = np.array([2**20 - 1, 2**24, 2**31 - 1, 2**50])
    high, low = np.divmod(start, 2**20)
    usage, by_class = MemoryUsage(4), ClassMemoryUsage(4)
    for name in ("reads", "top1"):
        preset(usage, f"{name}_high", high)
        preset(usage, f"{name}_low", low)
    preset(by_class, "top1_high", [*high, 0, 0, 0, 0])
    preset(by_class, "top1_low", [*low, 0, 0, 0, 0])
    slots = np.array([0, 1, 2, 3, 0, 0]).reshape(6, 1, 1)
    access = slots, np.ones((6, 1, 1))
    figures(usage, way, [access])
    figures(by_class, way, [(*access, np.array([0, 0, 0, 0, 0, 1]))])
    assert usage.counts["reads"].tolist() == (start + [3, 1, 1, 1]).tolist()
    zeros, ones = by_class.counts.tolist()
    assert zeros == (start + [2, 1, 1, 1]).tolist()
    assert ones == [1, 0, 0, 0]
    # Python numbers are exact, whatever the result is rounded to.
    total = int(start.sum()) + 6
    assert usage.totals == {"top1_reads": total}
    assert by_class.totals == {"reads_0": total - 1, "reads_1": 1}
    numbers = result_numbers(usage)
    assert numbers["top1_reads"] == total
    assert isinstance(numbers["top1_reads"], int)
    rounded = float(usage.result()["top1_reads"])
    assert rounded == pytest.approx(total, ROUNDING)


class Sums(keras.metrics.Metric):
    """The sums of the columns of a matrix, row by row."""

    def __init__(self, size):
        super().__init__(name="sums")
        self.sums = FloatSums(self, size, "sums")

    def update_state(self, amounts):
        self.sums.add(ops.arange(len(amounts)), ops.cast(amounts, WIDEST_FLOAT))

    def result(self):
        return self.sums.as_float()


@pytest.mark.parametrize("way", WAYS[-1:])
def test_small_weights_are_not_lost_in_large_sums(way):
    """2**20 additions of what float32 would round away."""
    metric = Sums(2**10)
    preset(metric, "sums_high", np.full(2**10, 2.0**24))
    update, result = functions(metric, way)
    amounts = np.random.default_rng(3).random((2**10, 2**10))
    amounts = amounts.astype("float32")
    for row in amounts:
        update(ops.convert_to_tensor(row))
    expected = 2.0**24 + amounts.astype("float64").sum(0)
    np.testing.assert_allclose(metric.sums.totals, expected, 1e-12)
    np.testing.assert_allclose(
        ops.convert_to_numpy(result()), expected, ROUNDING
    )


@each_way
def test_divergence_of_nearly_even_use(way):
    """The difference of two entropies would have no digit left in float32."""
    size = 4000
    metric = MemoryUsage(size)
    weights = 1 + 1e-3 * np.sin(np.arange(size, dtype="float32"))
    access = np.arange(size).reshape(-1, 1, 1), weights.reshape(-1, 1, 1)
    actual = figures(metric, way, [access])
    assert actual["kl_u"] == 0
    expected = divergence(weights.astype("float64"))
    assert expected < 1e-6
    assert actual["kl_w"] == pytest.approx(expected, abs=ROUNDING / 10)


def test_table():
    metric = MemoryUsage(4)
    metric.update_state([[[0, 1]], [[0, 3]]], np.full((2, 1, 2), 0.5))
    usage = {name: float(value) for name, value in metric.result().items()}
    line = "| 2 | 4 | 75.0 | 25.0 | 25.0 | 0.35 | 0.35 | 2 |"
    assert format_memory_usage({2: usage}, 4)[3] == line
    assert format_memory_usage({2: result_numbers(metric)}, 4)[3] == line
