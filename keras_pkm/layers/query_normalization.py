"""The normalization of a memory's queries, chosen by name."""

import keras
from keras import ops

from keras_pkm.layers.masked_batch_normalization import MaskedBatchNormalization
from keras_pkm.ops.tensors import Tensor


def make_query_normalization(name: str | None) -> keras.layers.Layer | None:
    """Returns a layer that normalizes queries, in float32.

    Args:
        name: `"batch"`, `"layer"`, or `None` for no normalization.

    Raises:
        ValueError: the name is unknown.
    """
    if name not in ("batch", "layer", None):
        raise ValueError(
            '`query_normalization` must be "batch", "layer" or None. '
            f"Received: query_normalization={name!r}."
        )
    kind = {
        "batch": MaskedBatchNormalization,
        "layer": keras.layers.LayerNormalization,
        None: None,
    }[name]
    return kind and kind(dtype="float32", name="query_normalization")


def build_query_normalization(
    layer: keras.layers.Layer | None, num_heads: int, key_dim: int
) -> None:
    """Builds the layer that `make_query_normalization` returned."""
    if isinstance(layer, MaskedBatchNormalization):
        # One mean and variance for each (head, dimension).
        layer.build((None, num_heads * key_dim))
    elif layer is not None:
        layer.build((None, num_heads, key_dim))


def normalize_queries(
    layer: keras.layers.Layer | None,
    queries: Tensor,
    num_heads: int,
    mask: Tensor | None,
    training: bool | None,
) -> Tensor:
    """Normalizes queries.

    Args:
        layer: The layer that `make_query_normalization` returned, or `None`.
        queries: float32 tensor of shape `(tokens, num_heads * key_dim)`.
        num_heads: int.
        mask: optional bool tensor of shape `(tokens,)`, false at padding.
        training: optional bool.

    Returns:
        float32 tensor of shape `(tokens, num_heads, key_dim)`.
    """
    if isinstance(layer, MaskedBatchNormalization):
        queries = layer(queries, training=training, mask=mask)
    shape = (-1, num_heads, queries.shape[-1] // num_heads)
    queries = ops.reshape(queries, shape)
    if isinstance(layer, keras.layers.LayerNormalization):
        queries = layer(queries)
    return queries
