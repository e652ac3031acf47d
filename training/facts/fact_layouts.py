"""Facts as arrays of ids: for masked and for causal language models."""

import dataclasses
from collections.abc import Sequence

import keras_hub
import numpy as np

from keras_pkm.text.special_tokens import SpecialTokens

Ids = Sequence[np.ndarray]


@dataclasses.dataclass(frozen=True)
class FactArrays:
    """Inputs and labels of facts, one row for each fact."""

    # Int32 arrays, by the names of a model's inputs.
    features: dict[str, np.ndarray]
    # Int32, the ids to predict.
    labels: np.ndarray
    # Float32 of the labels' shape, 1 at the tokens of a value.
    weights: np.ndarray
    # Number of tokens of each input.
    lengths: np.ndarray


def lay_out(
    questions: Ids,
    values: Ids,
    ends: Ids,
    tokenizer: keras_hub.tokenizers.Tokenizer,
) -> FactArrays:
    """Returns the arrays for the kind of model that a tokenizer belongs to."""
    if getattr(tokenizer, "mask_token_id", None) is None:
        return _next_tokens(questions, values, tokenizer)
    return _masked(questions, values, ends, tokenizer)


def _masked(
    questions: Ids,
    values: Ids,
    ends: Ids,
    tokenizer: keras_hub.tokenizers.Tokenizer,
) -> FactArrays:
    """Lays out `[CLS] question [MASK]×n end [SEP]`, as for BERT's task."""
    special = SpecialTokens.of(tokenizer)
    rows = [
        [special.start, *question, *([special.mask] * len(value))]
        + [*end, special.end]
        for question, value, end in zip(questions, values, ends)
    ]
    positions = [
        np.arange(len(value)) + 1 + len(question)
        for question, value in zip(questions, values)
    ]
    token_ids = _pad(rows, special.padding)
    features = {
        "token_ids": token_ids,
        "padding_mask": _ones(rows),
        "mask_positions": _pad(positions, 0),
    }
    if isinstance(tokenizer, keras_hub.models.BertTokenizer):
        # Other encoders take none.
        features["segment_ids"] = np.zeros_like(token_ids)
    weights = _ones(values).astype("float32")
    return FactArrays(features, _pad(values, 0), weights, _lengths(rows))


def _next_tokens(
    questions: Ids, values: Ids, tokenizer: keras_hub.tokenizers.Tokenizer
) -> FactArrays:
    """Lays out `start question value`; the value's tokens are predicted."""
    rows = [
        [tokenizer.start_token_id, *question, *value]
        for question, value in zip(questions, values)
    ]
    token_ids = _pad(rows, tokenizer.pad_token_id)
    labels = np.pad(token_ids[:, 1:], [(0, 0), (0, 1)])
    place = np.arange(token_ids.shape[1])
    # The last token of a question predicts the first token of the value.
    first = _lengths(questions)[:, None]
    last = first + _lengths(values)[:, None]
    weights = ((first <= place) & (place < last)).astype("float32")
    features = {"token_ids": token_ids, "padding_mask": _ones(rows)}
    return FactArrays(features, labels, weights, _lengths(rows))


def _lengths(rows: Sequence) -> np.ndarray:
    return np.array([len(row) for row in rows])


def _ones(rows: Sequence) -> np.ndarray:
    """1 where rows of different lengths have an entry, 0 elsewhere."""
    return _pad([np.ones(len(row)) for row in rows], 0)


def _pad(rows: Sequence, padding: int) -> np.ndarray:
    """Pads rows of different lengths to an int32 array."""
    padded = np.full((len(rows), max(map(len, rows))), padding, "int32")
    for row, numbers in zip(padded, rows):
        row[: len(numbers)] = numbers
    return padded
