#!/usr/bin/env python
"""Times train steps with and without memories, with PKMAdam and with Adam.

python benchmarks/training.py
"""

import dataclasses
import pathlib
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import tyro
from tqdm import tqdm

from benchmarks.contenders.sizes import BASE
from benchmarks.contenders.sizes import BertSizes
from benchmarks.timing.in_turn import Contender
from benchmarks.timing.in_turn import time_in_turn
from benchmarks.timing.report import mebibytes
from benchmarks.timing.report import report

# The block, and the entries of `memory_layers` that have it.
MODELS = {
    "BASE": ("ffn", slice(None)),
    "BASE+PKM": ("pkm", slice(None)),
    "BASE+ResM": ("resm", slice(None)),
    "BASE+ResM, one memory": ("resm", slice(1)),
}
# Pairs to time in turn, and the paper's figure: 2.8 days without memory and 5.1
# with memory, on 32 V100 (section 4.4). Adam and PKMAdam are compared with one
# memory, because two models with two memories need more than 23 GB together.
PAIRS = (
    (("BASE", "PKMAdam"), ("BASE+PKM", "PKMAdam"), "-"),
    (("BASE", "PKMAdam"), ("BASE+ResM", "PKMAdam"), 1.82),
    (("BASE", "PKMAdam"), ("BASE", "Adam"), "-"),
    (
        ("BASE+ResM, one memory", "PKMAdam"),
        ("BASE+ResM, one memory", "Adam"),
        "-",
    ),
)


def main(
    sizes: BertSizes = BASE,
    batch: int = 8,
    length: int = 128,
    precision: str = "float32",
    rounds: int = 7,
    out: pathlib.Path = pathlib.Path("runs/benchmarks"),
):
    """Times train steps with and without memories, with PKMAdam and Adam.

    Args:
        sizes: Sizes of the model.
        batch: Number of sequences in a batch.
        length: Number of tokens of a sequence.
        precision: Dtype policy.
        rounds: Number of rounds. A round times both of a pair once.
        out: Directory for training.md and training.json.
    """

    def contender(name, optimizer):
        block, which = MODELS[name]
        model = dataclasses.replace(
            sizes, memory_layers=sizes.memory_layers[which]
        )
        return Contender(
            f"{name}, {optimizer}",
            "bert_contenders.masked_lm",
            (model, block, batch, length, precision, optimizer),
        )

    def rows():
        for *pair, paper in tqdm(PAIRS, disable=None):
            contenders = [contender(*each) for each in pair]
            timings = time_in_turn(contenders, ["train step"], rounds)
            first, second = timings["train step"]
            yield {
                "model": contenders[1].name,
                "parameters": f"{second.facts['parameters']:,}",
                "ms": f"{1e3 * second.median:.0f}",
                "against": contenders[0].name,
                "its ms": f"{1e3 * first.median:.0f}",
                "times slower": second.ratio_to(first),
                "paper's (32 V100)": paper,
                "peak MiB": mebibytes(second.peak_bytes),
            }

    report("training", rows(), out)


if __name__ == "__main__":
    tyro.cli(main)
