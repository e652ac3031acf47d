"""Measures a language model's perplexity, and the use of its memories."""

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from keras_pkm.ops.implementation import fastest_by_default
from keras_pkm.probing.usage_counter import UsageCounter
from training.measuring.paired_bootstrap import block_starts


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The figures of a pass over a text."""

    # Float64 of shape `(sequences,)`: for each sequence, the sum of -ln p over
    # its predicted tokens, which are the masked ones, or all but the first.
    nll: np.ndarray
    # Float64 of shape `(sequences,)`: the number of predicted tokens.
    tokens: np.ndarray
    # Bool of shape `(sequences,)`: whether all are predicted right.
    exact: np.ndarray
    # The figures of `keras_pkm.metrics.MemoryUsage`, by memory layer, counted
    # from 1.
    memory_usage: dict[int, dict[str, float]]
    # Number of slots of each memory; 0 without memory.
    num_slots: int = 0
    # UTF-8 bytes of the predicted tokens, `None` if unknown.
    num_bytes: int | None = None

    @property
    def perplexity(self) -> float:
        """The exponential of the mean of -ln p over all predicted tokens."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.nll.sum() / self.tokens.sum()))

    @property
    def bits_per_byte(self) -> float | None:
        """-log2 p of the text per byte, comparable between tokenizers."""
        if self.num_bytes is None:
            return None
        return self.nll.sum() / math.log(2) / self.num_bytes

    def figures(self) -> dict:
        """Returns the figures for results, serializable as JSON."""
        found: dict[str, Any] = {
            "perplexity": self.perplexity,
            "standard_error": self.standard_error,
            "predicted_tokens": int(self.tokens.sum()),
        }
        if self.num_bytes is not None:
            found["bits_per_byte"] = self.bits_per_byte
        if self.memory_usage:
            found["memory_usage"] = {
                str(layer): usage for layer, usage in self.memory_usage.items()
            }
        return found

    def grouped(self, numbers: np.ndarray) -> "Evaluation":
        """Returns the evaluation with the tokens of each number as a sequence.

        Args:
            numbers: The number of each sequence's group, ascending.
        """
        _, first = np.unique(numbers, return_index=True)
        nll, tokens = (
            np.add.reduceat(each, first) for each in (self.nll, self.tokens)
        )
        exact = np.logical_and.reduceat(self.exact, first)
        return dataclasses.replace(self, nll=nll, tokens=tokens, exact=exact)

    @property
    def standard_error(self) -> float | None:
        """The standard error of the perplexity; a single sequence has none.

        It is that of a ratio of two sums over blocks of sequences, which are
        assumed to be independent; neighbouring sequences are not.
        """
        if len(self.nll) < 2:
            return None
        starts = block_starts(len(self.nll))
        nll, tokens = (
            np.add.reduceat(each, starts) for each in (self.nll, self.tokens)
        )
        count = len(starts)
        residuals = nll - nll.sum() / tokens.sum() * tokens
        variance = count / (count - 1) * np.sum(residuals**2)
        return self.perplexity * math.sqrt(variance) / self.tokens.sum()


class LanguageModelEvaluator:
    """Measures perplexity and the use of memories, in one pass over a text.

    Graphs are traced once, however often a text is measured.
    """

    def __init__(self, task: keras.Model):
        backbone = task.backbone
        self._task = task
        self._model = _with_memory_access(task)
        self._strategy = task.distribute_strategy
        with self._strategy.scope():
            self._usage = UsageCounter.of_model(backbone)
        self._step_everywhere = tf.function(
            lambda *batch: self._strategy.gather(
                self._strategy.run(self._step, batch), axis=0
            ),
            reduce_retracing=True,
            autograph=False,
        )

    def _step(
        self,
        features: dict[str, tf.Tensor],
        labels: tf.Tensor,
        weights: tf.Tensor,
    ) -> tf.Tensor:
        inputs = {name: features[name] for name in self._task.input}
        with fastest_by_default():
            found = self._model(inputs, training=False)
        nll = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels, tf.cast(found["logits"], "float32")
        )
        self._usage.update(found["memories"], features["padding_mask"])
        weights = tf.cast(weights, "float64")
        nll = tf.cast(nll, "float64")
        best = tf.argmax(found["logits"], axis=-1, output_type=labels.dtype)
        wrong = tf.cast(best != labels, "float64")
        parts = (nll * weights, weights, wrong * weights)
        return tf.stack([tf.reduce_sum(part, -1) for part in parts], axis=-1)

    def evaluate(
        self, batches: Iterable, label: str | None = None
    ) -> Evaluation:
        """Runs the task over batches, once; a label shows its progress."""
        self._usage.reset()
        if self._strategy.num_replicas_in_sync > 1:
            batches = self._strategy.experimental_distribute_dataset(batches)
        if label is not None:
            batches = tqdm(batches, label, leave=False, disable=None)
        sums = [self._step_everywhere(*batch) for batch in batches]
        nll, tokens, wrong = np.concatenate(sums).T
        return Evaluation(
            nll[tokens > 0],
            tokens[tokens > 0],
            wrong[tokens > 0] == 0,
            self._usage.figures,
            max(self._usage.num_slots.values(), default=0),
        )


def _with_memory_access(task: keras.Model) -> keras.Model:
    """Returns a model with a task's logits and memory access as outputs."""
    backbone = task.backbone
    memories = getattr(backbone, "memory_outputs", {})
    both = keras.Model(
        backbone.input, {"outputs": backbone.output, "memories": memories}
    )
    accesses = {}

    def call_layer(layer: keras.layers.Layer, *args: Any, **kwargs: Any) -> Any:
        if layer is not backbone:
            return layer(*args, **kwargs)
        found = both(*args, **kwargs)
        accesses.update(found["memories"])
        return found["outputs"]

    graph = keras.models.clone_model(
        # Not the task itself: its optimizer would be cloned, too.
        keras.Model(task.input, task.output),
        clone_function=lambda layer: layer,
        call_function=call_layer,
    )
    return keras.Model(
        graph.input, {"logits": graph.output, "memories": accesses}
    )
