"""Facts that are text, tokenized."""

import dataclasses
from collections.abc import Sequence

import keras_hub
import numpy as np
import tensorflow as tf

from keras_pkm.runs.user_error import UserError

# A tokenizer's words at a time.
_ROWS = 4096


@dataclasses.dataclass(frozen=True)
class Fact:
    """A fact as text.

    Attributes:
        subject: What it is about.
        relation: What it says of the subject; may be empty.
        value: What a model has to know.
        place: Where it stands, such as "facts.tsv, line 3", for errors.
    """

    subject: str
    relation: str
    value: str
    place: str

    @property
    def text(self) -> str:
        """All of it."""
        return f"{self.subject} {self.relation} {self.value}"


class TextFacts:
    """Facts as text, for masked-LM tasks.

    An input is `[CLS] subject relation [MASK]×n [SEP]`, where the value has `n`
    tokens, which are all masked together. A fact is known if all are right.

    Args:
        facts: sequence of `Fact`, at least one.
        tokenizer: `keras_hub.models.BertTokenizer`.

    Raises:
        UserError: a part of a fact has no known token, or two facts with the
            same tokens have different values.
    """

    # How much information they are, nobody knows.
    bits = None

    def __init__(
        self,
        facts: Sequence[Fact],
        tokenizer: keras_hub.tokenizers.WordPieceTokenizer,
    ):
        self.num_facts = len(facts)
        self.vocabulary_size = tokenizer.vocabulary_size()
        special = tokenizer.start_token_id, tokenizer.end_token_id
        questions = _tokenize(
            tokenizer, [f"{fact.subject} {fact.relation}" for fact in facts]
        )
        values = _tokenize(tokenizer, [fact.value for fact in facts])
        _check(facts, questions, values, tokenizer)
        asked = np.array([len(row) for row in questions])
        masks = np.array([len(row) for row in values])
        lengths = asked + masks + len(special)
        self.sequence_length = int(lengths.max())
        places = np.arange(self.sequence_length)
        is_asked = (places > 0) & (places <= asked[:, None])
        tokens = np.full(
            (self.num_facts, self.sequence_length),
            tokenizer.pad_token_id,
            "int32",
        )
        tokens[places < lengths[:, None]] = tokenizer.mask_token_id
        tokens[:, 0] = special[0]
        tokens[is_asked] = np.concatenate(questions)
        tokens[places == lengths[:, None] - 1] = special[1]
        is_value = np.arange(masks.max()) < masks[:, None]
        labels = np.zeros(is_value.shape, "int32")
        labels[is_value] = np.concatenate(values)
        positions = np.arange(masks.max()) + 1 + asked[:, None]
        self._tokens = tokens
        self._labels = labels
        self._positions = np.where(is_value, positions, 0).astype("int32")
        self._lengths = lengths
        self._masks = masks

    def examples_of(
        self, facts: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        """Returns features, labels and weights of a masked-LM task.

        Args:
            facts: int64 tensor of shape `(batch,)`, their indices.

        Returns:
            Features as `keras_hub.models.BertMaskedLM` takes them, the ids of
            the values' tokens, int32 `(batch, most tokens of a value)`, and
            weights of the same shape, 1 where there is a token.
        """
        tokens = tf.gather(self._tokens, facts)
        labels = tf.gather(self._labels, facts)
        lengths = tf.gather(self._lengths, facts)[:, None]
        masks = tf.gather(self._masks, facts)[:, None]
        features = {
            "token_ids": tokens,
            "segment_ids": tf.zeros_like(tokens),
            "padding_mask": tf.cast(
                tf.range(self.sequence_length, dtype=tf.int64) < lengths,
                "int32",
            ),
            "mask_positions": tf.gather(self._positions, facts),
        }
        is_value = tf.range(self._labels.shape[1], dtype=tf.int64) < masks
        return features, labels, tf.cast(is_value, "float32")


def _tokenize(tokenizer, texts):
    rows = []
    for first in range(0, len(texts), _ROWS):
        found = tokenizer(texts[first : first + _ROWS])
        rows += [np.array(row, "int32") for row in found]
    return rows


def _check(facts, questions, values, tokenizer):
    unknown = tokenizer.token_to_id("[UNK]")
    first = {}
    for fact, question, value in zip(facts, questions, values):
        for name, row in (("subject", question), ("value", value)):
            if not len(row) or unknown in row:
                raise UserError(
                    f"{fact.place}: the {name} must be of words that the "
                    f"vocabulary knows, received {getattr(fact, name)!r}"
                )
        earlier = first.setdefault(tuple(question), fact)
        if earlier.value != fact.value:
            raise UserError(
                f"{fact.place}: a subject must have one value of a relation, "
                f"but {fact.subject!r} has {fact.value!r} here, and "
                f"{earlier.value!r} in {earlier.place} "
                f"({earlier.subject!r}; upper and lower case, and accents, "
                "make no difference)"
            )
