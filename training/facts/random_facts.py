"""Random facts, whose information content is known."""

import dataclasses
import math

import numpy as np
import tensorflow as tf

from training.runs.user_error import UserError

PADDING, START, END, MASK = range(4)
_SPECIAL = 4


@dataclasses.dataclass(frozen=True)
class RandomFacts:
    """Facts (subject, relation) → value, which depend only on a seed.

    Fact `i` says which value the relation `i % num_relations` has for the
    subject `i // num_relations`. Every subject has a different name of
    `name_length` tokens. Values are drawn uniformly and independently, so that
    each has `log2(num_values)` bits and can only be memorized. No fact is
    stored: it is computed from its index.

    References:

    - Allen-Zhu and Li, 2024, [Physics of Language Models: Part
      3.3](https://arxiv.org/abs/2404.05405).
    """

    num_facts: int
    # Number of different values.
    num_values: int = 1024
    # Number of relations of each subject.
    num_relations: int = 4
    # Number of tokens of a name.
    name_length: int = 3
    # Number of different tokens in names, or with synonyms of their meanings.
    name_tokens: int = 128
    # Number of tokens of each meaning in names. Each time that a fact is
    # trained, others are drawn. It is asked for in tokens of which no two are
    # ever trained together, of any subject.
    synonyms: int = 1
    seed: int = 0
    # Whether the inputs are those of a causal model.
    causal: bool = False

    def __post_init__(self) -> None:
        if 1 < self.synonyms < self.name_length:
            raise UserError(
                f"--synonyms must be 1, or at least the {self.name_length} "
                "words of a name, so that no two of those that are asked for "
                f"are trained together; received {self.synonyms}"
            )
        most = self._num_names * self.num_relations
        if not 1 <= self.num_facts <= most:
            raise UserError(
                f"--facts must be from 1 to {most:,}, because there are names "
                f"for {self._num_names:,} subjects, which have "
                f"{self.num_relations} relations each; received "
                f"{self.num_facts:,}"
            )

    @property
    def _num_names(self) -> int:
        return self.name_tokens**self.name_length

    @property
    def vocabulary_size(self) -> int:
        """The number of tokens: special, of names, relations, and values."""
        return self.first_value + self.num_values

    @property
    def first_value(self) -> int:
        """The id of the first value's token; the other values follow."""
        return _SPECIAL + self._num_words + self.num_relations

    @property
    def _num_words(self) -> int:
        return self.name_tokens * self.synonyms

    @property
    def sequence_length(self) -> int:
        """Tokens of `[CLS] name relation [MASK] [SEP]`, or of its start."""
        return self.name_length + (2 if self.causal else 4)

    @property
    def bits(self) -> float:
        """The information content of all values, in bits."""
        return self.num_facts * math.log2(self.num_values)

    def values_of(self, facts: tf.Tensor) -> tf.Tensor:
        """Returns the values of facts, from 0 to `num_values - 1`."""
        # SipHash. (`index_shuffle` gives dependent results for neighbours; that
        # is good enough for names, which need only differ.)
        drawn = tf.strings.to_hash_bucket_strong(
            tf.strings.as_string(facts), self.num_values, key=[self.seed, 0]
        )
        return tf.cast(drawn, "int32")

    def _synonyms_of(
        self, facts: tf.Tensor, draw: tf.Tensor | None
    ) -> tf.Tensor:
        """Which of its synonyms each token of the subjects is."""
        # Where a fact is asked for, the token at place i, less i, is the same
        # for all places; where it is trained, it differs at each place.
        kind = "asked" if draw is None else tf.strings.as_string(draw)
        text = tf.strings.join([tf.strings.as_string(facts), "/", kind])
        choices = self.synonyms - np.arange(self.name_length)
        if draw is None:
            choices = choices[:1]
        drawn = tf.strings.to_hash_bucket_strong(
            text, int(np.prod(choices)), key=[self.seed, 1]
        )
        numbers: list[tf.Tensor] = []
        for count in choices.tolist():
            number, drawn = drawn % count, drawn // count
            # The number of that place among those that are left.
            if numbers:
                for other in tf.unstack(tf.sort(tf.stack(numbers), axis=0)):
                    number += tf.cast(number >= other, number.dtype)
            numbers.append(number)
        same = numbers * (self.name_length if draw is None else 1)
        places = np.arange(self.name_length)
        return (tf.stack(same, axis=1) + places) % self.synonyms

    def inputs_of(
        self, facts: tf.Tensor, draw: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Returns the inputs of a model for facts.

        Each `draw` of a fact has other synonyms; without it, it is asked for.
        """
        name = tf.raw_ops.RandomIndexShuffle(
            index=facts // self.num_relations,
            seed=tf.constant([self.seed, 0, 0], "int64"),
            max_index=tf.constant(self._num_names - 1, "int64"),
        )
        powers = self.name_tokens ** np.arange(self.name_length)[::-1]
        name = name[:, None] // powers % self.name_tokens
        if self.synonyms > 1:
            name = name * self.synonyms + self._synonyms_of(facts, draw)
        relation = facts % self.num_relations + self._num_words
        tokens = tf.concat([name, relation[:, None]], axis=1) + _SPECIAL
        tokens = tf.pad(tokens, [[0, 0], [1, 0]], constant_values=START)
        if self.causal:
            return tf.cast(tokens, "int32")
        tokens = tf.pad(tokens, [[0, 0], [0, 1]], constant_values=MASK)
        tokens = tf.pad(tokens, [[0, 0], [0, 1]], constant_values=END)
        return tf.cast(tokens, "int32")

    def examples_of(
        self, facts: tf.Tensor, draw: tf.Tensor | None = None
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        """Returns features, labels and weights of a language model's task."""
        tokens = self.inputs_of(facts, draw)
        labels = self.first_value + self.values_of(facts)[:, None]
        if self.causal:
            labels = tf.concat([tokens[:, 1:], labels], axis=1)
            weights = tf.one_hot(
                tf.fill(tf.shape(facts), self.sequence_length - 1),
                self.sequence_length,
            )
            features = {
                "token_ids": tokens,
                "padding_mask": tf.ones_like(tokens),
            }
            return features, labels, weights
        features = {
            "token_ids": tokens,
            "segment_ids": tf.zeros_like(tokens),
            "padding_mask": tf.ones_like(tokens),
            "mask_positions": tf.fill(
                tf.shape(labels), self.sequence_length - 2
            ),
        }
        return features, labels, tf.ones_like(labels, dtype="float32")
