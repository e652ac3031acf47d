"""Weighted sum of table rows with a bounded-memory, row-sparse gradient."""

from typing import Any

from keras_pkm.ops.backend import backend
from keras_pkm.ops.tensors import Tensor


def embedding_bag(
    table: Any,
    slots: Tensor,
    weights: Tensor,
    implementation: str = "auto",
) -> Tensor:
    """Computes `sum_j weights[t, j] * table[slots[t, j]]` for every token t.

    A gather followed by a product would keep `tokens * reads * width` floats
    for the backward pass. This function keeps only `slots` and `weights`, and
    reads the rows again, a part at a time. The gradient of the table
    has one entry for each row that was read: it is `tf.IndexedSlices`, or on
    torch a sparse tensor. On JAX, whose gradients are arrays, it is dense.

    TensorFlow also supports second derivatives and the forward mode of
    `tf.autodiff`, but keeps `tokens * reads * width` floats for them. Torch
    supports neither, and JAX not the forward mode; they raise errors there.

    Args:
        table: float32 variable of shape `(num_slots, width)`: a
            `keras.Variable` created with `autocast=False`, or one of the
            backend; inside `tf.distribute` its component on the current
            replica is read. A plain tensor works too; on TensorFlow its
            gradient is dense.
        slots: int32 tensor of shape `(tokens, reads)`.
        weights: float tensor of shape `(tokens, reads)`.
        implementation: `"fastest"`, `"portable"` or `"auto"`. The fastest
            implementation needs this package's gradients, and uses XLA on
            CPUs. The portable one consists of TensorFlow's own operations.
            Defaults to `"auto"`: the portable one unless
            `keras_pkm.ops.use_implementation` chooses the other. JAX and torch
            have a single implementation.

    Returns:
        float32 tensor of shape `(tokens, width)`.

    Example:

    >>> table = keras.Variable(np.eye(3, dtype="float32"))
    >>> slots = np.array([[0, 2], [1, 1]])
    >>> weights = np.array([[0.25, 0.75], [0.5, 0.5]])
    >>> keras_pkm.ops.embedding_bag(table, slots, weights).numpy()
    array([[0.25, 0.  , 0.75],
           [0.  , 1.  , 0.  ]], dtype=float32)
    """
    return backend.embedding_bag(table, slots, weights, implementation)
