"""The normalization of a memory's queries, chosen by name."""

import keras

from keras_pkm.layers.masked_batch_normalization import MaskedBatchNormalization
from keras_pkm.ops.tensors import Tensor


def make_query_normalization(
    kind: str | None, name: str = "query_normalization"
) -> keras.layers.Layer | None:
    """Returns a layer that normalizes queries, in float32.

    Args:
        kind: `"batch"`, `"layer"`, `"half_layer"`, or `None` for no
            normalization.
        name: The name of the layer.

    Raises:
        ValueError: there is no such kind.
    """
    if kind is None:
        return None
    if kind == "batch":
        return MaskedBatchNormalization(dtype="float32", name=name)
    if kind == "layer":
        return keras.layers.LayerNormalization(dtype="float32", name=name)
    if kind == "half_layer":
        return keras.layers.LayerNormalization(
            epsilon=1e-5, dtype="float32", name=name
        )
    raise ValueError(
        '`query_normalization` must be "batch", "layer", "half_layer" or None. '
        f"Received: query_normalization={kind!r}."
    )


def normalized_shape(
    kind: str | None, num_heads: int, key_dim: int
) -> tuple[int, ...]:
    """Returns the shape in which a token's queries are normalized.

    A batch normalization has a mean and a variance for each head and
    dimension; the others normalize the last axis.
    """
    if kind == "batch":
        return (num_heads * key_dim,)
    if kind == "half_layer":
        return (num_heads, 2, key_dim // 2)
    return (num_heads, key_dim)


def normalize(
    layer: keras.layers.Layer | None,
    inputs: Tensor,
    mask: Tensor | None,
    training: bool | None,
) -> Tensor:
    """Calls a layer that `make_query_normalization` returned.

    Args:
        layer: The layer, or `None`.
        inputs: float32 tensor of shape `(tokens, ...)`.
        mask: optional bool tensor of shape `(tokens,)`, false at padding.
        training: optional bool.
    """
    if isinstance(layer, MaskedBatchNormalization):
        return layer(inputs, training=training, mask=mask)
    return inputs if layer is None else layer(inputs)
