"""The read of a table and its gradients, against float64."""

import inspect

import keras
import numpy as np
import pytest
from keras import ops

import keras_pkm
from keras_pkm.ops.backend import backend
from tests.backends.stepping import MODES
from tests.backends.stepping import assert_close
from tests.backends.stepping import outputs_and_gradients
from tests.backends.stepping import run

BACKEND = keras.backend.backend()


def case(tokens, reads, num_slots, width, seed=0):
    rng = np.random.default_rng(seed)
    slots = rng.integers(0, num_slots, (tokens, reads)).astype("int32")
    weights = rng.normal(size=(tokens, reads)).astype("float32")
    upstream = rng.normal(size=(tokens, width)).astype("float32")
    values = rng.normal(size=(num_slots, width)).astype("float32")
    return keras.Variable(values, autocast=False), slots, weights, upstream


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "sizes",
    [
        (1, 1, 1, 1),
        (7, 5, 3, 4),  # rows that are read again and again
        (6, 70, 50, 8),  # several passes over reads, the last a short one
        (33, 8, 4096, 16),  # most rows are not read
    ],
)
def test_values_and_gradients(sizes, mode, monkeypatch):
    if BACKEND == "jax":
        # Several blocks of tokens, the last of which is padded.
        from keras_pkm.ops.jax import reads

        monkeypatch.setattr(reads, "_BLOCK_FLOATS", 4 * sizes[1] * sizes[3])
        reads._compiled_sum.clear_cache()
    table, slots, weights, upstream = case(*sizes)
    factors = keras.Variable(weights)

    def read(slots):
        return keras_pkm.ops.embedding_bag(table, slots, factors)

    outputs, (of_table, of_weights) = outputs_and_gradients(
        read, [table, factors], upstream, mode, slots
    )
    rows = np.asarray(ops.convert_to_numpy(table), "float64")[slots]
    exact = weights.astype("float64")
    assert_close(outputs, np.einsum("tj,tjw->tw", exact, rows))
    assert_close(of_weights, np.einsum("tw,tjw->tj", upstream, rows))
    expected = np.zeros(table.shape)
    np.add.at(expected, slots, exact[..., None] * upstream[:, None])
    assert_close(of_table, expected)
    unread = np.setdiff1d(np.arange(sizes[2]), slots)
    assert not of_table[unread].any()


@pytest.mark.parametrize("mode", MODES)
def test_no_tokens(mode):
    table, *_ = case(1, 3, 5, 4)
    slots, weights = np.zeros((0, 3), "int32"), np.zeros((0, 3), "float32")
    upstream = np.zeros((0, 4), "float32")
    outputs, (of_table,) = outputs_and_gradients(
        lambda s, w: keras_pkm.ops.embedding_bag(table, s, w),
        [table],
        upstream,
        mode,
        slots,
        weights,
    )
    assert outputs.shape == (0, 4)
    assert of_table.shape == (5, 4) and not of_table.any()


