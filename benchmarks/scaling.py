#!/usr/bin/env python
"""Measures time and memory by the number of slots, for product and flat keys.

    python benchmarks/scaling.py

It measures one layer of each, and BASE+ResM, in serving, as in the figure on
the poster of Lample et al., "Large Memory Layers with Product Keys".
"""

import dataclasses
import pathlib
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import matplotlib

matplotlib.use("Agg")

import tyro
from matplotlib import pyplot
from tqdm import tqdm

from benchmarks.contenders.sizes import BASE
from benchmarks.contenders.sizes import BertSizes
from benchmarks.contenders.sizes import MemorySizes
from benchmarks.timing.in_turn import Contender
from benchmarks.timing.in_turn import time_in_turn
from benchmarks.timing.report import report

PRODUCT, FLAT, BERT = "product keys", "flat keys", "BASE+ResM"


def contender(kind, sizes, bert, num_sub_keys, tokens) -> Contender:
    """Returns one kind of model with `num_sub_keys²` slots."""
    if kind == BERT:
        bert = dataclasses.replace(bert, num_sub_keys=num_sub_keys)
        return Contender(
            kind,
            "bert_contenders.encoder",
            (bert, "resm", 1, tokens, "float32"),
        )
    build = {
        PRODUCT: "keras_contenders.ours",
        FLAT: "keras_contenders.flat",
    }[kind]
    sizes = dataclasses.replace(sizes, num_sub_keys=num_sub_keys)
    return Contender(kind, build, (sizes, tokens))


def plot(table: list[dict], path: pathlib.Path):
    """Draws time and memory against slots, a line for each kind."""
    figure, (times, memory) = pyplot.subplots(1, 2, figsize=(10, 4))
    for kind in (PRODUCT, FLAT, BERT):
        rows = [row for row in table if row["model"] == kind]
        slots = [row["slots"] for row in rows]
        times.plot(slots, [float(row["ms"]) for row in rows], "o-", label=kind)
        held = [row["peak MiB"] for row in rows]
        if None not in held:
            memory.plot(slots, held, "o-", label=kind)
    for axes, label in ((times, "ms a batch"), (memory, "peak MiB")):
        axes.set(xscale="log", yscale="log", xlabel="slots", ylabel=label)
        axes.grid(alpha=0.3)
        axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main(
    sizes: MemorySizes = MemorySizes(),
    bert: BertSizes = BASE,
    num_sub_keys: tuple[int, ...] = (64, 128, 256, 512, 1024),
    flat_up_to: int = 512,
    reference: int = 128,
    tokens: int = 128,
    rounds: int = 11,
    out: pathlib.Path = pathlib.Path("runs/benchmarks"),
):
    """Times memories with growing numbers of slots.

    Args:
        sizes: Sizes of the layers.
        bert: Sizes of the BERT around them.
        num_sub_keys: Numbers of sub-keys, the square roots of the numbers of
            slots.
        flat_up_to: The largest number of sub-keys for flat keys, whose keys and
            scores grow with the number of slots.
        reference: The number of sub-keys with which the others are compared.
        tokens: Number of tokens in a batch.
        rounds: Number of rounds. Each times a size and the reference once.
        out: Directory for scaling.md, scaling.json and scaling.png.
    """
    points = [
        (kind, number)
        for kind in (PRODUCT, FLAT, BERT)
        for number in num_sub_keys
        if kind != FLAT or number <= flat_up_to
    ]

    def rows():
        for kind, number in tqdm(points, disable=None):
            pair = [
                contender(kind, sizes, bert, n, tokens)
                for n in (reference, number)
            ]
            before, timing = time_in_turn(pair, ["forward"], rounds)["forward"]
            yield {
                "model": kind,
                "sub-keys": number,
                "slots": number**2,
                "parameters": f"{timing.facts['parameters']:,}",
                "ms": f"{1e3 * timing.median:.3g}",
                f"time, {reference}² = 1": timing.ratio_to(before),
                "peak MiB": timing.peak_bytes and timing.peak_bytes >> 20,
            }

    plot(report("scaling", rows(), out), out / "scaling.png")


if __name__ == "__main__":
    tyro.cli(main)
