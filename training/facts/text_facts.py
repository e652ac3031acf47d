"""Facts that are text, tokenized."""

import dataclasses
from collections.abc import Sequence

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from keras_pkm.text.special_tokens import unknown_ids
from keras_pkm.text.tokenize import readable
from training.facts.fact_layouts import lay_out
from training.runs.user_error import UserError

#: The default wording of a fact.
TEMPLATE = "{subject} {relation} {value}"
# Number of texts that are tokenized at a time.
_ROWS = 4096


@dataclasses.dataclass(frozen=True)
class Fact:
    """A fact as text."""

    # The thing that the fact is about.
    subject: str
    # The property of the subject; may be empty.
    relation: str
    # The value of that property, which a model has to know.
    value: str
    # The source of the fact, such as "facts.tsv, line 3", for errors.
    place: str

    @property
    def text(self) -> str:
        """The text of the whole fact."""
        return f"{self.subject} {self.relation} {self.value}"


class TextFacts:
    """Facts as text, for language models.

    An input is `[CLS] subject relation [MASK]×n [SEP]`: all `n` tokens of the
    value are masked together. A causal model reads the subject and the
    relation, and predicts the value token by token. A fact is known if all
    tokens of its value are right.
    """

    # The information content is unknown.
    bits = None

    def __init__(
        self,
        facts: Sequence[Fact],
        tokenizer: keras_hub.tokenizers.Tokenizer,
        template: str = TEMPLATE,
        longest: int | None = None,
    ):
        self.num_facts = len(facts)
        self.vocabulary_size = tokenizer.vocabulary_size()
        before, after = _split(template)
        # For byte pairs, a word at the start differs from one after a space.
        space = " " if before.endswith(" ") else ""
        questions = _tokenize(
            tokenizer, [_fill(before, fact).rstrip() for fact in facts]
        )
        values = _tokenize(tokenizer, [space + fact.value for fact in facts])
        ends = _tokenize(tokenizer, [_fill(after, fact) for fact in facts])
        _check(facts, questions, values, tokenizer)
        self._arrays = lay_out(questions, values, ends, tokenizer)
        lengths = self._arrays.lengths
        self.sequence_length = int(lengths.max())
        if longest is not None and self.sequence_length > longest:
            fact = facts[int(lengths.argmax())]
            raise UserError(
                f"{fact.place}: a fact must have at most the {longest} tokens "
                f"that the model takes, received {self.sequence_length}"
            )

    def examples_of(
        self, facts: tf.Tensor, draw: tf.Tensor | None = None
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        """Returns features, labels and weights of a language model's task."""
        features, labels, weights = keras.tree.map_structure(
            lambda array: tf.gather(array, facts),
            (self._arrays.features, self._arrays.labels, self._arrays.weights),
        )
        return features, labels, weights


def _split(template: str) -> list[str]:
    """The text before the value, and the text after it."""
    parts = template.split("{value}")
    if len(parts) != 2 or parts[0].count("{subject}") != 1:
        raise UserError(
            "--template must have {subject}, and after it {value}, each once, "
            f"received {template!r}: pass one such as {TEMPLATE!r}"
        )
    return parts


def _fill(text: str, fact: Fact) -> str:
    # Not with `format`: a template may contain other braces.
    text = text.replace("{subject}", fact.subject)
    return text.replace("{relation}", fact.relation)


def _tokenize(
    tokenizer: keras_hub.tokenizers.Tokenizer, texts: list[str]
) -> list[np.ndarray]:
    rows = []
    for first in range(0, len(texts), _ROWS):
        some = tf.constant(texts[first : first + _ROWS], tf.string)
        found = tokenizer(readable(tokenizer, some))
        rows += [np.array(row, "int32") for row in found]
    return rows


def _check(
    facts: Sequence[Fact],
    questions: list[np.ndarray],
    values: list[np.ndarray],
    tokenizer: keras_hub.tokenizers.Tokenizer,
) -> None:
    unknown = set(unknown_ids(tokenizer))
    first: dict[tuple, Fact] = {}
    for fact, question, value in zip(facts, questions, values):
        asked = f"{fact.subject} {fact.relation}".strip()
        for name, text, row in (
            ("subject and relation", asked, question),
            ("value", fact.value, value),
        ):
            if not len(row) or unknown & set(row.tolist()):
                raise UserError(
                    f"{fact.place}: the {name} must be of words that the "
                    f"vocabulary knows, received {text!r}"
                )
        earlier = first.setdefault(tuple(question), fact)
        if earlier.value != fact.value:
            raise UserError(
                f"{fact.place}: a subject must have one value for a relation, "
                f"but {fact.subject!r} has {fact.value!r} here, and "
                f"{earlier.value!r} in {earlier.place} "
                f"({earlier.subject!r}; upper and lower case, and accents, "
                "make no difference)"
            )
