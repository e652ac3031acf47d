"""PKMAdam against its rule in float64, and what it never touches."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_pkm.ops import mark_as_table
from keras_pkm.ops.backend import backend
from keras_pkm.optimizers import LinearWarmup
from keras_pkm.optimizers import LossScaleOptimizer
from keras_pkm.optimizers import PKMAdam
from tests.backends.stepping import MODES
from tests.backends.stepping import strategy
from tests.contracts import to_numpy

BACKEND = keras.backend.backend()
SLOTS, WIDTH = 12, 3


def rows_gradient(rows, values):
    """The gradient of a table, in which rows may be repeated."""
    rows, values = np.asarray(rows, "int32"), np.asarray(values, "float32")
    if BACKEND == "tensorflow":
        import tensorflow as tf

        return tf.IndexedSlices(
            tf.constant(values), tf.constant(rows), tf.constant([SLOTS, WIDTH])
        )
    if BACKEND == "torch":
        import torch

        return torch.sparse_coo_tensor(
            torch.tensor(rows)[None].long(),
            torch.tensor(values),
            (SLOTS, WIDTH),
            check_invariants=True,
        )
    dense = np.zeros((SLOTS, WIDTH), "float32")
    np.add.at(dense, rows, values)
    return ops.convert_to_tensor(dense)


def make_variables():
    rng = np.random.default_rng(0)
    table = keras.Variable(
        rng.normal(size=(SLOTS, WIDTH)).astype("float32"), autocast=False
    )
    mark_as_table(table)
    kernel = keras.Variable(rng.normal(size=(4, 2)).astype("float32"))
    return table, kernel


def steps(seed=1, count=4):
    """Rows (some of them twice) and gradients of a table and of a kernel."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        rows = rng.integers(0, SLOTS - 4, 5)
        yield rows, rng.normal(size=(5, WIDTH)), rng.normal(size=(4, 2))


def applier(optimizer, variables, mode):
    """A function that applies the gradients of a step."""

    def apply(rows, values, kernel):
        gradient = rows_gradient(rows, values)
        kernel = ops.convert_to_tensor(np.asarray(kernel, "float32"))
        if mode == "eager":
            optimizer.apply([gradient, kernel], variables)
        else:
            compiled(gradient, kernel)

    def step(gradient, kernel):
        optimizer.apply([gradient, kernel], variables)
        return []

    optimizer.build(list(variables))
    compiled = backend.compiled(
        step, [*variables, *optimizer.variables], strategy()
    )
    return apply


def clipped(gradients, clipnorm=None, global_clipnorm=None, clipvalue=None):
    norms = [np.linalg.norm(each) for each in gradients]
    if clipnorm:
        pairs = zip(gradients, norms)
        return [g * min(1, clipnorm / norm) for g, norm in pairs]
    if global_clipnorm:
        factor = min(1, global_clipnorm / np.linalg.norm(norms))
        return [g * factor for g in gradients]
    if clipvalue:
        return [np.clip(g, -clipvalue, clipvalue) for g in gradients]
    return gradients


def reference(
    start,
    rate,
    memory_rate,
    rule="adam",
    decay=0.0,
    mean_square=False,
    own_steps=False,
    **clip,
):
    """The variables after `steps`, in float64."""
    values, kernel = (np.asarray(each, "float64") for each in start)
    moments = [np.zeros((2, *each.shape)) for each in (values, kernel)]
    counts = np.zeros((SLOTS, 1))
    for t, (rows, of_rows, of_kernel) in enumerate(steps(), 1):
        of_table = np.zeros(values.shape)
        np.add.at(of_table, rows, of_rows)
        of_table, of_kernel = clipped([of_table, of_kernel], **clip)
        kernel = kernel - rate(t - 1) * decay * kernel
        read = (of_table != 0).any(1)
        bias = np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        squares = of_table**2
        if mean_square:
            squares = squares.mean(1, keepdims=True)
        for moment, gradient, square, chosen in (
            (moments[0], of_table, squares, read),
            (moments[1], of_kernel, of_kernel**2, slice(None)),
        ):
            moment[0][chosen] += 0.1 * (gradient - moment[0])[chosen]
            moment[1][chosen] += 0.001 * (square - moment[1])[chosen]
        (m, v), (mk, vk) = moments
        kernel = kernel - rate(t - 1) * bias * mk / (np.sqrt(vk) + 1e-7)
        if rule == "sgd":
            values[read] -= memory_rate(t - 1) * of_table[read]
        else:
            if own_steps:
                counts[read] += 1
                own = np.maximum(counts, 1)
                bias = np.sqrt(1 - 0.999**own) / (1 - 0.9**own)
            change = memory_rate(t - 1) * bias * m / (np.sqrt(v) + 1e-7)
            values[read] -= change[read]
    return values, kernel


def constant(rate):
    return lambda step: rate