def test_two_reads_of_a_table_add_up():
    table, slots, weights, upstream = case(6, 4, 10, 3)

    def compute(slots, weights):
        read = keras_pkm.ops.embedding_bag(table, slots, weights)
        return read + keras_pkm.ops.embedding_bag(
            table, (slots + 1) % 10, 2 * weights
        )

    _, (of_table,) = outputs_and_gradients(
        compute, [table], upstream, "eager", slots, weights
    )
    expected = np.zeros(table.shape)
    parts = weights[..., None] * upstream[:, None]
    np.add.at(expected, slots, parts)
    np.add.at(expected, (slots + 1) % 10, 2 * parts)
    assert_close(of_table, expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("slot", [-1, 5, 1000])
def test_a_slot_that_does_not_exist_is_no_other_slot(slot, mode):
    """It is an error, or NaN where a compiled function cannot raise one."""
    table, slots, weights, _ = case(2, 3, 5, 4)
    slots[1, 2] = slot

    def read(slots, weights):
        return [keras_pkm.ops.embedding_bag(table, slots, weights, "fastest")]

    if BACKEND == "jax" or (BACKEND, mode) == ("tensorflow", "compiled"):
        (outputs,) = run(read, [table], mode, slots, weights)
        assert np.isfinite(outputs[0]).all() and np.isnan(outputs[1]).all()
        return
    if BACKEND == "torch" and ops.convert_to_tensor(0).device.type == "cuda":
        pytest.skip("an assertion on the device ends its use by the process")
    with pytest.raises(Exception, match="index|indices"):
        run(read, [table], mode, slots, weights)


@pytest.mark.skipif(BACKEND != "jax", reason="see tests/ops for TensorFlow's")
def test_second_derivatives():
    import jax
    import jax.numpy as jnp

    table, slots, weights, _ = case(6, 5, 9, 4)
    values = jnp.asarray(table.value)

    def derivative(read):
        def slope(*arguments):
            first = jax.grad(lambda *each: (read(*each) ** 3).sum(), (0, 1))
            return sum((each**2).sum() for each in first(*arguments))

        return jax.grad(slope, (0, 1))(values, jnp.asarray(weights))

    found = derivative(lambda v, w: keras_pkm.ops.embedding_bag(v, slots, w))
    stock = derivative(lambda v, w: jnp.einsum("tj,tjw->tw", w, v[slots]))
    for actual, expected in zip(found, stock):
        assert_close(actual, expected)


@pytest.mark.skipif(BACKEND == "tensorflow", reason="TensorFlow has them")
def test_derivatives_that_are_not_there_are_refused():
    table, slots, weights, _ = case(2, 3, 5, 4)
    if BACKEND == "jax":
        import jax

        def read(weights):
            return keras_pkm.ops.embedding_bag(table, slots, weights)

        with pytest.raises(TypeError, match="forward-mode"):
            jax.jvp(read, (weights,), (weights,))
        return
    import torch

    read = keras_pkm.ops.embedding_bag(table, slots, weights)
    (first,) = torch.autograd.grad(
        (read**2).sum(), table.value, create_graph=True
    )
    with pytest.raises(RuntimeError, match="not have been used|once"):
        torch.autograd.grad(first.to_dense().sum(), table.value)


@pytest.mark.parametrize("mode", MODES)
def test_search_is_exact(mode):
    rng = np.random.default_rng(3)
    queries = rng.normal(size=(9, 2, 6)).astype("float32")
    keys = rng.normal(size=(2, 2, 12, 3)).astype("float32")
    slots, scores = run(
        lambda q, k: list(keras_pkm.ops.product_key_search(q, k, 5)),
        [],
        mode,
        queries,
        keys,
    )
    first = np.einsum("thd,hnd->thn", queries[..., :3], keys[:, 0])
    second = np.einsum("thd,hnd->thn", queries[..., 3:], keys[:, 1])
    every = (first[..., :, None] + second[..., None, :]).reshape(9, 2, -1)
    best = np.argsort(-every, axis=-1)[..., :5]
    np.testing.assert_array_equal(slots, best)
    assert_close(scores, np.take_along_axis(every, best, -1))


@pytest.mark.skipif(BACKEND == "torch", reason="torch takes any of them")
@pytest.mark.parametrize("mode", MODES)
def test_of_slots_that_score_alike_the_first_are_found(mode):
    queries, keys = np.ones((3, 1, 4), "float32"), np.zeros((1, 2, 6, 2))
    (slots,) = run(
        lambda q, k: [keras_pkm.ops.product_key_search(q, k, 4)[0]],
        [],
        mode,
        queries,
        keys.astype("float32"),
    )
    np.testing.assert_array_equal(slots, np.tile(np.arange(4), (3, 1, 1)))


@pytest.mark.skipif(BACKEND != "jax", reason="JAX tells the memory of a step")
def test_a_compiled_step_needs_little_memory():
    """4,096 slots of width 768, 4,096 tokens of 128 reads: a whole train step.

    A gather would take tokens * reads * width floats, several times over.
    """
    import jax

    tokens, width = 4096, 768
    memory = keras_pkm.layers.ProductKeyMemory(64, 4, 32, 256)
    model = keras.Sequential([keras.Input((width,)), memory])
    model.compile(keras_pkm.optimizers.PKMAdam(), "mse")
    model.optimizer.build(model.trainable_variables)
    state = (
        [each.value for each in model.trainable_variables],
        [each.value for each in model.non_trainable_variables],
        [each.value for each in model.optimizer.variables],
        [each.value for each in model.metrics_variables],
    )
    batch = (jax.ShapeDtypeStruct((tokens, width), "float32"),) * 2
    step = jax.jit(model.train_step, donate_argnums=0)
    analysis = step.lower(state, batch).compile().memory_analysis()
    needed, gathered = analysis.temp_size_in_bytes, 4 * tokens * 128 * width
    print(f"temporaries: {needed / 2**20:,.0f} MiB")
    print(f"tokens x reads x width: {gathered / 2**20:,.0f} MiB")
    assert needed < gathered / 4


def test_the_functions_of_a_backend_are_complete():
    from keras_pkm.ops.backend import Backend

    functions = [name for name in vars(Backend) if not name.startswith("_")]
    found = {
        name
        for name, value in vars(backend).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert found == {*functions, *Backend.__annotations__}
    for name in functions:
        wanted = inspect.signature(getattr(Backend, name)).parameters
        found = inspect.signature(getattr(backend, name)).parameters
        assert ["self", *found] == list(wanted), name
