"""The normalization of a memory's queries, by its name."""

import keras

from keras_pkm.layers.masked_batch_normalization import MaskedBatchNormalization


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
