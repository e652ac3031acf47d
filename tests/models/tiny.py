"""Tiny models and batches for tests."""

import numpy as np

from keras_pkm.models import PKMBertBackbone
from keras_pkm.models import PKMBertMaskedLM
from keras_pkm.models import PKMBertTextClassifier

SIZES = {
    "vocabulary_size": 100,
    "num_layers": 3,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 32,
    "max_sequence_length": 20,
    "dropout": 0.0,
}
# For train steps as graphs, which take seconds to trace for each layer.
ONE_LAYER = {"num_layers": 1, "memory_layers": (1,)}
MEMORY = {"num_sub_keys": 11, "num_heads": 2, "top_k": 4, "key_dim": 8}


def tiny_backbone(memory_layers=(1, 3), memory_block="resm", **kwargs):
    return PKMBertBackbone(
        **{**SIZES, "memory": MEMORY, **kwargs},
        memory_layers=memory_layers,
        memory_block=memory_block,
    )


def tiny_masked_lm(**kwargs):
    return PKMBertMaskedLM(tiny_backbone(**kwargs))


def features(rng, batch=8, length=12):
    """Ragged features of a backbone, as numpy arrays."""
    lengths = rng.integers(4, length + 1, (batch, 1))
    return {
        "token_ids": rng.integers(0, 100, (batch, length)),
        "segment_ids": np.zeros((batch, length), "int32"),
        "padding_mask": (np.arange(length) < lengths).astype("int32"),
    }


def masked_batch(rng, batch=8, length=12, masks=3):
    """Features, labels and weights of a masked-LM task."""
    x = features(rng, batch, length)
    x["mask_positions"] = rng.integers(0, 4, (batch, masks))
    labels = rng.integers(0, 100, (batch, masks))
    weights = (rng.random((batch, masks)) < 0.8).astype("float32")
    return x, labels, weights


def half_precision_task(eager, **kwargs):
    """A masked LM of one layer, or a classifier if steps are eager.

    keras-hub's masked-LM head fails eagerly in half precision.
    """
    kwargs = {**ONE_LAYER, "dtype": "mixed_float16", **kwargs}
    if eager:
        return PKMBertTextClassifier(tiny_backbone(**kwargs), num_classes=3)
    task = tiny_masked_lm(**kwargs)
    task.backbone.pooled_dense.trainable = False
    return task


def half_precision_batch(eager, rng):
    """A batch for the `half_precision_task`."""
    if eager:
        return features(rng), rng.integers(0, 3, 8)
    return masked_batch(rng)
