#!/usr/bin/env python
"""Applies a patch to an exported model, or undoes it.

    python export/patch.py --model served --apply facts.safetensors --out newer

writes a copy of the exported model that also knows what training/teach.py wrote
into the patch.
"""

import pathlib
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    # Before TensorFlow is imported.
    import training.commands.missing_extra  # noqa: F401
    import training.commands.quiet  # noqa: F401

import tyro

from export.modules.patch_module import PatchRecipe
from export.modules.patch_module import patch_module
from training.runs.user_error import RunError
from training.runs.user_error import UserError


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    recipe = tyro.cli(PatchRecipe, args=args)
    try:
        print(patch_module(recipe))
    except (RunError, UserError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
