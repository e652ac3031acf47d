#!/usr/bin/env python
"""Times a memory and BERT-BASE on whatever device Keras' backend has.

    KERAS_BACKEND=jax python benchmarks/accelerator.py

It needs keras, keras-hub, tokenizers, tabulate, tqdm and tyro, and the backend:
jax, torch or tensorflow. TensorFlow need not be installed.
"""

import gc
import pathlib
import sys
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import keras
import numpy as np
import tyro
from keras import ops
from tqdm import tqdm

import keras_pkm
from benchmarks.contenders.bert_models import make_backbone
from benchmarks.contenders.bert_models import make_examples
from benchmarks.contenders.bert_models import make_masked_lm
from benchmarks.contenders.bert_models import make_tokens
from benchmarks.contenders.sizes import BASE
from benchmarks.contenders.sizes import BertSizes
from benchmarks.contenders.sizes import MemorySizes
from benchmarks.timing.on_device import time_in_turn
from benchmarks.timing.report import report
from benchmarks.timing.times import Times
from keras_pkm.ops.backend import backend
from keras_pkm.ops.one_device import OneDevice

GIB = 2**30
# The goals: the speed of BASE+ResM at inference and the time of its train step,
# BASE = 1; the bandwidth of a read, that of a copy = 1.
GOALS = {"inference": 0.95, "train step": 1.1, "read": 0.6}


def device_limits(rounds: int, size: int) -> dict[str, float]:
    """Returns the bandwidth of a copy and the rate of a matrix product."""
    numbers = 16 * size**2
    source = ops.ones((numbers,), "float32")
    copy = _compiled(lambda x: [x + 1.0])
    half = keras.random.normal((size, size), dtype="float32")
    half = ops.cast(half, "bfloat16")
    product = _compiled(lambda x: [ops.matmul(x, x)])
    times = time_in_turn(
        {"copy": lambda: copy(source), "product": lambda: product(half)},
        rounds,
        calls=5,
    )
    return {
        "bytes/s": 2 * 4 * numbers / times["copy"].median,
        "FLOP/s": 2 * size**3 / times["product"].median,
    }


def time_layer(
    sizes: MemorySizes, tokens: int, rounds: int, bandwidth: float
) -> dict[str, Any]:
    """Returns the row of one number of tokens."""
    memory = keras_pkm.layers.ProductKeyMemory(
        sizes.num_sub_keys,
        num_heads=sizes.num_heads,
        top_k=sizes.top_k,
        key_dim=sizes.key_dim,
    )
    feed_forward = keras.Sequential(
        [
            keras.layers.Dense(4 * sizes.width, activation="gelu"),
            keras.layers.Dense(sizes.width),
        ]
    )
    inputs = keras.random.normal((tokens, sizes.width))
    memory(inputs[:1])
    feed_forward(inputs[:1])
    reads = sizes.num_heads * sizes.top_k
    slots = ops.convert_to_tensor(
        np.random.default_rng(0)
        .integers(0, memory.num_slots, (tokens, reads))
        .astype("int32")
    )
    weights = keras.random.uniform((tokens, reads))
    table = memory.table.values

    def read(slots: Any, weights: Any) -> list[Any]:
        return [keras_pkm.ops.embedding_bag(table, slots, weights, "fastest")]

    def read_back(slots: Any, weights: Any) -> list[Any]:
        def loss() -> Any:
            return ops.sum(read(slots, weights)[0])

        gradients = backend.gradients(loss, [table])
        return [backend.entries(each) for each in gradients]

    def layer(inputs: Any) -> list[Any]:
        return [memory(inputs, training=False)]

    forward = _compiled(read, [table])
    backward = _compiled(read_back, [table])
    whole = _compiled(layer, memory.variables)
    network = _compiled(lambda x: [feed_forward(x)], feed_forward.variables)
    times = time_in_turn(
        {
            "read": lambda: forward(slots, weights),
            "read, backward": lambda: backward(slots, weights),
            "memory": lambda: whole(inputs),
            "network": lambda: network(inputs),
        },
        rounds,
        calls=3,
    )
    moved = 4 * sizes.width * tokens * (reads + 1) + 8 * tokens * reads
    rate = moved / times["read"].median
    return {
        "tokens": tokens,
        "read ms": _ms(times["read"]),
        "read and gradient ms": _ms(times["read, backward"]),
        "moved GiB": f"{moved / GIB:.2f}",
        "GB/s": f"{rate / 1e9:,.0f}",
        "of the copy's": f"{rate / bandwidth:.2f}",
        "goal": GOALS["read"],
        "memory ms": _ms(times["memory"]),
        "feed-forward ms": _ms(times["network"]),
    }


