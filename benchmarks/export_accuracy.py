#!/usr/bin/env python
"""Measures the accuracy of exported text classifiers on a TSV file of GLUE.

    python benchmarks/export_accuracy.py --models served served-int8 \
        --examples GLUE/SST-2/dev.tsv

calls each model as a client would, which shows the cost of smaller tables.
"""

import csv
import dataclasses
import pathlib
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import tensorflow as tf

# Registers operations that the models use.
import tensorflow_text  # noqa: F401
import tyro
from tqdm import tqdm

from benchmarks.timing.report import report

_BATCH = 64


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Measure the accuracy of exported text classifiers."""

    # Directories that `export/saved_model.py --what classifier` wrote.
    models: tuple[pathlib.Path, ...]
    # TSV file with a header.
    examples: pathlib.Path
    # Columns of the texts: one, or two for pairs.
    columns: tuple[str, ...] = ("sentence",)
    # Column of the label.
    label: str = "label"
    # The values of that column, in the order of the classes.
    values: tuple[str, ...] = ("0", "1")
    # Directory of the table and its JSON.
    out: pathlib.Path = pathlib.Path("runs/benchmarks")


def main():
    """Runs the command."""
    recipe = tyro.cli(Recipe)
    with open(recipe.examples, encoding="utf-8") as file:
        examples = list(
            csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        )
    rows = []
    for path in recipe.models:
        serve = tf.saved_model.load(str(path)).signatures["serving_default"]
        right = 0
        for first in tqdm(range(0, len(examples), _BATCH), str(path)):
            batch = examples[first : first + _BATCH]
            texts = {
                name: tf.constant([example[column] for example in batch])
                for name, column in zip(("text", "text_pair"), recipe.columns)
            }
            best = serve(**texts)["scores"].numpy().argmax(axis=1)
            right += sum(
                example[recipe.label] == recipe.values[number]
                for example, number in zip(batch, best)
            )
        files = [file for file in path.rglob("*") if file.is_file()]
        rows.append(
            {
                "model": path.name,
                "MB": round(sum(f.stat().st_size for f in files) / 1e6, 2),
                "examples": len(examples),
                "accuracy %": round(100 * right / len(examples), 2),
            }
        )
    report("export_accuracy", rows, recipe.out)


if __name__ == "__main__":
    main()
