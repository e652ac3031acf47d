"""How much of a text its vocabulary does not know."""

import dataclasses
import logging

import numpy as np

from training.pretraining.data import PretrainingData
from training.pretraining.recipe import PretrainingRecipe
from training.pretraining.train import warn_of_unknown_tokens
from training.runs.recipes import recipe_from_json


def test_share_of_unknown_tokens(tiny_run):
    run = tiny_run.files
    recipe = recipe_from_json(
        run.read_recipe(), PretrainingRecipe, str(run.root), "--model"
    )
    data = PretrainingData.open(recipe, run)
    assert data.unknown_share() == 0
    assert "0.0% of the tokens unknown" in tiny_run.stdout
    ids = {
        token: data.tokenizer.token_to_id(token)
        for token in ("[CLS]", "[UNK]", "[SEP]", "[PAD]", "##t")
    }
    row = ["[CLS]", *3 * ["[UNK]"], "##t", "[SEP]", *10 * ["[PAD]"]]
    rows = np.array([[ids[token] for token in row]], "int32")
    assert dataclasses.replace(data, train=rows).unknown_share() == 3 / 4


def test_warning(caplog):
    with caplog.at_level(logging.WARNING):
        warn_of_unknown_tokens(0.1)
        assert not caplog.records
        warn_of_unknown_tokens(0.42)
    assert "42 % of the training text's tokens are unknown" in caplog.text
