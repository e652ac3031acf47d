import contextlib
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import op_callbacks

from keras_pkm.ops import embedding_bag
from keras_pkm.ops import portable_reads
from keras_pkm.ops import use_implementation
from keras_pkm.ops.tensorflow import stock_reads
from tests.contracts import assert_close
from tests.contracts import fresh_rng
from tests.graphs import tensors_with_rows

ROWS, WIDTH, TOKENS, READS = 4099, 24, 8, 5


@pytest.fixture(autouse=True, params=["fastest", "portable"])
def implementation(request):
    with use_implementation(request.param):
        yield request.param


@pytest.fixture
def table():
    return tf.Variable(tf.random.normal((ROWS, WIDTH)))


@pytest.fixture
def reads():
    """Slots with many repeats, within a token, too, and weights."""
    rng = fresh_rng()
    slots = rng.integers(0, 20, (TOKENS, READS)).astype("int32")
    slots[0, 1] = slots[0, 0]
    return tf.constant(slots), tf.random.normal((TOKENS, READS))


def plain(table, slots, weights):
    return tf.einsum("tj,tjw->tw", weights, tf.gather(table, slots))


def gradients(read, table, slots, weights):
    with tf.GradientTape() as tape:
        tape.watch(weights)
        outputs = read(table, slots, weights)
        loss = tf.reduce_sum(outputs * tf.cos(outputs))
    return tape.gradient(loss, [table, weights])


@pytest.mark.parametrize("compiled", [False, True])
def test_equals_the_plain_gather(table, reads, compiled):
    run = tf.function(gradients) if compiled else gradients
    assert_close(embedding_bag(table, *reads), plain(table, *reads), 1e-6)
    table_gradient, weights_gradient = run(embedding_bag, table, *reads)
    expected = gradients(plain, table, *reads)
    assert_close(
        tf.convert_to_tensor(table_gradient), tf.convert_to_tensor(expected[0])
    )
    assert_close(weights_gradient, expected[1])


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("tokens, count", [(0, 5), (1, 1), (130, 8), (300, 13)])
def test_any_number_of_tokens_and_reads(table, tokens, count, known):
    """In a graph, whether or not that knows the number of tokens."""
    slots = fresh_rng().integers(0, ROWS, (tokens, count)).astype("int32")
    arguments = tf.constant(slots), tf.random.normal((tokens, count))

    def run(*arguments):
        return (
            embedding_bag(table, *arguments),
            *gradients(embedding_bag, table, *arguments),
        )

    leading = tokens if known else None
    signature = [
        tf.TensorSpec((leading, count), tensor.dtype) for tensor in arguments
    ]
    graph = tf.function(run, input_signature=signature)
    outputs, table_gradient, weights_gradient = graph(*arguments)
    expected = gradients(plain, table, *arguments)
    assert_close(outputs, plain(table, *arguments), 1e-6)
    assert_close(
        tf.convert_to_tensor(table_gradient), tf.convert_to_tensor(expected[0])
    )
    assert_close(weights_gradient, expected[1])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("block", [1, 3 * READS * WIDTH, 2**21])
def test_any_size_of_blocks(table, reads, block, compiled, monkeypatch):
    """Of 1, 3 and all tokens."""
    monkeypatch.setattr(stock_reads, "_BLOCK_FLOATS", block)
    with use_implementation("portable"):
        test_equals_the_plain_gather(table, reads, compiled)


def test_gathers_few_rows_at_a_time(table, monkeypatch):
    """None of the operations sees the rows of all reads, eagerly neither."""
    tokens, block = 1000, 4
    monkeypatch.setattr(stock_reads, "_BLOCK_FLOATS", block * READS * WIDTH)
    slots = fresh_rng().integers(0, ROWS, (tokens, READS)).astype("int32")
    arguments = table, tf.constant(slots), tf.random.normal((tokens, READS))
    sizes = []

    def record(op_type, inputs, attrs, outputs, name):
        sizes.extend(output.shape.num_elements() or 0 for output in outputs)

    with use_implementation("portable"), eager_operations_seen_by(record):
        gradients(embedding_bag, *arguments)
    largest = max(tokens * WIDTH, ROWS * WIDTH, block * READS * WIDTH)
    assert len(sizes) > tokens / block
    assert max(sizes) <= largest < tokens * READS * WIDTH


@contextlib.contextmanager
def eager_operations_seen_by(callback):
    op_callbacks.add_op_callback(callback)
    try:
        yield
    finally:
        op_callbacks.remove_op_callback(callback)


@pytest.mark.parametrize("columns", [1, 7, WIDTH])
def test_a_product_in_parts_is_the_product(columns):
    matrix = np.where(fresh_rng().random((9, 5)) < 0.4, 2.0, 0.0)
    dense = tf.random.normal((5, WIDTH))
    sparse = tf.sparse.from_dense(matrix.astype("float32"))
    actual = stock_reads.product_in_parts(sparse, dense, columns)
    assert_close(actual, matrix.astype("float32") @ dense, 1e-6)


