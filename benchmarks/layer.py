#!/usr/bin/env python
"""Times one product-key memory against other implementations of it.

    python benchmarks/layer.py

It times the forward pass, forward and backward, and a whole train step with its
optimizer, and measures the memory that each needs. Each time is shown beside
ours from the same rounds.
"""

import importlib.util
import pathlib
import sys
from collections.abc import Iterator

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import tyro
from tqdm import tqdm

from benchmarks.contenders.sizes import MemorySizes
from benchmarks.timing.in_turn import Contender
from benchmarks.timing.in_turn import time_in_turn
from benchmarks.timing.report import mebibytes
from benchmarks.timing.report import report

TASKS = ("forward", "forward + backward", "train step")
STEP = TASKS[-1]
# The other implementations: name, builder, its further arguments, tasks.
PEERS = (
    (
        "product-key-memory (torch), Adam",
        "torch_contenders.package",
        (),
        TASKS,
    ),
    ("EmbeddingBag (torch), Adam", "torch_contenders.bag", (False,), TASKS),
    (
        "EmbeddingBag (torch), fused Adam",
        "torch_contenders.bag",
        (True,),
        (STEP,),
    ),
    (
        "EmbeddingBag (torch), SparseAdam",
        "torch_contenders.sparse_bag",
        (),
        (STEP,),
    ),
    ("plain Keras, Adam", "keras_contenders.plain", (), TASKS),
)
TORCH = all(
    importlib.util.find_spec(package)
    for package in ("torch", "product_key_memory")
)


def compare(
    sizes: MemorySizes, tokens: int, peer: tuple, rounds: int
) -> Iterator[dict]:
    """Yields the table's rows for one peer, a row for each task."""
    name, build, args, tasks = peer
    contenders = [
        Contender("keras_pkm", "keras_contenders.ours", (sizes, tokens)),
        Contender(name, build, (sizes, tokens, *args)),
    ]
    timings = time_in_turn(contenders, tasks, rounds)
    for task in tasks:
        ours, theirs = timings[task]
        read = ours.facts["rows read"]
        held = sizes.table_bytes
        if task == STEP:
            # Two moments, and the gradient of the slots that were read.
            held = 3 * held + 4 * sizes.width * read
        yield {
            "tokens": tokens,
            "task": task,
            "against": name,
            "keras_pkm ms": f"{1e3 * ours.median:.1f}",
            "other ms": f"{1e3 * theirs.median:.1f}",
            "times faster": theirs.ratio_to(ours),
            "keras_pkm MiB": mebibytes(ours.peak_bytes, held),
            "other MiB": mebibytes(theirs.peak_bytes, held),
            "held MiB": mebibytes(held),
            "slots read": read,
        }


def main(
    sizes: MemorySizes = MemorySizes(),
    tokens: tuple[int, ...] = (128, 2048, 4096, 8192),
    rounds: int = 11,
    out: pathlib.Path = pathlib.Path("runs/benchmarks"),
):
    """Times one product-key memory against other implementations of it.

    Memory is the peak use beyond what every implementation needs: the table
    and, in train steps, two moments of its size and the gradient of the slots
    that were read.

    Args:
        sizes: Sizes of the layer.
        tokens: Batch sizes, in tokens.
        rounds: Number of rounds. Each times both implementations once.
        out: Directory for layer.md and layer.json.
    """
    if not TORCH:
        print(
            "torch and product-key-memory are not both installed: no "
            "comparison with them. pip install 'keras-pkm[benchmarks]'"
        )
    pairs = [
        (count, peer)
        for count in tokens
        for peer in PEERS
        if TORCH or not peer[1].startswith("torch")
    ]

    def rows():
        with tqdm(pairs, disable=None) as progress:
            for count, peer in progress:
                progress.set_description(f"{count:,} tokens, {peer[0]}")
                yield from compare(sizes, count, peer, rounds)

    report("layer", rows(), out)


if __name__ == "__main__":
    tyro.cli(main)
