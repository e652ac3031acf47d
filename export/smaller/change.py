"""Measures how much smaller tables change a model's outputs."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from export.graph.encoder import Encoder
from export.smaller.text_inputs import batches_of
from keras_pkm.text.special_tokens import SpecialTokens

_BATCH = 32
_MASK_RATE = 0.15


def measure_change(
    before: Encoder,
    after: Encoder,
    task: keras.Model | None,
    inputs: dict,
    special: SpecialTokens,
) -> dict:
    """Compares two exports of a model on the same text."""
    compare = tf.function(
        lambda inputs: _compare(before, after, task, inputs),
        autograph=False,
        reduce_retracing=True,
    )
    is_masked_lm = hasattr(task, "masked_lm_head")
    if is_masked_lm:
        inputs = _mask(inputs, special)
    totals: dict[str, Any] = {}
    count = -(-len(inputs["input_mask"]) // _BATCH)
    for batch in tqdm(
        batches_of(inputs, _BATCH), "Change", count, disable=None
    ):
        sums = {
            name: value.numpy().astype("float64")
            for name, value in compare(batch).items()
        }
        totals = {
            name: value + totals.get(name, 0) for name, value in sums.items()
        }
    found = {"outputs": float(np.sqrt(totals["difference"] / totals["size"]))}
    if is_masked_lm:
        for name in ("before", "after"):
            found[f"perplexity {name}"] = float(
                np.exp(totals[name] / totals["masked"])
            )
    elif "same" in totals:
        found["same label"] = float(totals["same"] / totals["texts"])
    return found


def _compare(
    before: Encoder,
    after: Encoder,
    task: Any,
    inputs: dict[str, tf.Tensor],
) -> dict[str, tf.Tensor]:
    """Sums over a batch, from which `measure_change` makes its figures."""
    outputs = [e(inputs)["sequence_output"] for e in (before, after)]
    real = tf.cast(inputs["input_mask"], "float32")[..., None]
    sums = {
        "difference": tf.reduce_sum(tf.square(outputs[1] - outputs[0]) * real),
        "size": tf.reduce_sum(tf.square(outputs[0]) * real),
    }
    if hasattr(task, "masked_lm_head"):
        # The head is large, so it is applied to masked tokens only.
        labels = tf.reshape(inputs["labels"], [-1])
        places = tf.where(labels >= 0)[None, :, 0]
        labels = tf.gather(labels, places)
        sums["masked"] = tf.cast(tf.size(labels), "float32")
        for name, output in zip(("before", "after"), outputs):
            flat = tf.reshape(output, (1, -1, output.shape[-1]))
            logits = task.masked_lm_head(flat, tf.cast(places, "int32"))
            sums[name] = tf.reduce_sum(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            )
    elif hasattr(task, "num_classes"):
        labels = []
        for encoder in (before, after):
            with encoder.portable_reads():
                logits = task(encoder.features_of(inputs), training=False)
            labels.append(tf.argmax(logits, 1))
        same = tf.cast(labels[0] == labels[1], "float32")
        sums["same"] = tf.reduce_sum(same)
        sums["texts"] = tf.reduce_sum(tf.ones_like(same))
    return sums


def _mask(
    inputs: dict[str, np.ndarray], special: SpecialTokens
) -> dict[str, np.ndarray]:
    """Masks some real tokens, always the same; labels are -1 elsewhere."""
    rng = np.random.default_rng(0)
    ids = inputs["input_word_ids"]
    chosen = rng.random(ids.shape) < _MASK_RATE
    chosen &= ~np.isin(ids, special.ids)
    return {
        **inputs,
        "input_word_ids": np.where(chosen, special.mask, ids).astype("int32"),
        "labels": np.where(chosen, ids, -1).astype("int32"),
    }
