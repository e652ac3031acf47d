"""Asks a causal language model questions, and compares two models."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import keras
import keras_hub
import numpy as np
import tensorflow as tf
from keras import ops

from keras_pkm.teaching.fact_prompts import SUBJECT
from keras_pkm.teaching.fact_prompts import Fact
from keras_pkm.teaching.fact_prompts import Prompt
from keras_pkm.teaching.fact_prompts import PromptArrays
from keras_pkm.teaching.fact_prompts import answers_of
from keras_pkm.teaching.fact_prompts import make_prompt
from keras_pkm.teaching.fact_prompts import pad_prompts
from keras_pkm.teaching.fact_prompts import tokenizer_of
from keras_pkm.teaching.split_model import answer_model

# Text that stands before a question inside of a document.
_DOCUMENT_CHARACTERS = 900
_BATCH = 32
_BATCH_OF_TEXT = 4


class Question(NamedTuple):
    """A text with `{subject}`, and the subject."""

    text: str
    subject: str


def behind(document: str, question: str) -> str:
    """A question behind the beginning of a text."""
    before = document[:_DOCUMENT_CHARACTERS].replace(SUBJECT, "")
    return f"{before}. {question}"


class Asker:
    """Asks a causal language model questions."""

    def __init__(self, task: keras_hub.models.CausalLM):
        self.task = task
        self.tokenize, self._start = tokenizer_of(task)
        self.model = answer_model(task)
        self._vocabulary_size = self.model.output.shape[-1]
        self._answer = _compiled(self.model)
        # Models with rotary positions take any length.
        self.longest = getattr(task.backbone, "max_sequence_length", None)
        self._read = _compiled(task)

    def prompt(self, text: str, subject: str, value: str = "") -> Prompt:
        """Returns the ids of a question, and of its answer."""
        if not subject:
            ids = [*self._start, *self.tokenize(text)]
            return Prompt(ids, (), 0, len(ids))
        return make_prompt(self.tokenize, text, subject, value, self._start)

    def prompts(
        self, facts: Iterable[Fact], phrasings: Mapping[str, Sequence[str]]
    ) -> list[list[Prompt]]:
        """Returns the prompts of each fact."""
        return [
            [
                self.prompt(text, fact.subject, fact.value)
                for text in phrasings[fact.relation]
            ]
            for fact in facts
        ]

    def known(self, prompts: list[list[Prompt]]) -> np.ndarray:
        """Returns the share of each fact's prompts that are answered."""
        flat = [prompt for of_fact in prompts for prompt in of_fact]
        right = np.zeros(len(flat))
        length = max(len(prompt.answer) for prompt in flat)
        for numbers, part, arrays in _batches(flat, self.longest):
            places, labels, weights = answers_of(part, length)
            logits = self._answer({**arrays._asdict(), "places": places})
            best = ops.convert_to_numpy(logits).argmax(axis=-1)
            is_right = (best == labels) | (weights == 0)
            right[numbers] = is_right.all(axis=1)
        ends = np.cumsum([len(of_fact) for of_fact in prompts])
        return np.array([each.mean() for each in np.split(right, ends[:-1])])

    def logits(self, questions: Sequence[Question]) -> np.ndarray:
        """Returns the logits of what follows each question."""
        prompts = [self.prompt(*question) for question in questions]
        found = np.empty((len(prompts), self._vocabulary_size), "float32")
        for numbers, part, arrays in _batches(prompts, self.longest):
            places = np.array([[each.question - 1] for each in part], "int32")
            logits = self._answer({**arrays._asdict(), "places": places})
            found[numbers] = ops.convert_to_numpy(logits)[:, 0]
        return found

    def read(self, windows: np.ndarray) -> Iterable[np.ndarray]:
        """Yields the logits of each token of some windows of text."""
        for start in range(0, len(windows), _BATCH_OF_TEXT):
            ids = windows[start : start + _BATCH_OF_TEXT]
            x = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
            yield ops.convert_to_numpy(self._read(x)).astype("float32")


def _compiled(model: keras.Model) -> Callable[[Any], tf.Tensor]:
    """A graph of a model, traced once for all shapes."""
    signature = {
        name: tf.TensorSpec(each.shape, each.dtype)
        for name, each in model.input.items()
    }
    return tf.function(
        lambda x: model(x, training=False), input_signature=[signature]
    )


def _batches(
    prompts: Sequence[Prompt], longest: int | None
) -> Iterable[tuple[np.ndarray, list[Prompt], PromptArrays]]:
    """Yields prompts of similar lengths, and their numbers."""
    order = np.argsort([len(each.ids) for each in prompts], kind="stable")
    for start in range(0, len(order), _BATCH):
        numbers = order[start : start + _BATCH]
        part = [prompts[number] for number in numbers]
        yield numbers, part, pad_prompts(part, longest=longest)


def compare_answers(
    before: Asker, after: Asker, questions: Sequence[Question]
) -> dict[str, float]:
    """Returns how many of two models' next tokens are the same."""
    return compare_logits(before.logits(questions), after.logits(questions))


def compare_logits(before: np.ndarray, after: np.ndarray) -> dict[str, float]:
    """Returns how many of two models' next tokens are the same."""
    is_same = before.argmax(axis=-1) == after.argmax(axis=-1)
    identical = (before == after).all(axis=-1)
    return {"same": float(is_same.mean()), "bits": float(identical.mean())}


def compare_on_text(
    before: Asker, after: Asker, windows: np.ndarray
) -> dict[str, float]:
    """Returns perplexities, and the divergence from the first model."""
    # One value for each token that is predicted.
    losses: tuple[list, list] = ([], [])
    divergences = []
    pairs = zip(before.read(windows), after.read(windows), strict=True)
    for number, both in enumerate(pairs):
        start = number * _BATCH_OF_TEXT
        labels = windows[start : start + _BATCH_OF_TEXT, 1:, None]
        first, second = (_log_softmax(each[:, :-1]) for each in both)
        for each, found in zip((first, second), losses, strict=True):
            found.append(-np.take_along_axis(each, labels, axis=-1)[..., 0])
        divergence = np.exp(first) * (first - second)
        divergences.append(divergence.sum(axis=-1))
    old, new = (np.exp(np.concatenate(each).mean()) for each in losses)
    return {
        "tokens": windows.size,
        "perplexity_before": float(old),
        "perplexity_after": float(new),
        "change": float(new / old - 1),
        "divergence": float(np.concatenate(divergences).mean()),
    }


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