WARMUP = LinearWarmup(1e-2, 2, 8)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, {}),
        ({"memory_learning_rate": "10x"}, {"memory_rate": constant(1e-1)}),
        ({"memory_rule": "sgd"}, {"rule": "sgd"}),
        ({"second_moment": "row"}, {"mean_square": True}),
        ({"bias_correction": "row"}, {"own_steps": True}),
        (
            {"second_moment": "row", "bias_correction": "row"},
            {"mean_square": True, "own_steps": True},
        ),
        ({"weight_decay": 0.1}, {"decay": 0.1}),
        ({"clipnorm": 0.5}, {"clipnorm": 0.5}),
        ({"global_clipnorm": 0.5}, {"global_clipnorm": 0.5}),
        ({"clipvalue": 0.3}, {"clipvalue": 0.3}),
        (
            {"learning_rate": WARMUP, "memory_learning_rate": "2x"},
            {
                "rate": lambda step: float(WARMUP(step)),
                "memory_rate": lambda step: 2 * float(WARMUP(step)),
            },
        ),
    ],
)
def test_the_rule(options, expected, mode):
    variables = make_variables()
    start = list(map(to_numpy, variables))
    start = [np.array(each) for each in start]
    arguments = {"learning_rate": 1e-2, "memory_learning_rate": 0.05, **options}
    optimizer = PKMAdam(**arguments)
    apply = applier(optimizer, variables, mode)
    for each in steps():
        apply(*each)
    rates = {"rate": constant(1e-2), "memory_rate": constant(0.05)}
    found = reference(start, **{**rates, **expected})
    for variable, exact in zip(variables, found):
        np.testing.assert_allclose(
            to_numpy(variable), exact, rtol=1e-5, atol=2e-6
        )
    assert int(optimizer.iterations) == 4


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "options, columns",
    [
        ({}, [WIDTH, WIDTH]),
        ({"memory_rule": "sgd"}, [WIDTH, WIDTH]),
        ({"second_moment": "row"}, [WIDTH, 1]),
        ({"bias_correction": "row"}, [WIDTH, WIDTH, 1]),
    ],
)
def test_unread_rows_and_their_moments_stay_bit_for_bit(options, columns, mode):
    variables = make_variables()
    optimizer = PKMAdam(1e-2, 0.05, clipnorm=1.0, **options)
    apply = applier(optimizer, variables, mode)
    tables = [
        each for each in optimizer.variables if each.shape[:1] == (SLOTS,)
    ]
    assert [each.shape[1] for each in tables] == columns
    for rows, values, kernel in steps():
        before = [np.array(to_numpy(each)) for each in (variables[0], *tables)]
        # A row whose gradient is zero was not read, nor is one at which reads
        # cancel.
        rows = [*rows, 8, 9, 9]
        values = [*values, np.zeros(WIDTH), np.ones(WIDTH), -np.ones(WIDTH)]
        apply(rows, values, kernel)
        unread = np.setdiff1d(np.arange(SLOTS), rows[:5])
        for old, new in zip(before, (variables[0], *tables)):
            new = to_numpy(new)
            np.testing.assert_array_equal(new[unread], old[unread])
    assert (to_numpy(variables[0])[rows[:5]] != before[0][rows[:5]]).all()


def test_a_dense_step_is_told_from_ours():
    """The test above can fail: stock Adam moves rows that nobody read."""
    table, kernel = make_variables()
    optimizer = keras.optimizers.Adam(0.05)
    first = np.zeros((SLOTS, WIDTH), "float32")
    first[2] = 1
    optimizer.apply([ops.convert_to_tensor(first)], [table])
    before = np.array(to_numpy(table))
    optimizer.apply([ops.convert_to_tensor(np.zeros_like(first))], [table])
    changed = (to_numpy(table) != before).any(1)
    assert changed.nonzero()[0].tolist() == [2]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["table", "kernel"])
def test_a_step_that_is_not_finite_is_skipped(where, bad, mode):
    variables = make_variables()
    optimizer = PKMAdam(1e-2, 0.05, weight_decay=0.1, global_clipnorm=1.0)
    apply = applier(optimizer, variables, mode)
    first, second = steps(count=2)
    apply(*first)
    everything = [*variables, *optimizer.variables]
    before = [np.array(to_numpy(each)) for each in everything]
    rows, values, kernel = (np.array(each) for each in second)
    (values if where == "table" else kernel)[1, 1] = bad
    apply(rows, values, kernel)
    for old, new in zip(before, everything):
        np.testing.assert_array_equal(to_numpy(new), old)
    apply(*second)
    assert int(optimizer.iterations) == 2


@pytest.mark.parametrize("mode", MODES)
def test_chosen_rows_alone(mode):
    variables = make_variables()
    optimizer = PKMAdam(1e-2, 0.05, only_chosen_slots=True)
    apply = applier(optimizer, variables, mode)
    first, second = steps(count=2)
    before = np.array(to_numpy(variables[0]))
    apply(*first)
    np.testing.assert_array_equal(to_numpy(variables[0]), before)
    row = int(second[0][0])
    optimizer.choose_slots(variables[0], [row, SLOTS - 1])
    apply(*second)
    changed = (to_numpy(variables[0]) != before).any(1)
    assert changed.nonzero()[0].tolist() == [row]


@pytest.mark.skipif(
    BACKEND == "jax", reason="Keras' own works in `fit` alone: training_test.py"
)
@pytest.mark.parametrize("mode", MODES)
def test_loss_scaling(mode):
    variables = make_variables()
    plain = make_variables()
    inner = PKMAdam(1e-2, 0.05)
    optimizer = LossScaleOptimizer(inner, initial_scale=8.0)
    apply = applier(optimizer, variables, mode)
    apply_plain = applier(PKMAdam(1e-2, 0.05), plain, mode)
    for rows, values, kernel in steps(count=2):
        apply(rows, 8 * values, 8 * kernel)
        apply_plain(rows, values, kernel)
    for one, other in zip(variables, plain):
        np.testing.assert_array_equal(to_numpy(one), to_numpy(other))
    rows, values, kernel = next(steps())
    apply(rows, values * np.inf, kernel)
    assert float(optimizer.dynamic_scale) == 4
    assert int(optimizer.iterations) == 2


def test_keras_own_accumulation_is_refused():
    with pytest.raises(ValueError, match="must be left out"):
        PKMAdam(gradient_accumulation_steps=2)
