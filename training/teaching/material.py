"""What a model is taught, or is to keep: facts, or text."""

import dataclasses
from collections.abc import Callable
from collections.abc import Iterable
from typing import Any
from typing import Protocol

import tensorflow as tf

from training.batches import masked_lm
from training.facts import fact_batches
from training.facts.fact_batches import Facts
from training.measuring.perplexity import Evaluation
from training.measuring.perplexity import MaskedLMEvaluator
from training.measuring.text_batches import PackedText

# Facts that are asked for at once.
_ASKED = 1000
# More steps than anyone takes.
_ENDLESS = 10**9
# Steps on a text from one time that its perplexity is measured to the next.
_CHECK_EVERY = 4
# The held-out masks, those that a text is measured with, are not trained on.
_MEASURED_SEED = 10_000


@dataclasses.dataclass(frozen=True)
class Group:
    """What is taught together.

    Attributes:
        batches: Of features, labels and weights.
        is_learned: Takes the model's evaluator, and says whether the model
            knows it all.
        check_every: Steps from one time that this is asked to the next.
    """

    batches: Iterable[Any]
    is_learned: Callable[[MaskedLMEvaluator], bool]
    check_every: int = 1


class Material(Protocol):
    """Facts, or text, of which it can be asked what a model knows."""

    def ask(self, evaluator: MaskedLMEvaluator) -> Evaluation:
        """Asks a model for all of it."""

    def groups(self, before: Evaluation) -> list[Group]:
        """Returns what is taught together, one after the other.

        Args:
            before: What the model knew of it before.
        """

    def samples(self, batch_size: int, seed: int) -> tf.data.Dataset:
        """Returns batches of random parts of it, without an end.

        Args:
            batch_size: Facts, or sequences, of a batch.
            seed: Of their order.
        """

    def figures(self, before: Evaluation, after: Evaluation) -> dict:
        """Returns what has changed, as JSON takes it.

        Args:
            before: What the model knew of it before.
            after: What it knows now.
        """


@dataclasses.dataclass(frozen=True)
class FactMaterial:
    """Facts, which are taught in groups.

    Attributes:
        facts: The facts.
        group_size: The number of facts that are taught together.
    """

    facts: Facts
    group_size: int

    def ask(self, evaluator: MaskedLMEvaluator) -> Evaluation:
        return evaluator.evaluate(fact_batches.some_facts(self.facts, _ASKED))

    def groups(self, before: Evaluation) -> list[Group]:
        count = self.facts.num_facts
        return [
            self._group(first, min(first + self.group_size, count))
            for first in range(0, count, self.group_size)
        ]

    def _group(self, first, last):
        places = tf.range(first, last, dtype=tf.int64)
        batches = [self.facts.examples_of(places)]
        return Group(
            batches,
            lambda evaluator: bool(evaluator.evaluate(batches).exact.all()),
        )

    def samples(self, batch_size: int, seed: int) -> tf.data.Dataset:
        return fact_batches.training_batches(
            self.facts,
            batch_size=batch_size,
            seed=seed,
            first_step=0,
            num_steps=_ENDLESS,
        )

    def figures(self, before: Evaluation, after: Evaluation) -> dict:
        known = before.exact
        return {
            "facts": len(known),
            "known_before": float(known.mean()),
            "known_after": float(after.exact.mean()),
            "kept": float(after.exact[known].mean()) if known.any() else None,
        }


@dataclasses.dataclass(frozen=True)
class TextMaterial:
    """A text, which is taught as a whole, with new masks at each step.

    Attributes:
        text: Its tokens.
        batch_size: The sequences of a batch.
        seed: Of the order and the masks.
        fall: It counts as learned when its perplexity, with masks that are
            not trained on, has fallen to this share.
    """

    text: PackedText
    batch_size: int
    seed: int
    fall: float

    def ask(self, evaluator: MaskedLMEvaluator) -> Evaluation:
        return evaluator.evaluate(self._measured())

    def groups(self, before: Evaluation) -> list[Group]:
        goal = self.fall * before.perplexity
        # In memory: it is asked for often, and is not long.
        measured = list(self._measured())
        return [
            Group(
                self.samples(self.batch_size, self.seed),
                lambda evaluator: (
                    evaluator.evaluate(measured).perplexity <= goal
                ),
                check_every=max(_CHECK_EVERY, len(measured)),
            )
        ]

    def _measured(self):
        return masked_lm.held_out_batches(
            self.text.rows,
            batch_size=self.batch_size,
            seed=_MEASURED_SEED,
            masking=self.text.masking,
        )

    def samples(self, batch_size: int, seed: int) -> tf.data.Dataset:
        return masked_lm.training_batches(
            self.text.rows,
            batch_size=batch_size,
            seed=seed,
            masking=self.text.masking,
        )

    def figures(self, before: Evaluation, after: Evaluation) -> dict:
        return {
            "sequences": len(self.text.rows),
            "fall": self.fall,
            "perplexity_before": before.perplexity,
            "perplexity_after": after.perplexity,
            "change": after.perplexity / before.perplexity - 1,
        }
