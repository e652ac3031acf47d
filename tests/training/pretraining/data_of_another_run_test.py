"""A run that reads what another one has packed."""

import dataclasses
import os

import numpy as np
import pytest

from tests.training.tiny_run import TINY
from tests.training.tiny_run import write_corpus
from training.loading.pretrained_model import load_tokenizer
from training.pretrain import parse_recipe
from training.pretraining.data import PretrainingData
from training.pretraining.data import plan_data
from training.runs.run_directory import RunDirectory
from training.runs.user_error import UserError


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    """Of a run that has packed its text."""
    root = tmp_path_factory.mktemp("packed")
    corpus = write_corpus(root / "text")
    recipe = parse_recipe([*TINY, "--text", corpus])
    recipe = dataclasses.replace(recipe, out=str(root / "run"))
    write(recipe)
    return recipe


def write(recipe):
    run = RunDirectory(recipe.out)
    write_data = plan_data(recipe, None)
    run.create(recipe, (run.data,))
    write_data(run)
    return PretrainingData.open(recipe, run)


@pytest.mark.parametrize("on_another_disk", [False, True])
def test_reads_the_same(recipe, tmp_path, monkeypatch, on_another_disk):
    def link(source, target):
        raise OSError("Invalid cross-device link")

    if on_another_disk:
        monkeypatch.setattr(os, "link", link)
    packed = RunDirectory(recipe.out)
    # The text itself is not read: it may be gone, or take hours.
    monkeypatch.setattr("training.pretraining.data.open_corpora", None)
    again = dataclasses.replace(
        recipe,
        data_from=recipe.out,
        out=str(tmp_path / "run"),
        memory_block="pkm",
        seed=3,
    )
    data = write(again)
    expected = PretrainingData.open(recipe, packed)
    np.testing.assert_array_equal(data.train, expected.train)
    np.testing.assert_array_equal(data.held_out, expected.held_out)
    assert (
        data.tokenizer.get_vocabulary() == expected.tokenizer.get_vocabulary()
    )
    run = RunDirectory(again.out)
    is_one_file = os.path.samefile(run.packed_train, packed.packed_train)
    assert is_one_file != on_another_disk
    # As after a kill between the two files.
    run.packed_held_out.unlink()
    assert not run.has_data
    np.testing.assert_array_equal(write(again).held_out, expected.held_out)


def test_refuses_another_text(recipe):
    for name, value, flag in (
        ("text", "other.txt", "--text was"),
        ("sequence_length", 32, "--sequence-length was 16, now 32"),
        ("held_out", 0.5, "--held-out was 0.2, now 0.5"),
        ("vocabulary_size", 400, "--vocabulary-size was 300, now 400"),
    ):
        asked = dataclasses.replace(
            recipe, data_from=recipe.out, **{name: value}
        )
        with pytest.raises(UserError, match=flag):
            plan_data(asked, None)


def test_refuses_another_vocabulary(recipe, tokenizer):
    asked = dataclasses.replace(recipe, data_from=recipe.out)
    with pytest.raises(UserError, match="--data-from.* vocabulary is another"):
        plan_data(asked, tokenizer)
    plan_data(asked, load_tokenizer(RunDirectory(recipe.out).tokenizer))


def test_refuses_what_is_no_run_with_data(recipe, tmp_path):
    asked = dataclasses.replace(recipe, data_from=str(tmp_path))
    with pytest.raises(UserError, match="--data-from.*recipe.json"):
        plan_data(asked, None)
    RunDirectory(tmp_path).create(recipe)
    with pytest.raises(UserError, match="not packed its text yet"):
        plan_data(asked, None)
