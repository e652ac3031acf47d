"""Reuses the packed text of another run."""

import os
import shutil

import keras_hub

from keras_pkm.files.checksums import seal_directory
from keras_pkm.files.presets import save_tokenizer
from keras_pkm.files.whole_files import replacing_file
from training.loading.pretrained_model import load_tokenizer
from training.pretraining.recipe import PretrainingRecipe
from training.runs.files import check_unchanged
from training.runs.recipes import recipe_differences
from training.runs.run_directory import RunDirectory
from training.runs.user_error import UserError
from training.text.packed_text import open_packed

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


def _content(tokenizer: keras_hub.tokenizers.Tokenizer) -> list:
    """Returns the parts of a tokenizer that determine the ids of a text."""
    config = tokenizer.get_config()
    return [
        type(tokenizer),
        list(tokenizer.get_vocabulary()),
        getattr(tokenizer, "merges", None),
        {key: config[key] for key in config if key != "name"},
    ]


def _refused(recipe: PretrainingRecipe, reason: str) -> UserError:
    return UserError(
        "--data-from must be the directory of a run that has packed the same "
        f"text, received '{recipe.data_from}', {reason}: leave the flag out to "
        "pack --text for this run"
    )
