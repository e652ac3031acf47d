"""The gradient of a search, which few of all scores contribute to."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_pkm.ops.tensorflow.csr_matrix import csr_matrix
from keras_pkm.ops.tensorflow.stock_gradient import with_gradient_of


def with_sparse_gradient(
    search: Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]],
    queries: tf.Tensor,
    sub_keys: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Runs a search over product keys, with a gradient by sparse products.

    A head scores `2 n` sub-keys and keeps `top_k` pairs of them. The gradient
    of all scores is therefore a sparse matrix. Products with it take a fifth of
    the time of dense products.

    Args:
        search: A function of both tensors that returns `(slots, scores)`, as
            `keras_pkm.ops.product_key_search` does.
        queries: float32 tensor of shape `(tokens, num_heads, key_dim)`.
        sub_keys: float32 tensor of shape `(num_heads, 2, n, key_dim // 2)`.

    Returns:
        What `search` returns.
    """
    num_heads, _, n, half = sub_keys.shape

    @tf.custom_gradient
    def run(
        queries: tf.Tensor, sub_keys: tf.Tensor
    ) -> tuple[tuple[tf.Tensor, tf.Tensor], Callable[..., Any]]:
        slots, scores = search(queries, sub_keys)

        def stock(
            queries: tf.Tensor, sub_keys: tf.Tensor, upstream: tf.Tensor
        ) -> tuple[tf.Tensor, tf.Tensor]:
            with tf.GradientTape() as tape:
                tape.watch([queries, sub_keys])
                _, scores = search(queries, sub_keys)
            return tape.gradient(scores, (queries, sub_keys), upstream)

        def products(
            queries: tf.Tensor, sub_keys: tf.Tensor, upstream: tf.Tensor
        ) -> tuple[tf.Tensor, tf.Tensor]:
            # A row for each half of a query, a column for each sub-key.
            numbers = tf.stack([slots // n, slots % n], axis=2)  # (t, h, 2, k)
            first = n * tf.range(2 * num_heads)
            columns = numbers + tf.reshape(first, (num_heads, 2, 1))
            top_k = slots.shape[-1]
            height = 2 * num_heads * tf.shape(slots)[0]
            matrix = csr_matrix(
                tf.repeat(tf.range(height), top_k),
                tf.reshape(columns, [-1]),
                tf.reshape(tf.repeat(upstream[:, :, None], 2, axis=2), [-1]),
                (height, 2 * num_heads * n),
            )
            transposed = tf.raw_ops.SparseMatrixTranspose(
                input=matrix, type=tf.float32
            )
            of_queries = tf.raw_ops.SparseMatrixMatMul(
                a=matrix, b=tf.reshape(sub_keys, (-1, half))
            )
            of_sub_keys = tf.raw_ops.SparseMatrixMatMul(
                a=transposed, b=tf.reshape(queries, (-1, half))
            )
            return (
                tf.reshape(of_queries, tf.shape(queries)),
                tf.reshape(of_sub_keys, sub_keys.shape),
            )

        def products_unless_empty(
            queries: tf.Tensor, sub_keys: tf.Tensor, upstream: tf.Tensor
        ) -> tuple[tf.Tensor, tf.Tensor]:
            # A product with an empty matrix would crash the process.
            return tf.cond(
                tf.size(slots) > 0,
                lambda: products(queries, sub_keys, upstream),
                lambda: (tf.zeros_like(queries), tf.zeros_like(sub_keys)),
            )

        def gradient(
            _: tf.Tensor, upstream: tf.Tensor
        ) -> tuple[tf.Tensor, tf.Tensor]:
            backward = with_gradient_of(stock, products_unless_empty)
            return backward(queries, sub_keys, tf.convert_to_tensor(upstream))

        return (slots, scores), gradient

    return run(queries, sub_keys)
