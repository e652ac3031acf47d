#!/usr/bin/env python
"""Times training with and without a monitor of memory usage.

python benchmarks/monitoring.py
"""

import pathlib
import statistics
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import tyro

from benchmarks.contenders.sizes import BertSizes
from benchmarks.timing.in_turn import Contender
from benchmarks.timing.in_turn import time_in_turn
from benchmarks.timing.report import report

# The sizes of `pretrain.py --recipe laptop`.
LAPTOP = BertSizes(
    num_layers=3,
    hidden_dim=128,
    num_heads=4,
    intermediate_dim=512,
    memory_layers=(1, 2),
    num_sub_keys=16,
    memory_heads=2,
    top_k=8,
    key_dim=32,
    vocabulary_size=2000,
)


def main(
    sizes: BertSizes = LAPTOP,
    batch: int = 64,
    length: int = 32,
    steps: int = 120,
    held_out: int = 192,
    rounds: int = 5,
    out: pathlib.Path = pathlib.Path("runs/benchmarks"),
):
    """Times training with and without `MemoryUsageMonitor`.

    The defaults are those of a stage of `pretrain.py --recipe laptop`, which
    measures five times in 600 steps. A measurement reads one batch for every 33
    batches of training. Its time is also measured with a single train step,
    where it is not hidden by the variation of many steps.

    Args:
        sizes: Sizes of the model, BERT+ResM.
        batch: Number of sequences in a batch.
        length: Number of tokens of a sequence.
        steps: Number of train steps between two measurements.
        held_out: Number of sequences that a measurement reads.
        rounds: Number of rounds. Each times training with and without it.
        out: Directory for monitoring.md and monitoring.json.
    """

    def timed(steps, rounds):
        contenders = [
            Contender(
                name,
                "bert_contenders.fit",
                (sizes, batch, length, steps, held_out, monitored),
            )
            for name, monitored in (("not watched", False), ("watched", True))
        ]
        return time_in_turn(contenders, ["fit"], rounds)["fit"]

    plain, watched = timed(steps, rounds)
    measurement = statistics.median(
        with_it - without
        for without, with_it in zip(
            *(timing.seconds for timing in timed(1, 4 * rounds))
        )
    )
    row = {
        "steps": steps,
        "sequences measured": held_out,
        "ms a step, watched": f"{1e3 * watched.median / steps:.1f}",
        "not watched": f"{1e3 * plain.median / steps:.1f}",
        "times slower": watched.ratio_to(plain),
        "ms a measurement": f"{1e3 * measurement:.0f}",
        "% of the train steps": f"{100 * measurement / plain.median:.2f}",
    }
    report("monitoring", [row], out)


if __name__ == "__main__":
    tyro.cli(main)
