"""A range of the facts of a source."""

import dataclasses

import tensorflow as tf

from training.facts.fact_batches import Facts


@dataclasses.dataclass(frozen=True)
class FactRange:
    """A range of consecutive facts of a source."""

    source: Facts
    # The index of the first fact.
    first: int
    num_facts: int

    @property
    def vocabulary_size(self) -> int:
        return self.source.vocabulary_size

    @property
    def sequence_length(self) -> int:
        return self.source.sequence_length

    @property
    def bits(self) -> float | None:
        bits = self.source.bits
        return bits and bits * self.num_facts / self.source.num_facts

    def examples_of(
        self, facts: tf.Tensor, draw: tf.Tensor | None = None
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        return self.source.examples_of(facts + self.first, draw)
