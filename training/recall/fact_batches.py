"""Batches of facts for masked-LM tasks, as a function of the step."""

import tensorflow as tf

from training.batches.row_order import shuffled_rows
from training.batches.step_batches import step_batches
from training.recall.random_facts import RandomFacts


def training_batches(
    facts: RandomFacts,
    *,
    batch_size: int,
    seed: int,
    first_step: int,
    num_steps: int,
) -> tf.data.Dataset:
    """Returns shuffled batches of all facts, over and over.

    What stands in a batch follows from the seed and its step alone, so that a
    run that goes on sees what an uninterrupted one sees.

    Args:
        facts: The facts.
        batch_size: int. Facts in a batch.
        seed: int. Of the order.
        first_step: int. The first batch's number.
        num_steps: int. The number of batches.
    """

    def batch(step):
        rows, _ = shuffled_rows(facts.num_facts, batch_size, seed, step)
        return masked(facts, rows)

    steps = tf.data.Dataset.range(first_step, first_step + num_steps)
    return step_batches(steps, batch)


def all_facts(facts: RandomFacts, batch_size: int) -> tf.data.Dataset:
    """Returns each fact once, in order. The last batch may be smaller."""
    indices = tf.data.Dataset.range(facts.num_facts).batch(batch_size)
    return step_batches(indices, lambda rows: masked(facts, rows))


def masked(
    facts: RandomFacts, indices: tf.Tensor
) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
    """Returns features, labels and weights of a masked-LM task.

    Args:
        facts: The facts.
        indices: int64 tensor of shape `(batch,)`.

    Returns:
        Features as `keras_hub.models.BertMaskedLM` takes them, the ids of the
        values' tokens, int32 `(batch, 1)`, and weights of 1, float32.
    """
    tokens = facts.inputs_of(indices)
    labels = facts.first_value + facts.values_of(indices)[:, None]
    place = facts.sequence_length - 2
    features = {
        "token_ids": tokens,
        "segment_ids": tf.zeros_like(tokens),
        "padding_mask": tf.ones_like(tokens),
        "mask_positions": tf.fill(tf.shape(labels), place),
    }
    return features, labels, tf.ones_like(labels, dtype="float32")
