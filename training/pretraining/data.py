"""Turns a recipe's corpus into batches: vocabulary, packed rows, baseline."""

import dataclasses
import functools
import os
import shutil
from collections.abc import Callable
from typing import Any

import keras_hub
import numpy as np
import tensorflow as tf

from keras_pkm.files.checksums import seal_directory
from keras_pkm.files.presets import save_tokenizer
from keras_pkm.files.whole_files import replacing_file
from keras_pkm.text.special_tokens import unknown_ids
from training.batches.objectives import Objective
from training.corpora.corpus import Corpus
from training.corpora.corpus import SharedDocuments
from training.corpora.corpus import open_corpus
from training.corpora.corpus import split_documents
from training.corpora.packed_text import open_packed
from training.loading.families import DecoderFamily
from training.loading.families import EncoderFamily
from training.loading.families import family_named
from training.loading.pretrained_model import load_tokenizer
from training.measuring.unigram import count_tokens
from training.measuring.unigram import unigram_perplexity
from training.pretraining.recipe import PretrainingRecipe
from training.runs.files import check_unchanged
from training.runs.recipes import recipe_differences
from training.runs.run_directory import RunDirectory
from training.runs.user_error import UserError

# The held-out masks have a separate seed. The masks and the held-out documents
# do not depend on the recipe's seed: runs with different seeds are compared on
# them, and a run that starts from another run's model must not be tested on
# documents that the model has seen.
HELD_OUT_SEED = 10_000
# Headings and the like may be in any text.
_SHARE_TO_TELL = 0.01


def plan_data(
    recipe: PretrainingRecipe,
    tokenizer: keras_hub.tokenizers.Tokenizer | None,
) -> Callable[[RunDirectory], None]:
    """Checks the text of a run, and returns a function that prepares it."""
    if recipe.data_from is not None:
        packed = find_packed(recipe, recipe.data_from, tokenizer)
        return functools.partial(link_packed, packed)
    corpora = open_corpora(recipe)
    return functools.partial(prepare_data, recipe, corpora, tokenizer)


def open_corpora(recipe: PretrainingRecipe) -> tuple[Corpus, Corpus]:
    """Returns the training and the held-out corpus, both checked."""
    corpus = open_corpus(recipe.text, recipe.data_dir)
    if recipe.validation is None:
        corpora = split_documents(corpus, recipe.held_out)
        for part in corpora:
            if next(iter(part), None) is None:
                raise UserError(
                    f"--held-out {recipe.held_out} must leave documents on "
                    f"both sides, but '{part.name}' has none: pass held-out "
                    "text with --validation"
                )
        return corpora
    validation = open_corpus(recipe.validation, recipe.data_dir)
    shared = set(corpus.sources) & set(validation.sources)
    if shared:
        raise UserError(
            "--validation must be text that is not in --text, but both have "
            f"'{min(shared)}': it would be trained on"
        )
    return corpus, validation


def prepare_data(
    recipe: PretrainingRecipe,
    corpora: tuple[Corpus, Corpus],
    tokenizer: keras_hub.tokenizers.Tokenizer | None,
    run: RunDirectory,
) -> None:
    """Packs the corpora; trains a vocabulary first if there is none."""
    family = family_named(recipe.backbone)
    if tokenizer is None:
        tokenizer = family.train_tokenizer(corpora[0], recipe.vocabulary_size)
    objective = _make_objective(recipe, tokenizer)
    save_tokenizer(tokenizer, run.tokenizer)
    train, held_out = corpora
    shared = None
    # The parts of one corpus share none.
    if recipe.validation is not None:
        shared = SharedDocuments(held_out)
        train = shared.watched(train)
    objective.pack(train, run.packed_train)
    objective.pack(held_out, run.packed_held_out)
    if shared is not None and shared.share > _SHARE_TO_TELL:
        print(
            f"Warning: documents with {shared.share:.1%} of the text of "
            "--validation are in --text, too. They are trained on, and the "
            "held-out perplexity is too low."
        )
    seal_directory(run.data)


