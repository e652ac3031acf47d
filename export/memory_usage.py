"""Measures how an exported model uses its memories, on text.

    python export/memory_usage.py --model served --text held-out.txt

asks the model's signature `memory_access`, as any client of it could.
"""

import dataclasses
import json
import pathlib
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import tyro
from tqdm import tqdm

from export.smaller.text_inputs import read_lines
from keras_pkm.metrics import MemoryUsage
from keras_pkm.metrics import format_memory_usage
from keras_pkm.probing.memory_probe import usage_figures
from keras_pkm.probing.served_model import ServedModel
from keras_pkm.runs.user_error import UserError


@dataclasses.dataclass(frozen=True)
class UsageRecipe:
    """Measure how an exported model uses its memories, on text.

    Each line is an input of its own, a question answerer's context, or a
    pair's first text. What is longer than the model's inputs is cut, but for
    contexts.
    """

    # Directory of an exported model with memory.
    model: str
    # Text files.
    text: tuple[str, ...]
    # Directory of an exported preprocessor: encoders take no text.
    preprocessor: str | None = None
    # Lines in a batch.
    batch_size: int = 32
    # Print JSON instead of a table.
    json: bool = False


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    recipe = tyro.cli(UsageRecipe, args=args)
    try:
        usage, num_slots = measure_usage(recipe)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if recipe.json:
        print(json.dumps(usage, indent=2))
    else:
        print("\n".join(format_memory_usage(usage, num_slots)[1:]))
    return 0


def measure_usage(recipe: UsageRecipe) -> tuple[dict, int]:
    """Returns the figures of each memory, by its layer, and their slots.

    Raises:
        UserError: a model cannot be loaded or asked, or there is no text.
    """
    lines = read_lines(recipe.text)
    if recipe.batch_size < 1:
        raise UserError(
            f"--batch-size must be at least 1, received {recipe.batch_size}"
        )
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
    metrics = {}
    for access in model.read(tqdm(batches, "Usage", disable=None)):
        if not metrics:
            metrics = {
                number: MemoryUsage(num_slots)
                for number, num_slots in access.num_slots.items()
            }
        for number, (slots, weights) in access.memories.items():
            metrics[number].update_state(slots, weights, access.is_token)
    return usage_figures(metrics), max(access.num_slots.values())


if __name__ == "__main__":
    sys.exit(main())
