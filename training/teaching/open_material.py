"""Opens the material that flags name: a file of facts, or text."""

import contextlib
import pathlib
from collections.abc import Iterator
from typing import Any

import keras_hub

from training.facts.fact_file import read_fact_file
from training.facts.text_facts import TextFacts
from training.loading.families import DecoderFamily
from training.loading.families import EncoderFamily
from training.measuring.text_batches import input_length
from training.measuring.text_batches import pack_text
from training.teaching.material import FactMaterial
from training.teaching.material import Material
from training.teaching.material import TextMaterial
from training.teaching.recipe import TeachingRecipe
from training.text.corpus import open_corpus

_FACTS = ".tsv"


@contextlib.contextmanager
def open_material(
    recipe: TeachingRecipe,
    family: EncoderFamily | DecoderFamily,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    longest: int,
) -> Iterator[tuple[Material, Material | None]]:
    """Yields the material to teach, and the material to keep, if any."""
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
            corpus.check()
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
        if recipe.keep is not None and recipe.keep.endswith(_FACTS):
            old = open_facts(pathlib.Path(recipe.keep), "--keep")
        elif recipe.keep is not None:
            old = open_text(recipe.keep)
        yield new, old
