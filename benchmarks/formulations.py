#!/usr/bin/env python
"""Times alternative implementations of the parts of a memory layer.

    python benchmarks/formulations.py

For each part, the first row is the implementation that the layer uses on CPUs;
it was chosen by this table. Two more rows show the limits of the machine.
"""

import functools
import pathlib
import sys

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import numpy as np
import tensorflow as tf
import tyro
from tqdm import tqdm

from benchmarks.contenders.sizes import MemorySizes
from benchmarks.timing.on_device import time_in_turn
from benchmarks.timing.report import report
from keras_pkm.ops.product_key_search import product_key_search
from keras_pkm.ops.product_key_search import stock_search
from keras_pkm.ops.tensorflow import cpu_reads
from keras_pkm.ops.tensorflow import cpu_row_update
from keras_pkm.ops.tensorflow import row_update
from keras_pkm.ops.tensorflow import stock_reads


def parts(sizes: MemorySizes, tokens: int) -> dict[str, dict]:
    """Returns the implementations of each part, the one in use first."""
    slots_of_table = sizes.num_sub_keys**2
    reads = sizes.num_heads * sizes.top_k
    rng = np.random.default_rng(0)

    def normal(*shape):
        seed = rng.integers(2**31, size=2)
        return tf.random.stateless_normal(shape, seed)

    table, *moments = (
        tf.Variable(normal(slots_of_table, sizes.width) ** 2) for _ in range(3)
    )
    slots = tf.constant(
        rng.integers(slots_of_table, size=(tokens, reads)), "int32"
    )
    weights = normal(tokens, reads)
    upstream = normal(tokens, sizes.width)
    shape = table.shape

    def xla(function):
        return tf.function(function, jit_compile=True, autograph=False)

    def gather_and_product(slots, weights):
        return tf.einsum(
            "tj,tjw->tw", weights, stock_reads.gather(table.handle, slots)
        )

    def sparse_product():
        reader = np.repeat(np.arange(tokens), reads)
        return tf.raw_ops.SparseTensorDenseMatMul(
            a_indices=np.stack([reader, np.ravel(slots)], axis=1),
            a_values=tf.reshape(weights, [-1]),
            a_shape=(tokens, slots_of_table),
            b=table,
        )

    def gather_and_weigh(slots, upstream):
        return tf.einsum(
            "tw,tjw->tj", upstream, stock_reads.gather(table.handle, slots)
        )

    def sort_and_sum(slots, weights, upstream):
        rows, segments, tokens, weights = stock_reads.sort_reads(slots, weights)
        values = weights[:, None] * tf.gather(upstream, tokens)
        return tf.math.segment_sum(values, segments), rows

    gradient = cpu_reads.table_gradient(shape, slots, weights, upstream)
    tables = (table, *moments)

    def adam(gradient, values, m, v):
        m += (gradient - m) * 0.1
        v += (tf.square(gradient) - v) * 0.001
        return values - 1e-6 * m / (tf.sqrt(v) + 1e-7), m, v

    def update_in_parts(size):
        def part(start):
            rows = gradient.indices[start : start + size]
            slices = tf.IndexedSlices(
                gradient.values[start : start + size], rows
            )
            row_update.update_at_once(tables, slices, adam)
            return (start + size,)

        tf.while_loop(
            lambda start: start < tf.size(gradient.indices),
            part,
            (0,),
            parallel_iterations=1,
        )

    scores = normal(2 * sizes.num_heads * tokens, sizes.num_sub_keys)
    kth = sizes.num_sub_keys - sizes.top_k

    def nth_element():
        lowest = tf.raw_ops.NthElement(input=scores, n=kth)[:, None]
        return tf.boolean_mask(scores, scores >= lowest)

    queries = normal(tokens, sizes.num_heads, sizes.key_dim)
    sub_keys = normal(
        sizes.num_heads, 2, sizes.num_sub_keys, sizes.key_dim // 2
    )
    of_scores = normal(tokens, sizes.num_heads, sizes.top_k)

    def search():
        with tf.GradientTape() as tape:
            tape.watch((queries, sub_keys))
            _, found = product_key_search(
                queries, sub_keys, sizes.top_k, "fastest"
            )
        return tape.gradient(found, (queries, sub_keys), of_scores)

    def search_densely():
        with tf.GradientTape() as tape:
            tape.watch((queries, sub_keys))
            _, found = stock_search(sizes.top_k, queries, sub_keys)
        return tape.gradient(found, (queries, sub_keys), of_scores)

    kernel = normal(sizes.width, sizes.num_heads * sizes.key_dim)
    cases = {
        "weighted sum of rows": {
            "XLA, 8 reads at a time": lambda: cpu_reads.weighted_sum(
                table.handle, shape, slots, weights
            ),
            "gather, product": lambda: gather_and_product(slots, weights),
            "gather, product, compiled by XLA": functools.partial(
                xla(gather_and_product), slots, weights
            ),
            "gather, product, in blocks (portable)": lambda: (
                stock_reads.weighted_sum(table.handle, shape, slots, weights)
            ),
            "product with a sparse matrix": sparse_product,
        },
        "gradient of the weights": {
            "XLA, a token at a time": lambda: cpu_reads.weights_gradient(
                table.handle, shape, slots, upstream
            ),
            "gather, product": lambda: gather_and_weigh(slots, upstream),
            "gather, product, in blocks (portable)": lambda: (
                stock_reads.weights_gradient(
                    table.handle, shape, slots, upstream
                )
            ),
        },
        "gradient of the table": {
            "sort, product with a sparse matrix": lambda: (
                cpu_reads.table_gradient(shape, slots, weights, upstream)
            ),
            "sort, segment sum": lambda: sort_and_sum(slots, weights, upstream),
            "sort, sparse_dense_matmul (portable)": lambda: (
                stock_reads.table_gradient(shape, slots, weights, upstream)
            ),
        },
        f"update of the {len(gradient.indices):,} rows": {
            "XLA, in place": lambda: cpu_row_update.update_in_blocks(
                tables, gradient, adam
            ),
            "gather, scatter": lambda: row_update.update_at_once(
                tables, gradient, adam
            ),
            "gather, scatter, 1,024 rows at a time": lambda: update_in_parts(
                1024
            ),
        },
        f"best {sizes.top_k} of {sizes.num_sub_keys}": {
            "top_k": lambda: tf.math.top_k(scores, sizes.top_k),
            "top_k, compiled by XLA": xla(
                lambda: tf.math.top_k(scores, sizes.top_k)
            ),
            "nth element, mask, unsorted": nth_element,
        },
        "search, forward and backward": {
            "backward as products with a sparse matrix": search,
            "backward of all scores": search_densely,
        },
        "the machine": {
            "product with the query projection": lambda: upstream @ kernel,
            "copy of a table": lambda: tf.raw_ops.DeepCopy(x=moments[0]),
        },
    }
    return {
        part: {
            name: tf.function(function, autograph=False)
            for name, function in ways.items()
        }
        for part, ways in cases.items()
    }


def main(
    sizes: MemorySizes = MemorySizes(),
    tokens: int = 2048,
    rounds: int = 11,
    out: pathlib.Path = pathlib.Path("runs/benchmarks"),
):
    """Times alternative implementations of the parts of a memory layer.

    Args:
        sizes: Sizes of the layer.
        tokens: Number of tokens in a batch.
        rounds: Number of rounds. A round times each implementation once.
        out: Directory for formulations.md and formulations.json.
    """

    def rows():
        for part, ways in tqdm(parts(sizes, tokens).items(), disable=None):
            times = time_in_turn(ways, rounds)
            first = next(iter(times.values()))
            for name, each in times.items():
                yield {
                    "part": part,
                    "way": name,
                    "ms": f"{1e3 * each.median:.1f}",
                    "times slower": each.ratio_to(first),
                }

    report("formulations", rows(), out)


if __name__ == "__main__":
    tyro.cli(main)
