"""Turns text files into an encoder's inputs."""

from collections.abc import Iterator
from collections.abc import Sequence

import keras_hub
import numpy as np

from keras_pkm.text.special_tokens import SpecialTokens
from training.runs.user_error import UserError


def read_lines(paths: Sequence[str]) -> list[str]:
    """Returns the lines of text files that are not blank."""
    lines = []
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                lines += [line for line in map(str.strip, file) if line]
        except OSError as error:
            raise UserError(
                f"a text file must be readable, but '{path}' is not "
                f"({error.strerror}): pass another one"
            ) from error
        except UnicodeDecodeError as error:
            raise UserError(
                f"a text file must be UTF-8, but '{path}' is not "
                f"({error.reason}): convert it"
            ) from error
    if not lines:
        raise UserError(
            f"text files must contain text, received {', '.join(paths)} "
            "with none"
        )
    return lines


def inputs_of_lines(
    lines: Sequence[str],
    tokenizer: keras_hub.tokenizers.Tokenizer,
    special: SpecialTokens,
    length: int,
) -> dict:
    """Makes an input of each line, or several inputs of a long line."""
    room = length - 2
    parts = [
        ids[first : first + room]
        for ids in map(np.asarray, tokenizer(lines))
        for first in range(0, len(ids), room)
    ]
    token_ids = np.full((len(parts), length), special.padding, "int32")
    mask = np.zeros_like(token_ids)
    for row, ids in enumerate(parts):
        token_ids[row, : len(ids) + 2] = [special.start, *ids, special.end]
        mask[row, : len(ids) + 2] = 1
    return {
        "input_word_ids": token_ids,
        "input_mask": mask,
        "input_type_ids": np.zeros_like(token_ids),
    }


def batches_of(
    inputs: dict[str, np.ndarray], size: int
) -> Iterator[dict[str, np.ndarray]]:
    """Yields the inputs in parts of `size` rows; the last may be smaller."""
    count = len(inputs["input_mask"])
    for first in range(0, count, size):
        yield {
            name: rows[first : first + size] for name, rows in inputs.items()
        }
