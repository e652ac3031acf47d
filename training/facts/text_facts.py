"""Facts that are text, tokenized."""

import dataclasses
from collections.abc import Sequence

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from keras_pkm.runs.user_error import UserError
from keras_pkm.text.special_tokens import unknown_ids
from training.facts.fact_layouts import lay_out

#: How a fact is asked for.
TEMPLATE = "{subject} {relation} {value}"
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
    """Facts as text, for language models.

    An input is `[CLS] subject relation [MASK]×n [SEP]`, where the value has `n`
    tokens, which are all masked together. A causal model reads the subject and
    the relation, and predicts the value token by token. A fact is known if all
    are right.

    Args:
        facts: sequence of `Fact`, at least one.
        tokenizer: That of a BERT, DistilBERT, RoBERTa or GPT-2 of keras-hub.
        template: str. The text of a fact, in which `{subject}` and
            `{relation}`, and behind them `{value}`, stand for its parts.
            Defaults to `"{subject} {relation} {value}"`.
        longest: int or None. The most tokens of an input. Defaults to `None`,
            as many as there are.

    Raises:
        UserError: a part of a fact has no known token, two facts with the same
            tokens have different values, one is too long, or the template
            lacks a part.
    """

    # How much information they are, nobody knows.
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
        # Byte pairs tell a word at the beginning from one behind a space.
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
        self, facts: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
        """Returns features, labels and weights of a language model's task.

        Args:
            facts: int64 tensor of shape `(batch,)`, their indices.

        Returns:
            Features as `keras_hub.models.BertMaskedLM` or `CausalLM` takes
            them; the ids of the values' tokens, int32 `(batch, most tokens of
            a value)`, or of a causal model those of all next tokens; and
            weights of the same shape, 1 where a token of the value is.
        """
        features, labels, weights = keras.tree.map_structure(
            lambda array: tf.gather(array, facts),
            (self._arrays.features, self._arrays.labels, self._arrays.weights),
        )
        return features, labels, weights


def _split(template):
    """What stands before the value, and behind it."""
    parts = template.split("{value}")
    if len(parts) != 2 or parts[0].count("{subject}") != 1:
        raise UserError(
            "--template must have {subject}, and behind it {value}, each once, "
            f"received {template!r}: pass one such as {TEMPLATE!r}"
        )
    return parts


def _fill(text, fact):
    # Not by `format`: a template may have other braces.
    text = text.replace("{subject}", fact.subject)
    return text.replace("{relation}", fact.relation)


def _tokenize(tokenizer, texts):
    rows = []
    for first in range(0, len(texts), _ROWS):
        found = tokenizer(texts[first : first + _ROWS])
        rows += [np.array(row, "int32") for row in found]
    return rows


def _check(facts, questions, values, tokenizer):
    unknown = set(unknown_ids(tokenizer))
    first = {}
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
                f"{fact.place}: a subject must have one value of a relation, "
                f"but {fact.subject!r} has {fact.value!r} here, and "
                f"{earlier.value!r} in {earlier.place} "
                f"({earlier.subject!r}; upper and lower case, and accents, "
                "make no difference)"
            )
