#!/usr/bin/env python
"""Computes how many bytes tables of values and their training take.

    python benchmarks/arithmetic.py
    python benchmarks/arithmetic.py --model runs/me/last

Nothing is timed. Without --model, it shows tables of some sizes.
"""

import pathlib
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import keras_hub
import tyro

import keras_pkm
from benchmarks.timing.report import report

_FLOAT = 4


def count_bytes(slots: int, width: int, reads: int) -> dict[str, int]:
    """Returns the bytes of a table, of its training, and of its exports.

    Args:
        slots: Number of rows of the table.
        width: Number of entries of a row.
        reads: Number of rows that a step reads, some of them repeatedly.
    """
    table = slots * width * _FLOAT
    rows = min(slots, reads)
    return {
        "values": table,
        "Adam's moments": 2 * table,
        # The first moment, and a number for each row.
        "with one second moment a row": table + slots * _FLOAT,
        # Entries and slots of the rows that are read.
        "gradient of a step, at most": rows * (width + 1) * _FLOAT,
        "dense gradient": table,
        "bfloat16": slots * width * 2,
        # With a scale for each row.
        "int8": slots * (width + _FLOAT),
    }


def main(
    model: str | None = None,
    slots_log2: tuple[int, ...] = (18, 20, 22, 24),
    widths: tuple[int, ...] = (768, 1024, 2048, 4096),
    heads: int = 4,
    top_k: int = 32,
    tokens: int = 4096,
    out: pathlib.Path = pathlib.Path("runs/benchmarks"),
):
    """Computes how many bytes tables of values and their training take.

    Args:
        model: A preset of a model with memories, whose tables are shown.
        slots_log2: Without a model: the base-2 logarithms of numbers of slots.
        widths: Without a model: the widths of values.
        heads: Without a model: the number of heads of a memory.
        top_k: Without a model: the number of slots that a head reads.
        tokens: Number of tokens in a batch.
        out: Directory for arithmetic.md and arithmetic.json.
    """

    def rows():
        for name, slots, width, reads in (
            _of_model(model)
            if model is not None
            else (
                (f"2^{power}", 2**power, width, heads * top_k)
                for power in slots_log2
                for width in widths
            )
        ):
            sizes = count_bytes(slots, width, tokens * reads)
            yield {
                "table": name,
                "slots": f"{slots:,}",
                "width": width,
                **{
                    f"{key}, GiB": gibibytes(each)
                    for key, each in sizes.items()
                },
            }

    report("arithmetic", rows(), out)


def _of_model(preset: str):
    """The name, size and reads a token of each table of a model."""
    backbone = keras_hub.models.Backbone.from_preset(preset, load_weights=False)
    memories = keras_pkm.models.memories(backbone)
    for number, table in keras_pkm.models.tables(backbone).items():
        reads = sum(
            memory.num_heads * memory.top_k
            for memory in memories.values()
            if memory.table is table
        )
        yield f"layer {number}", table.num_slots, table.value_dim, reads


def gibibytes(size: int) -> str:
    """Returns a size with three digits."""
    return f"{size / 2**30:.3g}"


if __name__ == "__main__":
    tyro.cli(main)
