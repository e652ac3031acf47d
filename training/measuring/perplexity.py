"""Perplexity of a masked language model, and the use of its memories."""

import dataclasses
import math
from collections.abc import Iterable

import keras
import numpy as np
import tensorflow as tf

from keras_pkm.probing.memory_probe import usage_figures
from keras_pkm.probing.memory_probe import usage_metrics
from training.batches.step_batches import step_batches


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What a pass over some text has found.

    Attributes:
        nll: float64 of shape `(sequences,)`, the sums of -ln p of the masked
            tokens of each.
        tokens: float64 of shape `(sequences,)`, how many these are.
        memory_usage: For each memory layer, counted from 1, the figures of
            `keras_pkm.metrics.MemoryUsage`.
        num_slots: Slots of each memory, 0 without any.
    """

    nll: np.ndarray
    tokens: np.ndarray
    memory_usage: dict[int, dict[str, float]]
    num_slots: int = 0

    @property
    def perplexity(self) -> float:
        """The exponential of the mean of -ln p over all masked tokens."""
        return math.exp(self.nll.sum() / self.tokens.sum())

    @property
    def standard_error(self) -> float:
        """Of the perplexity, by how its value differs between sequences.

        The mean is a ratio of two sums over sequences, whose tokens are not
        independent of each other; the sequences are taken to be.
        """
        count = len(self.nll)
        if count < 2:
            return math.nan
        mean = self.nll.sum() / self.tokens.sum()
        residuals = self.nll - mean * self.tokens
        variance = count / (count - 1) * np.sum(residuals**2)
        return self.perplexity * math.sqrt(variance) / self.tokens.sum()


def evaluate_masked_lm(
    task: keras.Model, batches: Iterable, progress=lambda batches: batches
) -> Evaluation:
    """Runs a masked-LM task over masked batches, once.

    Args:
        task: masked-LM task of keras-hub or `keras_pkm.models`.
        batches: of features, label ids and weights, as
            `training.batches.masked_lm` makes them; rows without any weight are
            left out. With several replicas they must divide by these.
        progress: wraps the batches.
    """
    backbone = task.backbone
    outputs = backbone.output
    if isinstance(outputs, dict):
        outputs = outputs["sequence_output"]
    logits = task.masked_lm_head(outputs, task.input["mask_positions"])
    memories = getattr(backbone, "memory_outputs", {})
    # One pass for both.
    model = keras.Model(task.input, {"logits": logits, "memories": memories})
    strategy = task.distribute_strategy
    with strategy.scope():
        usage = usage_metrics(backbone)

    def step(features, labels, weights):
        inputs = {name: features[name] for name in task.input}
        found = model(inputs, training=False)
        nll = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels, tf.cast(found["logits"], "float32")
        )
        for number, (slots, read_weights) in found["memories"].items():
            usage[number].update_state(
                slots, read_weights, padding_mask=features["padding_mask"]
            )
        weights = tf.cast(weights, "float64")
        nll = tf.cast(nll, "float64")
        sums = (tf.reduce_sum(part, -1) for part in (nll * weights, weights))
        return tf.stack(list(sums), axis=-1)

    @tf.function(reduce_retracing=True)
    def step_everywhere(*batch):
        return strategy.gather(strategy.run(step, batch), axis=0)

    if strategy.num_replicas_in_sync > 1:
        batches = strategy.experimental_distribute_dataset(batches)
    sums = [step_everywhere(*batch) for batch in progress(batches)]
    nll, tokens = np.concatenate(sums).T
    return Evaluation(
        nll[tokens > 0],
        tokens[tokens > 0],
        usage_figures(usage),
        max((metric.num_slots for metric in usage.values()), default=0),
    )


def one_by_one(packed: np.ndarray, masking, batch_size: int) -> tf.data.Dataset:
    """Returns each token of each row masked alone, for pseudo-perplexity.

    That is exp of the mean of -ln p(token | all others): Salazar et al.,
    "Masked Language Model Scoring" (2020). It takes as many passes over a row
    as it has tokens.

    Args:
        packed: int32 array of shape `(rows, sequence_length)`.
        masking: `Masking`.
        batch_size: int. Masked rows in a batch. The last is filled up with
            rows of weight 0.
    """
    special = np.array(masking.special_token_ids)
    rows, positions = np.nonzero(~np.isin(packed, special))
    count = len(rows)

    def read(step):
        places = step * batch_size + np.arange(batch_size)
        weights = (places < count).astype("float32")
        places = np.minimum(places, count - 1)
        token_ids = np.array(packed[rows[places]], "int32")
        column = positions[places].astype("int32")
        labels = token_ids[np.arange(batch_size), column]
        token_ids[np.arange(batch_size), column] = masking.mask_token_id
        return token_ids, column[:, None], labels[:, None], weights[:, None]

    def batch(step):
        token_ids, column, labels, weights = tf.numpy_function(
            read,
            [step],
            [tf.int32, tf.int32, tf.int32, tf.float32],
            stateful=False,
        )
        token_ids.set_shape((batch_size, packed.shape[1]))
        for tensor in (column, labels, weights):
            tensor.set_shape((batch_size, 1))
        features = {
            "token_ids": token_ids,
            "segment_ids": tf.zeros_like(token_ids),
            "padding_mask": tf.cast(
                token_ids != masking.pad_token_id, tf.int32
            ),
            "mask_positions": column,
        }
        return features, labels, weights

    steps = tf.data.Dataset.range(-(-count // batch_size))
    return step_batches(steps, batch)
