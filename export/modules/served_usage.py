"""Measures how an exported model uses its memories."""

import dataclasses
import itertools
import pathlib

from tqdm import tqdm

from export.smaller.text_inputs import read_lines
from keras_pkm.probing.served_model import ServedModel
from keras_pkm.probing.usage_counter import UsageCounter
from training.runs.files import check_unchanged
from training.runs.user_error import UserError


@dataclasses.dataclass(frozen=True)
class UsageRecipe:
    """Measure how an exported model uses its memories on text.

    $ python export/memory_usage.py --model served --text held-out.txt
    $ python export/memory_usage.py --model encoder --preprocessor P --text T
    $ python export/memory_usage.py --model served --text T --json

    Each line is one input: a text, the context of a question answerer, or the
    first text of a pair. Lines that are too long for the model are cut, except
    contexts.

    --verbose also shows the messages of TensorFlow.
    """

    # Directory of an exported model with memory.
    model: str
    # Text files to measure on.
    text: tuple[str, ...]
    # Directory of an exported preprocessor. Encoders need one, because they
    # take no text.
    preprocessor: str | None = None
    # Number of lines in a batch.
    batch_size: int = 32
    # Print JSON instead of a table.
    json: bool = False


def measure_usage(recipe: UsageRecipe) -> tuple[dict, int]:
    """Returns the figures of each memory, by layer, and the number of slots."""
    lines = read_lines(recipe.text)
    if recipe.batch_size < 1:
        raise UserError(
            f"--batch-size must be at least 1, received {recipe.batch_size}"
        )
    for path in filter(None, (recipe.model, recipe.preprocessor)):
        check_unchanged(pathlib.Path(path), "--model, or --preprocessor,")
    try:
        model = ServedModel(recipe.model, recipe.preprocessor)
    except ValueError as error:
        raise UserError(
            f"--model, or --preprocessor, cannot be used: {error}"
        ) from error
    batches = [
        lines[first : first + recipe.batch_size]
        for first in range(0, len(lines), recipe.batch_size)
    ]
    accesses = iter(model.read(tqdm(batches, "Usage", disable=None)))
    # There is one, since there is text.
    first = next(accesses)
    usage = UsageCounter(first.num_slots)
    for access in itertools.chain([first], accesses):
        usage.update(access.memories, access.is_token)
    return usage.figures, max(usage.num_slots.values())
