"""An encoder with smaller value tables, compared with the original.

Slots are kept that a text reads, and values may be stored in fewer bits.
"""

import math
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import TypeAlias

import keras_hub
import numpy as np
import tensorflow as tf

from keras_pkm.export.arguments import ArgumentError
from keras_pkm.export.encoder import Encoder
from keras_pkm.layers.fact_memory import FactMemory
from keras_pkm.layers.memories import memories
from keras_pkm.text.special_tokens import SpecialTokens
from keras_pkm.text.tokenize import readable

#: Returns batches as they are, and shows under a title how many have been read.
Progress: TypeAlias = Callable[[Sequence[Any], str], Iterable[Any]]

_BATCH = 32
# Of tokens, where perplexity is compared.
_MASK_RATE = 0.15
# In as many, each token is masked once.
_DRAWS = math.ceil(1 / _MASK_RATE)
# Without other texts, one of this number of inputs is used for the comparison.
_MEASURED = 10


def silent(batches: Sequence[Any], title: str) -> Iterable[Any]:
    """A `Progress` that shows nothing."""
    return batches


def make_encoder(
    backbone: keras_hub.models.Backbone,
    task: keras_hub.models.Task | None,
    tokenizer: keras_hub.tokenizers.Tokenizer | None,
    length: int,
    values_dtype: str,
    prune_unused: Sequence[str],
    keep_top: float,
    compare: Sequence[str],
    progress: Progress,
) -> tuple[Encoder, str]:
    """Returns the encoder to export, and a table of its changes.

    The table is Markdown; it is empty if there is no text to compare on.
    """
    before = Encoder(backbone)
    if not prune_unused and not compare:
        return Encoder(backbone, values_dtype), ""
    if not before.tables:
        raise ArgumentError(
            "`prune_unused` and `compare` need a model with memory, but "
            "`task` has none: leave them out"
        )
    if tokenizer is None:
        raise ArgumentError(
            "`prune_unused` and `compare` need a tokenizer, but `task` has no "
            "preprocessor with one: pass `tokenizer`"
        )
    special = SpecialTokens.of(tokenizer)
    kept, others = None, ""

    def inputs_of(name: str, texts: Sequence[str]) -> dict[str, np.ndarray]:
        inputs = _inputs_of(texts, tokenizer, special, length)
        if not len(inputs["input_mask"]):
            raise ArgumentError(
                f"`{name}` must contain text, received {len(texts)} texts with "
                "none"
            )
        return inputs

    if compare:
        measured = inputs_of("compare", compare)
    if prune_unused:
        chosen = inputs_of("prune_unused", prune_unused)
        if not compare:
            is_measured = np.arange(len(chosen["input_mask"])) % _MEASURED == 0
            if is_measured.all():
                raise ArgumentError(
                    "`prune_unused` needs text of two inputs at least, "
                    f"received at most one of {length} tokens: pass more text"
                )
            measured = _rows(chosen, is_measured)
            chosen = _rows(chosen, ~is_measured)
        batches = _batches_of(chosen)
        if hasattr(task, "masked_lm_head"):
            # Masks read other slots than the tokens that they hide.
            for draw in range(_DRAWS):
                batches += _batches_of(_mask(chosen, special, draw))
        kept = {
            number: kept_slots(mass, keep_top)
            for number, mass in _read_mass(before, batches, progress).items()
        }
        for number, memory in memories(backbone).items():
            if isinstance(memory, FactMemory):
                # These rows are keys, with which all tokens are compared.
                kept[before.table_of[number]][: memory.num_keys] = True
        others = f" Rows were chosen by {len(chosen['input_mask']):,} others."
    after = Encoder(backbone, values_dtype, kept)
    figures = _measure_change(before, after, task, measured, special, progress)
    count = len(measured["input_mask"])
    return after, _format_change(before, after, figures, count) + others


def kept_slots(mass: np.ndarray, percent: float = 100.0) -> np.ndarray:
    """Chooses the smallest set of slots with a given share of the mass."""
    if percent == 100:
        # Sums would lose the smallest ones to rounding.
        return mass > 0
    order = np.argsort(-mass, kind="stable")
    before = np.cumsum(mass[order]) - mass[order]
    kept = np.zeros(len(mass), bool)
    kept[order] = before < percent / 100 * mass.sum()
    return kept & (mass > 0)


def _read_mass(
    encoder: Encoder, batches: Sequence[Any], progress: Progress
) -> dict[int, np.ndarray]:
    """Sums the weights with which each slot is read."""
    access = tf.function(
        lambda inputs: encoder(inputs)["memory_access"],
        autograph=False,
        reduce_retracing=True,
    )
    mass = {
        number: np.zeros(table.num_slots)
        for number, table in encoder.tables.items()
    }
    for batch in progress(batches, "Reads"):
        for number, (slots, weights) in access(batch).items():
            np.add.at(
                mass[encoder.table_of[number]],
                slots.numpy().ravel(),
                np.abs(weights.numpy()).ravel(),
            )
    return mass


def _measure_change(
    before: Encoder,
    after: Encoder,
    task: Any,
    inputs: dict[str, np.ndarray],
    special: SpecialTokens,
    progress: Progress,
) -> dict[str, float]:
    """Compares two encoders of a model on the same text."""
    compare = tf.function(
        lambda inputs: _compare(before, after, task, inputs),
        autograph=False,
        reduce_retracing=True,
    )
    is_masked_lm = hasattr(task, "masked_lm_head")
    if is_masked_lm:
        inputs = _mask(inputs, special)
    totals: dict[str, Any] = {}
    for batch in progress(_batches_of(inputs), "Change"):
        sums = {
            name: value.numpy().astype("float64")
            for name, value in compare(batch).items()
        }
        totals = {
            name: value + totals.get(name, 0) for name, value in sums.items()
        }
    found = {"outputs": float(np.sqrt(totals["difference"] / totals["size"]))}
    if is_masked_lm:
        for name in ("before", "after"):
            found[f"perplexity {name}"] = float(
                np.exp(totals[name] / totals["masked"])
            )
    elif "same" in totals:
        found["same label"] = float(totals["same"] / totals["texts"])
    return found


