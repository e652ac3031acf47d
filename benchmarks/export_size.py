#!/usr/bin/env python
"""Measures the export of a large encoder: time, memory, disk, precision.

    python benchmarks/export_size.py

exports BASE+ResM with random weights, 515 million parameters, once with tables
of each dtype, each in a separate process.
"""

import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Literal

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import numpy as np
import tyro

from benchmarks.contenders.sizes import BASE
from benchmarks.contenders.sizes import BertSizes
from benchmarks.timing.report import megabytes
from benchmarks.timing.report import report

ROOT = pathlib.Path(__file__).parents[1]
DType = Literal["float32", "bfloat16", "int8"]
DTYPES: tuple[DType, ...] = ("float32", "bfloat16", "int8")


def save_preset(path, sizes, length):
    """Writes a model with random weights, and a tokenizer."""
    import keras
    import keras_hub

    from benchmarks.contenders.bert_models import make_backbone

    keras.utils.set_random_seed(0)
    make_backbone(sizes, "resm", length, least=0).save_to_preset(path)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [f"w{number}" for number in range(sizes.vocabulary_size - 5)]
    keras_hub.models.BertTokenizer([*special, *words]).save_to_preset(path)


def export(preset, out, dtype) -> dict:
    """Exports in a separate process, and returns time, memory and disk use."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [
            *(sys.executable, ROOT / "export" / "saved_model.py"),
            *("--model", preset, "--what", "encoder", "--out", out),
            *("--values-dtype", dtype),
        ]
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"the export ended with status {status}")
    return {
        "s": time.perf_counter() - start,
        "peak GB": usage.ru_maxrss * 1024 / 1e9,
        "disk MB": megabytes(out),
    }


def load(path, vocabulary_size, length):
    """Returns a model's outputs, and the size of its variables."""
    import tensorflow as tf

    model = tf.saved_model.load(str(path))
    ids = np.random.default_rng(0).integers(5, vocabulary_size, (8, length))
    ids = tf.constant(ids, "int32")
    outputs = model(
        {
            "input_word_ids": ids,
            "input_mask": tf.ones_like(ids),
            "input_type_ids": tf.zeros_like(ids),
        }
    )
    size = sum(
        variable.shape.num_elements() * variable.dtype.size
        for variable in model.variables
    )
    return outputs["sequence_output"].numpy(), size


def main(
    base: BertSizes = BASE,
    length: int = 128,
    dtypes: tuple[DType, ...] = DTYPES,
    out: pathlib.Path = pathlib.Path("runs/benchmarks"),
):
    """Exports a large encoder with tables of each dtype.

    Args:
        base: Sizes of the encoder.
        length: Number of tokens of the inputs on which outputs are compared.
        dtypes: Dtypes of the tables. Outputs are compared with the first one's.
        out: Directory of the table and its JSON.
    """
    report("export_size", measure(base, length, dtypes), out)


def measure(
    sizes: BertSizes, length: int, dtypes: tuple[DType, ...]
) -> Iterator[dict]:
    """Yields a row for each dtype."""
    expected = None
    # Each in a process of its own.
    pool = ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn"), max_tasks_per_child=1
    )
    with pool, tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        preset = str(folder / "preset")
        pool.submit(save_preset, preset, sizes, length).result()
        for dtype in dtypes:
            out = folder / dtype
            took = export(preset, out, dtype)
            outputs, size = pool.submit(
                load, out, sizes.vocabulary_size, length
            ).result()
            expected = outputs if expected is None else expected
            change = np.sqrt(
                np.mean((outputs - expected) ** 2) / np.mean(expected**2)
            )
            yield {
                "values": dtype,
                "export s": round(took["s"], 1),
                "peak GB": round(took["peak GB"], 2),
                "disk MB": round(took["disk MB"], 1),
                "variables MB": round(size / 1e6, 1),
                "disk / variables": round(took["disk MB"] * 1e6 / size, 4),
                "change of outputs": f"{change:.2%}",
            }


if __name__ == "__main__":
    tyro.cli(main)