@dataclasses.dataclass(frozen=True)
class PretrainingData:
    """Everything that a run reads, tokenized and packed."""

    recipe: PretrainingRecipe
    family: EncoderFamily | DecoderFamily
    tokenizer: keras_hub.tokenizers.Tokenizer
    objective: Objective
    train: np.ndarray
    held_out: np.ndarray

    @classmethod
    def open(
        cls, recipe: PretrainingRecipe, run: RunDirectory
    ) -> "PretrainingData":
        """Opens the files of `prepare_data`, without reading the corpora."""
        for path in (run.tokenizer, run.data):
            check_unchanged(path, "--out")
        tokenizer = load_tokenizer(run.tokenizer)
        train, held_out = (
            open_packed(
                path, recipe.sequence_length, tokenizer.vocabulary_size()
            )
            for path in (run.packed_train, run.packed_held_out)
        )
        family = family_named(recipe.backbone)
        objective = _make_objective(recipe, tokenizer)
        return cls(recipe, family, tokenizer, objective, train, held_out)

    @functools.cached_property
    def preprocessor(self) -> keras_hub.models.Preprocessor:
        """Returns a preprocessor that treats text like the corpus."""
        family: Any = self.family  # whose objective it is
        return family.make_preprocessor(self.objective)

    def training_batches(
        self, stage: int, first_step: int, num_steps: int
    ) -> tf.data.Dataset:
        """Returns the batches of some steps; each stage has its own order."""
        return self.objective.training_batches(
            self.train,
            batch_size=self.recipe.batch_size * self.recipe.accumulate,
            seed=self.recipe.seed + stage,
            first_step=first_step,
            num_steps=num_steps,
        )

    def held_out_batches(self) -> tf.data.Dataset:
        """Returns the held-out rows, with the same masks every time."""
        return self.objective.held_out_batches(
            self.held_out,
            batch_size=self.recipe.batch_size,
            seed=HELD_OUT_SEED,
        )

    @functools.cached_property
    def held_out_bytes(self) -> int | None:
        """The UTF-8 bytes of the held-out text, if all of it is predicted."""
        return self.objective.count_bytes(self.held_out)

    @functools.cached_property
    def _token_counts(self) -> np.ndarray:
        return count_tokens(
            self.objective.predictable(self.train),
            self.tokenizer.vocabulary_size(),
        )

    def unigram_perplexity(self) -> float:
        """Returns the held-out perplexity of word frequencies alone."""
        return unigram_perplexity(
            self._token_counts,
            self.held_out_batches(),
            self.objective.special_token_ids,
        )

    def unknown_share(self) -> float:
        """Returns the share of training tokens that stand for unknown text."""
        counts = self._token_counts.copy()
        counts[list(self.objective.special_token_ids)] = 0
        return counts[unknown_ids(self.tokenizer)].sum() / counts.sum()


def _make_objective(
    recipe: PretrainingRecipe, tokenizer: keras_hub.tokenizers.Tokenizer
) -> Objective:
    return family_named(recipe.backbone).make_objective(
        tokenizer, recipe.sequence_length, recipe.mask_rate
    )


# The fields that determine the packed text, besides the tokenizer.
_FIELDS = ("text", "validation", "held_out", "sequence_length", "backbone")


def find_packed(
    recipe: PretrainingRecipe,
    name: str,
    tokenizer: keras_hub.tokenizers.Tokenizer | None,
) -> RunDirectory:
    """Returns the run directory that `--data-from` names, checked."""
    packed = RunDirectory(name)
    other = packed.read_recipe("--data-from")
    if not packed.has_data:
        raise _refused(recipe, "which has not packed its text yet")
    for path in (packed.tokenizer, packed.data):
        check_unchanged(path, "--data-from")
    own = load_tokenizer(packed.tokenizer)
    for path in (packed.packed_train, packed.packed_held_out):
        open_packed(path, other["sequence_length"], own.vocabulary_size())
    fields: tuple[str, ...] = _FIELDS
    if tokenizer is None:
        # This run would train a vocabulary of its own size.
        fields += ("vocabulary_size",)
    if found := recipe_differences(other, recipe, fields):
        raise _refused(recipe, f"packed with other flags ({'; '.join(found)})")
    if tokenizer is not None and _content(tokenizer) != _content(own):
        raise _refused(recipe, "whose vocabulary is another one")
    return packed


def link_packed(packed: RunDirectory, run: RunDirectory) -> None:
    """Gives a run the tokenizer and the packed text of another one."""
    save_tokenizer(load_tokenizer(packed.tokenizer), run.tokenizer)
    for source, path in (
        (packed.packed_train, run.packed_train),
        (packed.packed_held_out, run.packed_held_out),
    ):
        # Links are safe: the files of a run are never changed in place.
        with replacing_file(path) as partial:
            try:
                os.link(source, partial)
            except OSError:
                # It is on another disk, or on one without links.
                shutil.copyfile(source, partial)
    seal_directory(run.data)


def tokens_by_id(tokenizer: keras_hub.tokenizers.Tokenizer) -> list[str]:
    """Returns all tokens of a tokenizer, in the order of their ids."""
    return list(map(tokenizer.id_to_token, range(tokenizer.vocabulary_size())))


def _content(tokenizer: keras_hub.tokenizers.Tokenizer) -> list:
    """Returns the parts of a tokenizer that determine the ids of a text."""
    config = tokenizer.get_config()
    return [
        type(tokenizer),
        tokens_by_id(tokenizer),
        getattr(tokenizer, "merges", None),
        {key: config[key] for key in config if key != "name"},
    ]


def _refused(recipe: PretrainingRecipe, reason: str) -> UserError:
    return UserError(
        "--data-from must be the directory of a run that has packed the same "
        f"text, received '{recipe.data_from}', {reason}: leave the flag out to "
        "pack --text for this run"
    )