def _compare(
    before: Encoder,
    after: Encoder,
    task: Any,
    inputs: dict[str, tf.Tensor],
) -> dict[str, tf.Tensor]:
    """Sums over a batch, from which `_measure_change` makes its figures."""
    outputs = [e(inputs)["sequence_output"] for e in (before, after)]
    real = tf.cast(inputs["input_mask"], "float32")[..., None]
    sums = {
        "difference": tf.reduce_sum(tf.square(outputs[1] - outputs[0]) * real),
        "size": tf.reduce_sum(tf.square(outputs[0]) * real),
    }
    if hasattr(task, "masked_lm_head"):
        # The head is large, so it is applied to masked tokens only.
        labels = tf.reshape(inputs["labels"], [-1])
        places = tf.where(labels >= 0)[None, :, 0]
        labels = tf.gather(labels, places)
        sums["masked"] = tf.cast(tf.size(labels), "float32")
        for name, output in zip(("before", "after"), outputs):
            flat = tf.reshape(output, (1, -1, output.shape[-1]))
            logits = task.masked_lm_head(flat, tf.cast(places, "int32"))
            sums[name] = tf.reduce_sum(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            )
    elif hasattr(task, "num_classes"):
        labels = []
        for encoder in (before, after):
            with encoder.portable_reads():
                logits = task(encoder.features_of(inputs), training=False)
            labels.append(tf.argmax(logits, 1))
        same = tf.cast(labels[0] == labels[1], "float32")
        sums["same"] = tf.reduce_sum(same)
        sums["texts"] = tf.reduce_sum(tf.ones_like(same))
    return sums


def _mask(
    inputs: dict[str, np.ndarray], special: SpecialTokens, draw: int = 0
) -> dict[str, np.ndarray]:
    """Masks some real tokens, others in each draw; labels are -1 elsewhere."""
    rng = np.random.default_rng(0)
    ids = inputs["input_word_ids"]
    chosen = rng.random(ids.shape) // _MASK_RATE == draw
    chosen &= ~np.isin(ids, special.ids)
    return {
        **inputs,
        "input_word_ids": np.where(chosen, special.mask, ids).astype("int32"),
        "labels": np.where(chosen, ids, -1).astype("int32"),
    }


def _format_change(
    before: Encoder, after: Encoder, figures: dict[str, float], count: int
) -> str:
    """The figures as a table, with how they were measured."""
    lines = ["| | trained | exported |", "|---|---:|---:|"]
    for number, table in before.tables.items():
        smaller = after.tables[number]
        lines += [
            f"| rows of the memory in layer {number} | {table.num_rows:,} | "
            f"{smaller.num_rows:,} |",
            f"| their size, MB | {table.size / 1e6:,.2f} | "
            f"{smaller.size / 1e6:,.2f} |",
        ]
    if "perplexity after" in figures:
        lines.append(
            f"| perplexity of masked tokens | "
            f"{figures['perplexity before']:.2f} | "
            f"{figures['perplexity after']:.2f} |"
        )
    lines.append(
        f"| change of the encoder's outputs | - | {figures['outputs']:.2%} |"
    )
    if "same label" in figures:
        lines.append(f"| same label | - | {figures['same label']:.2%} |")
    measured = f"Measured on {count:,} inputs, each a line or a part of one."
    if "perplexity after" in figures:
        measured += (
            " 15 % of their tokens were masked, none replaced or left: their "
            "perplexity is higher than that of training."
        )
    return "\n".join([*lines, "", measured])


def _inputs_of(
    texts: Sequence[str],
    tokenizer: keras_hub.tokenizers.Tokenizer,
    special: SpecialTokens,
    length: int,
) -> dict[str, np.ndarray]:
    """Makes an input of each text, or several inputs of a long text."""
    before, after = _around(special)
    room = length - len(before) - len(after)
    texts = tf.constant(list(texts), tf.string)
    parts = [
        ids[first : first + room]
        for ids in map(np.asarray, tokenizer(readable(tokenizer, texts)))
        for first in range(0, len(ids), room)
    ]
    token_ids = np.full((len(parts), length), special.padding, "int32")
    mask = np.zeros_like(token_ids)
    for row, ids in enumerate(parts):
        whole = [*before, *ids, *after]
        token_ids[row, : len(whole)] = whole
        mask[row, : len(whole)] = 1
    return {
        "input_word_ids": token_ids,
        "input_mask": mask,
        "input_type_ids": np.zeros_like(token_ids),
    }


def _around(special: SpecialTokens) -> tuple[list[int], list[int]]:
    """The tokens before and after a text."""
    if special.mask >= 0:
        return [special.start], [special.end]
    # A causal model, which need not know where texts begin.
    return [] if special.start is None else [special.start], []


def _batches_of(inputs: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    """The inputs in parts, of which the last may be smaller."""
    count = len(inputs["input_mask"])
    return [
        _rows(inputs, slice(first, first + _BATCH))
        for first in range(0, count, _BATCH)
    ]


def _rows(
    inputs: dict[str, np.ndarray], chosen: np.ndarray | slice
) -> dict[str, np.ndarray]:
    return {name: rows[chosen] for name, rows in inputs.items()}
