"""What a model is taught, or is to keep: facts, or text."""

import dataclasses
import math
from collections.abc import Callable
from collections.abc import Iterable
from typing import Any
from typing import Protocol

import tensorflow as tf

from training.facts import fact_batches
from training.facts.fact_batches import Facts
from training.facts.fact_range import FactRange
from training.measuring.perplexity import Evaluation
from training.measuring.perplexity import LanguageModelEvaluator
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
        pass_steps: Steps in which all of it is seen once.
        check_every: Steps from one time that `is_learned` is asked to the next.
    """

    batches: Iterable[Any]
    is_learned: Callable[[LanguageModelEvaluator], bool]
    pass_steps: int
    check_every: int


class Material(Protocol):
    """Facts, or text, of which it can be asked what a model knows."""

    def ask(self, evaluator: LanguageModelEvaluator) -> Evaluation:
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
        batch_size: The number of facts in a batch.
        group_size: The number of facts that are taught before the next ones;
            `None` to teach all of them together.
        seed: Of the order of facts that are taught together.
    """

    facts: Facts
    batch_size: int
    group_size: int | None
    seed: int = 0

    def ask(self, evaluator: LanguageModelEvaluator) -> Evaluation:
        return evaluator.evaluate(fact_batches.some_facts(self.facts, _ASKED))

    def groups(self, before: Evaluation) -> list[Group]:
        count = self.facts.num_facts
        size = self.group_size or count
        return [
            self._group(FactRange(self.facts, first, min(size, count - first)))
            for first in range(0, count, size)
        ]

    def _group(self, facts):
        asked = list(fact_batches.some_facts(facts, _ASKED))
        batches = asked
        if self.batch_size < facts.num_facts:
            some = FactMaterial(facts, self.batch_size, None)
            batches = some.samples(self.batch_size, self.seed)
        steps = math.ceil(facts.num_facts / self.batch_size)
        return Group(
            batches,
            lambda evaluator: bool(evaluator.evaluate(asked).exact.all()),
            pass_steps=steps,
            check_every=steps,
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

    def ask(self, evaluator: LanguageModelEvaluator) -> Evaluation:
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
                pass_steps=len(measured),
                check_every=max(_CHECK_EVERY, len(measured)),
            )
        ]

    def _measured(self):
        return self.text.objective.held_out_batches(
            self.text.rows, batch_size=self.batch_size, seed=_MEASURED_SEED
        )

    def samples(self, batch_size: int, seed: int) -> tf.data.Dataset:
        return self.text.objective.training_batches(
            self.text.rows, batch_size=batch_size, seed=seed
        )

    def figures(self, before: Evaluation, after: Evaluation) -> dict:
        return {
            "sequences": len(self.text.rows),
            "fall": self.fall,
            "perplexity_before": before.perplexity,
            "perplexity_after": after.perplexity,
            "change": after.perplexity / before.perplexity - 1,
        }
