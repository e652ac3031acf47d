"""From a text to masked batches of a model that was trained already."""

import contextlib
import dataclasses
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Any

import keras_hub
import numpy as np

from training.batches.masking import Masking
from training.commands.recipe_checks import out_of_range
from training.text.corpus import Corpus
from training.text.packed_text import tokenize_and_pack


@dataclasses.dataclass(frozen=True)
class PackedText:
    """A text, tokenized and packed.

    Attributes:
        rows: int32 rows of shape `(rows, sequence_length)`.
        masking: How its tokens are masked.
    """

    rows: np.ndarray
    masking: Masking


def input_length(recipe: Any, longest: int) -> int:
    """Returns the length of inputs that a recipe asks for.

    Args:
        recipe: A dataclass with `sequence_length`, which may be `None`.
        longest: The most tokens that the model takes.

    Raises:
        UserError: the model cannot take inputs that long.
    """
    length = recipe.sequence_length or min(512, longest)
    if length > longest:
        raise out_of_range(
            recipe, "sequence_length", f"at most the model's {longest}"
        )
    return length


@contextlib.contextmanager
def pack_text(
    corpus: Corpus,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    *,
    sequence_length: int,
    mask_rate: float,
    limit: int | None,
) -> Iterator[PackedText]:
    """Packs a text into a temporary file, which is there while it is open.

    Args:
        corpus: The text.
        tokenizer: The model's tokenizer.
        sequence_length: Tokens of an input.
        mask_rate: Share of the tokens to predict.
        limit: The most inputs; no more text is read than they need. `None`
            for all.

    Raises:
        UserError: the text holds no token.
    """
    masking = Masking.from_tokenizer(tokenizer, sequence_length, mask_rate)
    with tempfile.TemporaryDirectory() as folder:
        rows = tokenize_and_pack(
            corpus,
            tokenizer,
            sequence_length,
            pathlib.Path(folder) / "packed",
            progress_label=corpus.name,
            limit=limit,
        )
        yield PackedText(rows, masking)
