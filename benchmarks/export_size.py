#!/usr/bin/env python
"""Measures the export of a large encoder: time, memory, disk, precision.

    python benchmarks/export_size.py

exports BASE+ResM with random weights, 515 million parameters, once with tables
of each dtype, each in a separate process.
"""

import dataclasses
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import numpy as np
import tyro

from benchmarks.contenders.sizes import BASE
from benchmarks.contenders.sizes import BertSizes
from benchmarks.timing.report import report

ROOT = pathlib.Path(__file__).parents[1]
DTYPES = ("float32", "bfloat16", "int8")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Export a large encoder with tables of each dtype."""

    base: BertSizes = BASE
    # Number of tokens of the inputs on which outputs are compared.
    length: int = 128
    # Directory of the table and its JSON.
    out: pathlib.Path = pathlib.Path("runs/benchmarks")


def save_preset(path, sizes, length):
    """Writes a model with random weights, and a tokenizer."""
    import keras
    import keras_hub

    from keras_pkm.models import add_memory

    keras.utils.set_random_seed(0)
    plain = keras_hub.models.BertBackbone(
        vocabulary_size=sizes.vocabulary_size,
        num_layers=sizes.num_layers,
        num_heads=sizes.num_heads,
        hidden_dim=sizes.hidden_dim,
        intermediate_dim=sizes.intermediate_dim,
        max_sequence_length=length,
    )
    backbone = add_memory(
        plain,
        sizes.memory_layers,
        {
            "num_sub_keys": sizes.num_sub_keys,
            "top_k": sizes.top_k,
            "values_initializer": "random_normal",
        },
        "resm",
    )
    backbone.save_to_preset(path)
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
    files = [path for path in out.rglob("*") if path.is_file()]
    return {
        "s": time.perf_counter() - start,
        "peak GB": usage.ru_maxrss / 2**20,
        "disk MB": sum(path.stat().st_size for path in files) / 1e6,
    }


def load(queue, path, vocabulary_size, length):
    """Sends back a model's outputs, and the size of its variables."""
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
    queue.put((outputs["sequence_output"].numpy(), size))


def main():
    """Runs the command."""
    recipe = tyro.cli(Recipe)
    sizes, length = recipe.base, recipe.length
    spawn = multiprocessing.get_context("spawn")
    rows, expected = [], None
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        process = spawn.Process(
            target=save_preset, args=(str(folder / "preset"), sizes, length)
        )
        process.start()
        process.join()
        for dtype in DTYPES:
            out = folder / dtype
            took = export(folder / "preset", out, dtype)
            queue = spawn.Queue()
            process = spawn.Process(
                target=load, args=(queue, out, sizes.vocabulary_size, length)
            )
            process.start()
            outputs, size = queue.get()
            process.join()
            expected = outputs if expected is None else expected
            change = np.sqrt(
                np.mean((outputs - expected) ** 2) / np.mean(expected**2)
            )
            rows.append(
                {
                    "values": dtype,
                    "export s": round(took["s"], 1),
                    "peak GB": round(took["peak GB"], 2),
                    "disk MB": round(took["disk MB"], 1),
                    "variables MB": round(size / 1e6, 1),
                    "disk / variables": round(took["disk MB"] * 1e6 / size, 4),
                    "change of outputs": f"{change:.2%}",
                }
            )
    report("export_size", rows, recipe.out)


if __name__ == "__main__":
    main()