@pytest.mark.parametrize("training", [False, True])
def test_stock_gradients_in_portable_graphs(table, reads, training):
    """Row-sparse if the graph is for training, right in any case."""
    with portable_reads(training=training):
        graph = tf.function(lambda *reads: embedding_bag(table, *reads))
        graph = graph.get_concrete_function(*reads)
    actual = gradients(lambda _, *reads: graph(*reads), table, *reads)
    expected = gradients(plain, table, *reads)
    assert isinstance(actual[0], tf.IndexedSlices) == training
    assert_close(
        tf.convert_to_tensor(actual[0]), tf.convert_to_tensor(expected[0])
    )
    assert_close(actual[1], expected[1])


def test_refuses_xla_in_training(table, reads):
    run = tf.function(gradients, jit_compile=True)
    with pytest.raises(ValueError, match="memory values cannot.*jit_compile="):
        run(embedding_bag, table, *reads)


def test_gradient_names_each_row_read_once(table, reads):
    gradient, _ = gradients(embedding_bag, table, *reads)
    assert isinstance(gradient, tf.IndexedSlices)
    assert sorted(gradient.indices.numpy()) == sorted(set(np.ravel(reads[0])))
    assert gradient.values.shape == (len(gradient.indices), WIDTH)
    np.testing.assert_array_equal(gradient.dense_shape, (ROWS, WIDTH))


def test_no_tensor_of_the_table_s_rows(table, reads):
    step = tf.function(lambda *reads: gradients(embedding_bag, table, *reads))
    assert not tensors_with_rows(step.get_concrete_function(*reads).graph, ROWS)


def test_keeps_no_gathered_rows_for_the_backward_pass(table, reads):
    weights = reads[1]
    forward = tf.function(lambda w: embedding_bag(table, reads[0], w))
    with tf.GradientTape() as tape:
        tape.watch(weights)
        outputs = forward(weights)
    # What the forward function hands to its backward function.
    _, backward = forward.get_concrete_function(
        weights
    )._delayed_rewrite_functions.forward_backward()
    sizes = [t.shape.num_elements() for t in backward.inputs if t.shape.rank]
    assert max(sizes) <= TOKENS * WIDTH
    assert tape.gradient(outputs, weights).shape == weights.shape


def test_eager_tapes_keep_no_gathered_rows(table, reads, monkeypatch):
    gather, gathered = stock_reads.gather, []

    def recorded(*arguments):
        rows = gather(*arguments)
        gathered.append(weakref.ref(rows))
        return rows

    monkeypatch.setattr(stock_reads, "gather", recorded)
    with tf.GradientTape() as tape:
        tape.watch(reads[1])
        outputs = embedding_bag(table, *reads)
        assert [rows() for rows in gathered] == [None]
    assert tape.gradient(outputs, reads[1]).shape == reads[1].shape


def test_a_frozen_table_gets_no_gradient(reads):
    frozen = tf.Variable(tf.ones((ROWS, WIDTH)), trainable=False)
    assert gradients(embedding_bag, frozen, *reads)[0] is None


def test_tables_of_different_shapes_in_one_function(table, reads):
    narrow = tf.Variable(tf.random.normal((100, 7)))

    @tf.function
    def both(slots, weights):
        return (
            embedding_bag(table, slots, weights),
            embedding_bag(narrow, slots, weights),
        )

    wide_outputs, narrow_outputs = both(*reads)
    assert_close(wide_outputs, plain(table, *reads), 1e-6)
    assert_close(narrow_outputs, plain(narrow, *reads), 1e-6)


def test_plain_tensors_and_keras_variables(reads):
    tensor = tf.random.normal((ROWS, WIDTH))
    variable = keras.Variable(tensor)
    expected = plain(tensor, *reads)
    assert_close(embedding_bag(tensor, *reads), expected, 1e-6)
    assert_close(embedding_bag(variable, *reads), expected, 1e-6)


def test_half_precision_weights_are_summed_in_float32(table, reads):
    weights = tf.cast(reads[1], "bfloat16")
    outputs = embedding_bag(table, reads[0], weights)
    assert outputs.dtype == tf.float32
    expected = plain(table, reads[0], tf.cast(weights, "float32"))
    assert_close(outputs, expected, 1e-6)


def test_each_replica_reads_its_own_component(reads, mirrored):
    with mirrored.scope():
        table = tf.Variable(tf.random.normal((ROWS, WIDTH)))
    step = tf.function(
        lambda: mirrored.run(lambda: gradients(embedding_bag, table, *reads))
    )
    traced = step.get_concrete_function()
    assert not tensors_with_rows(traced.graph, ROWS)
    component = mirrored.experimental_local_results(table)[1]
    expected = gradients(plain, component, *reads)
    slices, weights_gradient = step()
    second = mirrored.experimental_local_results(slices)[1]
    assert_close(
        tf.convert_to_tensor(second), tf.convert_to_tensor(expected[0])
    )
    second = mirrored.experimental_local_results(weights_gradient)[1]
    assert_close(second, expected[1])


def test_serves_from_a_saved_model(table, reads, tmp_path):
    served = tf.train.Checkpoint(table=table)
    served.read = tf.function(
        lambda weights: embedding_bag(table, reads[0], weights),
        input_signature=[tf.TensorSpec([TOKENS, READS])],
    )
    tf.saved_model.save(served, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_array_equal(loaded.read(reads[1]), served.read(reads[1]))
    assert_close(loaded.read(reads[1]), embedding_bag(table, *reads), 1e-6)
