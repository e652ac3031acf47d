"""What a run reads, and what of it is the same for all seeds."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.training.tiny_run import TINY
from tests.training.tiny_run import write_corpus
from training.pretrain import parse_recipe
from training.pretraining.data import PretrainingData
from training.pretraining.data import open_corpora
from training.pretraining.data import prepare_data
from training.runs.run_directory import RunDirectory


@pytest.mark.parametrize("count, told", [(0, False), (1, False), (3, True)])
def test_warns_of_held_out_documents_that_are_trained_on(
    tmp_path, capsys, count, told
):
    """One of them is a heading."""
    texts = [f"This is the document number {n}. " * 20 for n in range(12)]
    texts[8] = "A word."
    (tmp_path / "a.txt").write_text("\n\n".join(texts[: 8 + count]))
    (tmp_path / "b.txt").write_text("\n\n".join(texts[8:]))
    flags = ["--text", tmp_path / "a.txt", "--validation", tmp_path / "b.txt"]
    recipe = parse_recipe([*TINY, *map(str, flags)])
    run = RunDirectory(tmp_path / "run")
    run.create(recipe, (run.data,))
    prepare_data(recipe, open_corpora(recipe), None, run)
    printed = capsys.readouterr().out
    assert ("Warning" in printed) == told
    assert ("documents with 66.4% of the text of" in printed) == told


@pytest.mark.slow
def test_what_is_held_out_does_not_depend_on_the_seed(tmp_path):
    first = parse_recipe([*TINY, "--text", write_corpus(tmp_path / "text")])
    found = []
    for seed in (0, 3):
        recipe = dataclasses.replace(first, seed=seed)
        run = RunDirectory(tmp_path / str(seed))
        run.create(recipe, (run.data,))
        prepare_data(recipe, open_corpora(recipe), None, run)
        found.append(PretrainingData.open(recipe, run))
    one, other = found
    np.testing.assert_array_equal(one.held_out, other.held_out)
    batches = [list(data.held_out_batches()) for data in found]
    tf.nest.map_structure(np.testing.assert_array_equal, *batches)
    # The masks to train on do.
    one, other = (next(iter(data.training_batches(0, 0, 1))) for data in found)
    assert not np.array_equal(one[0]["token_ids"], other[0]["token_ids"])
