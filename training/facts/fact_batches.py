"""Batches of facts for masked-LM tasks, as a function of the step."""

from typing import Protocol

import numpy as np
import tensorflow as tf

from training.batches.row_order import shuffled_rows
from training.batches.step_batches import step_batches


class Facts(Protocol):
    """Facts (subject, relation) → value, as a masked-LM task learns them."""

    @property
    def num_facts(self) -> int: ...

    @property
    def vocabulary_size(self) -> int: ...

    @property
    def sequence_length(self) -> int: ...

    # The information content of all values, if it is known.
    @property
    def bits(self) -> float | None: ...

    def examples_of(
        self, facts: tf.Tensor, draw: tf.Tensor | None = None
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        """Returns features, labels and weights of facts by their indices.

        What is drawn anew each time that a fact is trained depends on `draw`,
        a number for each fact. Without it, facts are asked for.
        """


def training_batches(
    facts: Facts,
    *,
    batch_size: int,
    seed: int,
    first_step: int,
    num_steps: int,
) -> tf.data.Dataset:
    """Returns shuffled batches of all facts, epoch after epoch.

    The content of a batch depends only on the seed and its step, so that a
    resumed run gets the same batches as an uninterrupted one.
    """

    def batch(
        step: tf.Tensor,
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        rows, places = shuffled_rows(facts.num_facts, batch_size, seed, step)
        return facts.examples_of(rows, places)

    steps = tf.data.Dataset.range(first_step, first_step + num_steps)
    return step_batches(steps, batch)


def some_facts(
    facts: Facts, batch_size: int, at_most: int | None = None
) -> tf.data.Dataset:
    """Returns facts in order, each once. The last batch may be smaller.

    If there are more than `at_most`, they are drawn, always the same ones.
    Every n-th one would be of the same relation, if n is a multiple of theirs.
    """
    chosen = np.arange(facts.num_facts)
    if at_most is not None and at_most < len(chosen):
        rng = np.random.default_rng(0)
        chosen = np.sort(rng.choice(chosen, at_most, replace=False))
    places = tf.data.Dataset.from_tensor_slices(chosen).batch(batch_size)
    return step_batches(places, facts.examples_of)
