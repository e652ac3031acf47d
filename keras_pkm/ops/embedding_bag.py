"""Weighted sum of table rows with a bounded-memory, row-sparse gradient."""

import keras
import tensorflow as tf


def embedding_bag(table, slots, weights):
    """Reads `sum_j weights[t, j] * table[slots[t, j]]` for every token t.

    Unlike `tf.gather` followed by a product, the read keeps only `slots` and
    `weights` for the backward pass, where it gathers the rows again, instead
    of `tokens * reads * width` floats; and the gradient of the table arrives
    deduplicated, as `tf.IndexedSlices` with one entry for each row read.
    Neither pass reads the whole table.

    Args:
        table: float32 variable of shape `(num_slots, width)`: a
            `keras.Variable` created with `autocast=False`, or a
            `tf.Variable`; inside `tf.distribute` its component on the current
            replica is read. A plain tensor works too, with a dense gradient.
        slots: int32 tensor of shape `(tokens, reads)`.
        weights: float tensor of shape `(tokens, reads)`.

    Returns:
        float32 tensor of shape `(tokens, width)`.

    Example:

    >>> table = keras.Variable(np.eye(3, dtype="float32"))
    >>> slots = tf.constant([[0, 2], [1, 1]])
    >>> weights = tf.constant([[0.25, 0.75], [0.5, 0.5]])
    >>> keras_pkm.ops.embedding_bag(table, slots, weights).numpy()
    array([[0.25, 0.  , 0.75],
           [0.  , 1.  , 0.  ]], dtype=float32)
    """
    weights = tf.cast(weights, "float32")
    table = local_component(table)
    if not isinstance(table, tf.Variable):
        return _weighted_sum(tf.gather(table, slots), weights)

    # The raw reads below are unknown to gradient tapes. Reading no row through
    # the variable makes every active tape watch it, if it is trainable.
    tf.gather(table, tf.zeros([0], "int32"))

    # The table enters as its resource handle. Naming it in grad_fn's
    # `variables=` would make TensorFlow read it as a tensor, as a whole.
    @tf.custom_gradient
    def read(handle, slots, weights):
        def gradient(upstream):
            # The handle argument would put a dead placeholder into SavedModels
            # here; the closure's handle is the same resource.
            rows = _gather(table.handle, slots)
            weights_gradient = tf.einsum("tw,tjw->tj", upstream, rows)
            table_gradient = _row_gradient(slots, weights, upstream, table)
            return table_gradient, None, weights_gradient

        return _weighted_sum(_gather(handle, slots), weights), gradient

    outputs = read(table.handle, slots, weights)
    return tf.ensure_shape(outputs, (slots.shape[0], table.shape[1]))


def local_component(variable):
    """The plain `tf.Variable` that holds `variable` on the current replica.

    Gathering from a distributed variable itself copies the whole of it.
    """
    if isinstance(variable, keras.Variable):
        variable = variable.value
    if not isinstance(variable, tf.distribute.DistributedValues):
        return variable
    if tf.distribute.in_cross_replica_context():
        # Symbolic builds and direct calls under a scope: any component will do.
        strategy = tf.distribute.get_strategy()
        return strategy.experimental_local_results(variable)[0]
    return variable._get()


def deduplicate(slices):
    """Sums the entries of `tf.IndexedSlices` that stand for the same row."""
    rows, positions = tf.unique(slices.indices)
    values = tf.math.unsorted_segment_sum(
        slices.values, positions, tf.size(rows)
    )
    return tf.IndexedSlices(values, rows, slices.dense_shape)


def _gather(handle, slots):
    return tf.raw_ops.ResourceGather(
        resource=handle, indices=slots, dtype=tf.float32
    )


def _weighted_sum(rows, weights):
    return tf.einsum("tj,tjw->tw", weights, rows)


def _row_gradient(slots, weights, upstream, table):
    """The rows of `readsᵀ · upstream` that were read, each of them once.

    Sorted reads make one segment a row: a sorted segment sum is several times
    faster than an unsorted one or a product with a sparse matrix.
    """
    reads = slots.shape[1]
    slots = tf.reshape(slots, [-1])
    order = tf.argsort(slots, stable=True)
    rows, segments = tf.unique(tf.gather(slots, order))
    values = tf.gather(tf.reshape(weights, [-1, 1]), order) * tf.gather(
        upstream, order // reads
    )
    values = tf.math.segment_sum(values, segments)
    return tf.IndexedSlices(values, rows, tf.constant(table.shape.as_list()))
