"""The material that a model is taught, or should keep: facts or text."""

import contextlib
import dataclasses
import math
import pathlib
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import Protocol

import numpy as np
import tensorflow as tf

from training.commands.fields import NO_MASKS
from training.commands.fields import check_unused
from training.corpora.corpus import open_corpus
from training.facts import fact_batches
from training.facts.fact_batches import Facts
from training.facts.fact_file import read_fact_file
from training.facts.fact_range import FactRange
from training.facts.text_facts import TextFacts
from training.loading.families import DecoderFamily
from training.loading.pretrained_model import LanguageModel
from training.measuring.perplexity import Evaluation
from training.measuring.perplexity import LanguageModelEvaluator
from training.measuring.text_batches import PackedText
from training.measuring.text_batches import input_length
from training.measuring.text_batches import pack_text
from training.teaching.recipe import TeachingRecipe

# Number of facts in a batch when they are measured.
_ASKED = 1000
# More steps than anyone takes.
_ENDLESS = 10**9
# Minimum number of steps on a text between two measurements of its perplexity.
_CHECK_EVERY = 4
# The seed of the masks for measuring a text; they are not trained on.
_MEASURED_SEED = 10_000


@dataclasses.dataclass(frozen=True)
class Group:
    """Material that is taught together."""

    # Batches of features, labels and weights.
    batches: Iterable[Any]
    # Function of the model's evaluator that returns the share of the group that
    # the model knows; of a text, how far it has been learned.
    share_learned: Callable[[LanguageModelEvaluator], float]
    # Number of steps of one pass over the group.
    pass_steps: int
    # Number of steps between two calls of `share_learned`.
    check_every: int


class Material(Protocol):
    """Facts or text, with a measurement of how well a model knows it."""

    def ask(self, evaluator: LanguageModelEvaluator) -> Evaluation:
        """Measures how well a model knows the material."""

    def groups(self, before: Evaluation) -> list[Group]:
        """Returns the groups that are taught one after another."""

    def samples(
        self, batch_size: int, seed: int, share: float = 1.0
    ) -> tf.data.Dataset:
        """Returns endless batches of random parts of a share of it."""

    def figures(self, before: Evaluation, after: Evaluation) -> dict:
        """Returns the figures of the change, serializable as JSON."""


@dataclasses.dataclass(frozen=True)
class FactMaterial:
    """Facts, which are taught in groups."""

    facts: Facts
    # The number of facts in a batch.
    batch_size: int
    # The number of facts that are taught together before the next ones; `None`
    # to teach all of them together.
    group_size: int | None
    # Seed of the order of facts within a group.
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

    def _group(self, facts: Facts) -> Group:
        asked = list(fact_batches.some_facts(facts, _ASKED))
        if self.batch_size < facts.num_facts:
            some = FactMaterial(facts, self.batch_size, None)
            batches = some.samples(self.batch_size, self.seed)
        else:
            batches = list(fact_batches.some_facts(facts, self.batch_size))
        steps = math.ceil(facts.num_facts / self.batch_size)
        return Group(
            batches,
            lambda evaluator: float(evaluator.evaluate(asked).exact.mean()),
            pass_steps=steps,
            check_every=steps,
        )

    def samples(
        self, batch_size: int, seed: int, share: float = 1.0
    ) -> tf.data.Dataset:
        count = math.ceil(share * self.facts.num_facts)
        return fact_batches.training_batches(
            FactRange(self.facts, 0, count),
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
    """A text, which is taught as a whole, with new masks at each step."""

    # The packed text.
    text: PackedText
    # The number of sequences in a batch.
    batch_size: int
    # Seed of the order and of the masks.
    seed: int
    # The text counts as learned when its perplexity, with masks that are not
    # trained on, has fallen to this share.
    fall: float

    def ask(self, evaluator: LanguageModelEvaluator) -> Evaluation:
        return evaluator.evaluate(self._measured())

    def groups(self, before: Evaluation) -> list[Group]:
        goal = self.fall * before.perplexity
        # Kept in memory, since it is short and measured often.
        measured = list(self._measured())
        return [
            Group(
                self.samples(self.batch_size, self.seed),
                # Unlike Python's, this minimum of 1 and NaN is NaN.
                lambda evaluator: float(
                    np.minimum(
                        1.0, goal / evaluator.evaluate(measured).perplexity
                    )
                ),
                pass_steps=len(measured),
                check_every=max(_CHECK_EVERY, len(measured)),
            )
        ]

    def _measured(self) -> tf.data.Dataset:
        return self.text.objective.held_out_batches(
            self.text.rows, batch_size=self.batch_size, seed=_MEASURED_SEED
        )

    def samples(
        self, batch_size: int, seed: int, share: float = 1.0
    ) -> tf.data.Dataset:
        count = math.ceil(share * len(self.text.rows))
        # From all parts of the text.
        rows = np.linspace(0, len(self.text.rows) - 1, count).astype(int)
        return self.text.objective.training_batches(
            self.text.rows[rows], batch_size=batch_size, seed=seed
        )

    def figures(self, before: Evaluation, after: Evaluation) -> dict:
        return {
            "sequences": len(self.text.rows),
            "fall": self.fall,
            "perplexity_before": before.perplexity,
            "perplexity_after": after.perplexity,
            "change": after.perplexity / before.perplexity - 1,
        }


#: How the name of a file of facts to keep ends.
FACTS = ".tsv"


@contextlib.contextmanager
def open_material(
    recipe: TeachingRecipe, model: LanguageModel
) -> Iterator[tuple[Material, Material | None]]:
    """Yields the material to teach, and the material to keep, if any."""
    _, family, tokenizer = model
    longest = model.backbone.max_sequence_length
    if isinstance(family, DecoderFamily):
        check_unused(recipe, ("mask_rate",), NO_MASKS)
    with contextlib.ExitStack() as stack:

        def open_facts(path: pathlib.Path, flag: str) -> FactMaterial:
            facts = read_fact_file(path, flag)
            return FactMaterial(
                TextFacts(facts, tokenizer, recipe.template, longest),
                recipe.batch_size,
                recipe.group_size,
                recipe.seed,
            )

        def open_text(name: str) -> TextMaterial:
            corpus = open_corpus(name, recipe.data_dir)
            length = input_length(recipe, longest)
            objective = family.make_objective(
                tokenizer, length, recipe.mask_rate
            )
            text = pack_text(corpus, objective, limit=None)
            return TextMaterial(
                stack.enter_context(text),
                recipe.batch_size,
                recipe.seed,
                recipe.fall,
            )

        new: Material
        if recipe.facts is not None:
            new = open_facts(recipe.facts, "--facts")
        else:
            text: Any = recipe.text  # given: the recipe has been checked
            new = open_text(text)
        old: Material | None = None
        if recipe.keep is not None and recipe.keep.endswith(FACTS):
            old = open_facts(pathlib.Path(recipe.keep), "--keep")
        elif recipe.keep is not None:
            old = open_text(recipe.keep)
        yield new, old
