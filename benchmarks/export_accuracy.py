#!/usr/bin/env python
"""Measures the accuracy of exported text classifiers on a TSV file of GLUE.

    python benchmarks/export_accuracy.py --models served served-int8 \
        --examples GLUE/SST-2/dev.tsv

calls each model as a client would, which shows the cost of smaller tables.
"""

import csv
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

from benchmarks.timing.report import megabytes
from benchmarks.timing.report import report

_BATCH = 64


def main(
    models: tuple[pathlib.Path, ...],
    examples: pathlib.Path,
    columns: tuple[str, ...] = ("sentence",),
    label: str = "label",
    values: tuple[str, ...] = ("0", "1"),
    out: pathlib.Path = pathlib.Path("runs/benchmarks"),
):
    """Measures the accuracy of exported text classifiers.

    Args:
        models: Directories that `export/saved_model.py --what classifier`
            wrote.
        examples: TSV file with a header.
        columns: Columns of the texts: one, or two for pairs.
        label: Column of the label.
        values: The values of that column, in the order of the classes.
        out: Directory of the table and its JSON.
    """
    with open(examples, encoding="utf-8") as file:
        labelled = list(
            csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        )

    def rows():
        for path in models:
            signatures = tf.saved_model.load(str(path)).signatures
            serve = signatures["serving_default"]
            right = 0
            for first in tqdm(range(0, len(labelled), _BATCH), str(path)):
                batch = labelled[first : first + _BATCH]
                texts = {
                    name: tf.constant([example[column] for example in batch])
                    for name, column in zip(("text", "text_pair"), columns)
                }
                best = serve(**texts)["scores"].numpy().argmax(axis=1)
                right += sum(
                    example[label] == values[number]
                    for example, number in zip(batch, best)
                )
            yield {
                "model": path.name,
                "MB": round(megabytes(path), 2),
                "examples": len(labelled),
                "accuracy %": round(100 * right / len(labelled), 2),
            }

    report("export_accuracy", rows(), out)


if __name__ == "__main__":
    tyro.cli(main)
