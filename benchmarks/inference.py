#!/usr/bin/env python
"""Times BERT with and without memories in serving (table 1).

python benchmarks/inference.py
"""

import pathlib
import sys
from typing import Literal
from typing import TypeAlias

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import tyro
from tqdm import tqdm

from benchmarks.contenders.sizes import BASE
from benchmarks.contenders.sizes import LARGE
from benchmarks.contenders.sizes import BertSizes
from benchmarks.timing.in_turn import Contender
from benchmarks.timing.in_turn import time_in_turn
from benchmarks.timing.report import report

# Kim and Jung's table 1: batches a second at batch 1 on a V100, as ratios.
PAPER = {
    "BASE": 1.0,
    "BASE+PKM": 0.769,
    "BASE+ResM": 0.743,
    "LARGE": 0.540,
    "LARGE+PKM": 0.466,
    "LARGE+ResM": 0.452,
}
Model: TypeAlias = Literal[
    "BASE", "BASE+PKM", "BASE+ResM", "LARGE", "LARGE+PKM", "LARGE+ResM"
]
BLOCKS = {"": "ffn", "+PKM": "pkm", "+ResM": "resm"}


def main(
    base: BertSizes = BASE,
    large: BertSizes = LARGE,
    batches: tuple[int, ...] = (1, 32),
    length: int = 128,
    precision: str = "float32",
    implementation: Literal["fastest", "portable"] = "fastest",
    models: tuple[Model, ...] = tuple(PAPER),
    rounds: int = 11,
    out: pathlib.Path = pathlib.Path("runs/benchmarks"),
):
    """Times BERT with and without memories in serving.

    Args:
        base: Sizes of BERT-BASE.
        large: Sizes of BERT-LARGE.
        batches: Batch sizes, in sequences.
        length: Number of tokens of a sequence.
        precision: Dtype policy.
        implementation: Implementation of the memories. Exported models have the
            portable one.
        models: The models to time.
        rounds: Number of rounds. A round times a model and BASE once each.
        out: Directory for inference.md and inference.json.
    """
    all_models = {
        f"{name}{suffix}": (sizes, block)
        for name, sizes in (("BASE", base), ("LARGE", large))
        for suffix, block in BLOCKS.items()
    }
    pairs = [(batch, name) for batch in batches for name in models]

    def contender(name, batch):
        options = (batch, length, precision, implementation)
        return Contender(
            name, "bert_contenders.encoder", (*all_models[name], *options)
        )

    def rows():
        with tqdm(pairs, disable=None) as progress:
            for batch, name in progress:
                progress.set_description(f"{batch} x {length}, {name}")
                pair = [contender(each, batch) for each in ("BASE", name)]
                timings = time_in_turn(pair, ["forward"], rounds)
                plain, timing = timings["forward"]
                yield {
                    "batch": f"{batch} x {length}",
                    "model": name,
                    "parameters": f"{timing.facts['parameters']:,}",
                    "ms": f"{1e3 * timing.median:.1f}",
                    "batches/s": f"{1 / timing.median:.3g}",
                    "speed, BASE = 1": plain.ratio_to(timing),
                    "paper's (V100, batch 1)": (
                        PAPER[name] if batch == 1 else "-"
                    ),
                }

    report("inference", rows(), out)


if __name__ == "__main__":
    tyro.cli(main)
