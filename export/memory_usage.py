#!/usr/bin/env python
"""Measures how an exported model uses its memories, on text.

    python export/memory_usage.py --model served --text held-out.txt

calls the model's signature `memory_access`, as any client could.
"""

import dataclasses
import functools
import json
import pathlib
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    # Before TensorFlow is imported.
    import training.commands.quiet  # noqa: F401

import tyro
from tqdm import tqdm

import keras_pkm
from export.commands.flag_errors import naming_flags
from export.commands.text_lines import read_lines
from keras_pkm.metrics import format_memory_usage
from training.commands.command_line import print_errors


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


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    recipe = tyro.cli(UsageRecipe, args=args)
    return print_errors(lambda: print(memory_usage(recipe)))


def memory_usage(recipe: UsageRecipe) -> str:
    """Measures an exported model, and returns the figures."""
    with naming_flags(recipe):
        usage, num_slots = keras_pkm.export.memory_usage(
            recipe.model,
            read_lines(recipe.text),
            preprocessor=recipe.preprocessor,
            batch_size=recipe.batch_size,
            progress=functools.partial(tqdm, disable=None),
        )
    if recipe.json:
        return json.dumps(usage, indent=2)
    most = max(num_slots.values())
    return "\n".join(format_memory_usage(usage, most)[1:])


if __name__ == "__main__":
    sys.exit(main())
