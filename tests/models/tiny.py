"""Tiny models and batches for tests."""

import keras_hub
import numpy as np

from keras_pkm.layers.value_table import first_values
from keras_pkm.models import MemoryBertMaskedLM
from keras_pkm.models import MemoryBertQuestionAnswerer
from keras_pkm.models import MemoryBertTextClassifier
from keras_pkm.models import families

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


def tiny_backbone(
    memory_layers=(1, 3),
    memory_block="resm",
    memory=MEMORY,
    plain_cls=keras_hub.models.BertBackbone,
    **kwargs,
):
    """A backbone whose memories have other values than zero."""
    computed = {
        name: kwargs.pop(name)
        for name in ("feedforward_activation", "normalization_epsilon")
        if name in kwargs
    }
    return families.backbone_class(plain_cls)(
        plain_cls(**{**SIZES, **kwargs}),
        memory_layers,
        {"values_initializer": first_values(), **memory},
        memory_block,
        **computed,
    )


def tiny_masked_lm(**kwargs):
    return MemoryBertMaskedLM(tiny_backbone(**kwargs))


def tiny_classifier(num_classes=2, **kwargs):
    return MemoryBertTextClassifier(tiny_backbone(**kwargs), num_classes)


def tiny_answerer(**kwargs):
    return MemoryBertQuestionAnswerer(tiny_backbone(**kwargs))


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
        return tiny_classifier(3, **kwargs)
    task = tiny_masked_lm(**kwargs)
    task.backbone.pooled_dense.trainable = False
    return task


def half_precision_batch(eager, rng):
    """A batch for the `half_precision_task`."""
    if eager:
        return features(rng), rng.integers(0, 3, 8)
    return masked_batch(rng)
