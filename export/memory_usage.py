#!/usr/bin/env python
"""Measures how an exported model uses its memories, on text.

    python export/memory_usage.py --model served --text held-out.txt

calls the model's signature `memory_access`, as any client could.
"""

import json
import pathlib
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    # Before TensorFlow is imported.
    import training.commands.missing_extra  # noqa: F401
    import training.commands.quiet  # noqa: F401

import tyro

from export.modules.served_usage import UsageRecipe
from export.modules.served_usage import measure_usage
from keras_pkm.metrics import format_memory_usage
from training.runs.user_error import UserError


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


if __name__ == "__main__":
    sys.exit(main())