def time_bert(
    sizes: BertSizes, batch: int, length: int, rounds: int, steps: int
) -> Iterator[dict[str, Any]]:
    """Yields rows of BERT with and without memory: inference and training."""
    tokens = {
        name: ops.convert_to_tensor(values)
        for name, values in make_tokens(sizes, batch, length).items()
    }
    blocks = {"BASE": "ffn", "BASE+ResM": "resm"}
    backbones = {
        name: make_backbone(sizes, block, length)
        for name, block in blocks.items()
    }
    functions: dict[str, Callable[[], Any]] = {}
    for name, backbone in backbones.items():

        def encode(features: Any, backbone: Any = backbone) -> list[Any]:
            return [backbone(features, training=False)["sequence_output"]]

        forward = _compiled(encode, backbone.variables)
        functions[name] = lambda forward=forward: forward(tokens)
    times = time_in_turn(functions, rounds)
    ratio = times["BASE"].ratio_to(times["BASE+ResM"])
    goal = f"speed >= {GOALS['inference']}"
    yield _row("inference", batch, length, times, ratio, goal)
    del functions, backbones, forward
    gc.collect()

    models = {
        name: make_masked_lm(sizes, block, length)
        for name, block in blocks.items()
    }
    examples = make_examples(sizes, batch, length)
    trainings = {}
    for name, model in models.items():
        model.compile(keras_pkm.optimizers.PKMAdam(1e-4))
        # Keras' own `fit`: that of KerasHub's tasks needs grain.
        trainings[name] = lambda model=model: keras.Model.fit(
            model, _Repeated(examples, steps), verbose=0, shuffle=False
        )
    found = time_in_turn(trainings, rounds)
    steps_of = {
        name: Times([each / steps for each in times.seconds])
        for name, times in found.items()
    }
    ratio = steps_of["BASE+ResM"].ratio_to(steps_of["BASE"])
    goal = f"time <= {GOALS['train step']}"
    yield _row("train step", batch, length, steps_of, ratio, goal)


class _Repeated(keras.utils.PyDataset):
    """The same batch, some times over."""

    def __init__(self, batch: Any, count: int):
        super().__init__()
        self._batch = batch
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Any:
        return self._batch


def _row(
    task: str,
    batch: int,
    length: int,
    times: dict[str, Times],
    ratio: str,
    goal: str,
) -> dict[str, Any]:
    return {
        "task": task,
        "batch": f"{batch} x {length}",
        **{f"{name} ms": _ms(each) for name, each in times.items()},
        "BASE+ResM, BASE = 1": ratio,
        "goal": goal,
    }


def _ms(times: Times) -> str:
    return f"{1e3 * times.median:.3g}"


def _compiled(
    function: Callable[..., list[Any]], variables: Any = ()
) -> Callable[..., list[Any]]:
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        strategy: Any = tf.distribute.get_strategy()
    else:
        strategy = OneDevice()
    return backend.compiled(function, list(variables), strategy)


def main(
    memory: MemorySizes = MemorySizes(),
    base: BertSizes = BASE,
    tokens: tuple[int, ...] = (2048, 8192, 32768, 65536),
    batches: tuple[int, ...] = (1, 32),
    length: int = 128,
    precision: str = "mixed_bfloat16",
    matrix: int = 8192,
    rounds: int = 7,
    steps: int = 10,
    out: pathlib.Path = pathlib.Path("runs/benchmarks"),
) -> None:
    """Times a memory and BERT-BASE on whatever device Keras' backend has.

    Args:
        memory: Sizes of the memory.
        base: Sizes of BERT-BASE and its memories.
        tokens: Numbers of tokens of the memory's inputs.
        batches: Batch sizes of BERT, in sequences.
        length: Number of tokens of a sequence.
        precision: Dtype policy.
        matrix: Side of the matrices whose product is timed.
        rounds: Number of rounds. A round times everything that is compared
            once.
        steps: Number of train steps in a round.
        out: Directory for accelerator-BACKEND-*.md and .json.
    """
    keras.config.set_dtype_policy(precision)
    name = f"accelerator-{keras.backend.backend()}"
    limits = device_limits(rounds, matrix)
    device = {
        "copy GB/s": f"{limits['bytes/s'] / 1e9:,.0f}",
        "product TFLOP/s": f"{limits['FLOP/s'] / 1e12:,.1f}",
    }
    report(f"{name}-device", [device], out)
    bandwidth = limits["bytes/s"]
    of_memory = (
        time_layer(memory, count, rounds, bandwidth) for count in tokens
    )
    of_bert = (
        row
        for batch in batches
        for row in time_bert(base, batch, length, rounds, steps)
    )
    for what, rows, count in (
        ("memory", of_memory, len(tokens)),
        ("bert", of_bert, 2 * len(batches)),
    ):
        each = tqdm(rows, desc=f"{name}-{what}", total=count, disable=None)
        report(f"{name}-{what}", _collected(each), out)


def _collected(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Frees what a row needed before the next one."""
    for row in rows:
        yield row
        gc.collect()


if __name__ == "__main__":
    tyro.cli(main)
