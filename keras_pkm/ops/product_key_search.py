"""Exact top-k search over product keys."""

import functools
import itertools

from keras import ops

from keras_pkm.ops.arguments import positive_int
from keras_pkm.ops.backend import backend
from keras_pkm.ops.tensors import Tensor


def product_key_search(
    queries: Tensor,
    sub_keys: Tensor,
    top_k: int,
    implementation: str = "auto",
    dropped: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Finds the `top_k` best of the `n * n` product keys of each head.

    Slot `i * n + j` has the key `(sub_keys[h, 0, i], sub_keys[h, 1, j])`; its
    score is the sum of two dot products, one for each half of the query:

        score(i * n + j) = q[:half] · K[h, 0, i] + q[half:] · K[h, 1, j]

    The best slots are among the pairs of the `top_k` best sub-keys of each
    half, so that `2 n` dot products rank `n * n` slots. Of these `top_k²`
    pairs only those that can be among the `top_k` best are scored. The result
    is exact, including ties: the first candidate, row-major, wins. (On torch,
    any of those that tie.)

    Everything is computed in float32, whatever the dtypes of the arguments:
    half precision would make most scores tie. On GPUs with TensorFloat-32,
    TensorFlow uses it to multiply float32, so that nearly equal scores may
    change places, unless
    `tf.config.experimental.enable_tensor_float_32_execution(False)` is called.

    Args:
        queries: tensor of shape `(tokens, num_heads, key_dim)`.
        sub_keys: tensor of shape `(num_heads, 2, n, key_dim // 2)`.
        top_k: int. Number of slots to return for each head, at most `n`.
        implementation: `"fastest"`, `"portable"` or `"auto"`, as for
            `keras_pkm.ops.embedding_bag`. Defaults to `"auto"`.
        dropped: optional bool tensor of shape `(num_heads, 2, n)`, true at
            sub-keys that are not searched. If a half has fewer than `top_k`
            sub-keys left, slots of dropped ones are returned, too, with scores
            below `-1e30`. Defaults to none.

    Returns:
        A tuple `(slots, scores)`, both of shape `(tokens, num_heads, top_k)`,
        int32 and float32, sorted by descending score. Gradients flow through
        the scores.

    Example:

    >>> queries = keras.random.normal((10, 4, 64))
    >>> sub_keys = keras.random.normal((4, 2, 128, 32))
    >>> slots, scores = keras_pkm.ops.product_key_search(queries, sub_keys, 8)
    >>> slots.shape
    TensorShape([10, 4, 8])

    References:

    - [Lample et al., 2019](https://arxiv.org/abs/1907.05242), section 3.2.
    """
    top_k = positive_int("top_k", top_k)
    num_heads, _, num_sub_keys, half = sub_keys.shape
    if top_k > num_sub_keys:
        raise ValueError(
            "`top_k` must be at most the number of sub-keys of each half, "
            f"{num_sub_keys}. Received: top_k={top_k}."
        )
    if tuple(queries.shape[1:]) != (num_heads, 2 * half):
        raise ValueError(
            "`queries` must be of shape (tokens, num_heads, key_dim), with the "
            f"{num_heads} heads and the `key_dim` of `sub_keys`, {2 * half}. "
            f"Received: queries of shape {tuple(queries.shape)}."
        )
    queries = ops.cast(queries, "float32")
    sub_keys = ops.cast(sub_keys, "float32")
    find = functools.partial(stock_search, top_k, dropped=dropped)
    return backend.search(find, queries, sub_keys, implementation)


def stock_search(
    top_k: int,
    queries: Tensor,
    sub_keys: Tensor,
    dropped: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Like `product_key_search`, with the backend's own gradients."""
    num_heads, _, num_sub_keys, half = sub_keys.shape
    queries = ops.reshape(queries, (-1, num_heads, 2, half))
    # Heads first: matrix products then need no transposition.
    sub_scores = ops.einsum("thsd,hsnd->hstn", queries, sub_keys)
    if dropped is not None:
        sub_scores = ops.where(dropped[:, :, None], -2e30, sub_scores)
    sub_scores, sub_slots = ops.top_k(sub_scores, top_k)  # (h, 2, t, top_k)
    sub_slots = ops.cast(sub_slots, "int32")

    candidates = _sums_of_undominated(sub_scores[:, 0], sub_scores[:, 1], top_k)
    candidate_slots = _sums_of_undominated(
        num_sub_keys * sub_slots[:, 0], sub_slots[:, 1], top_k
    )
    scores, best = ops.top_k(candidates, top_k)
    slots = ops.take_along_axis(candidate_slots, best, axis=-1)
    return ops.transpose(slots, (1, 0, 2)), ops.transpose(scores, (1, 0, 2))


def _sums_of_undominated(first: Tensor, second: Tensor, top_k: int) -> Tensor:
    """Sums of all pairs of ranks that can be among the `top_k` best pairs.

    Every pair `(a', b')` with `a' <= a` and `b' <= b` scores at least as much
    as `(a, b)` and precedes it. There are `(a + 1) (b + 1)` such pairs,
    including `(a, b)` itself. If they are more than `top_k`, `(a, b)` cannot be
    among the best. So rank `a` is paired with the ranks below
    `top_k // (a + 1)`.

    Args:
        first: tensor of shape `(..., top_k)`, sorted by descending score.
        second: likewise.
        top_k: int.

    Returns:
        A tensor of shape `(..., pairs)`, the pairs row-major.
    """
    sums = []
    for width, group in itertools.groupby(
        range(top_k), lambda rank: top_k // (rank + 1)
    ):
        ranks = list(group)
        block = (
            first[..., ranks[0] : ranks[-1] + 1, None]
            + second[..., None, :width]
        )
        shape = (*ops.shape(block)[:-2], len(ranks) * width)
        sums.append(ops.reshape(block, shape))
    return ops.concatenate(sums, axis=-1)


def read_weights(scores: Tensor) -> Tensor:
    """Returns the softmax of each head's scores.

    Args:
        scores: float32 tensor of shape `(tokens, num_heads, top_k)`, sorted by
            descending score.
    """
    # The first score is the largest. (Keras' own softmax warns about axes of
    # length 1, which top_k=1 has.)
    weights = ops.exp(scores - scores[..., :1])
    return weights / ops.sum(weights, axis=-1, keepdims=True)
