"""all-MiniLM-L6-v2: what transformers computed of it, from text."""

import os
import pathlib

import keras_hub
import numpy as np
import pytest

from keras_pkm import models

MODELS = os.environ.get("KERAS_PKM_MODELS", "")
DIRECTORY = pathlib.Path(MODELS) / "minilm"
EXPECTED = pathlib.Path(__file__).parent / "minilm.npz"
pytest.importorskip("safetensors", reason="safetensors is not installed")


@pytest.fixture(scope="module")
def expected():
    if not (MODELS and DIRECTORY.is_dir()):
        pytest.skip(
            "needs all-MiniLM-L6-v2 in the folder minilm of the folder that "
            "KERAS_PKM_MODELS names"
        )
    with np.load(EXPECTED) as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def classifier(expected):
    with pytest.warns(UserWarning, match="New, with.*: logits/kernel, logits"):
        return models.from_transformers(
            DIRECTORY, task=keras_hub.models.TextClassifier, num_classes=2
        )


def test_hidden_states_from_text(classifier, expected):
    length = expected["token_ids"].shape[1]
    x = classifier.preprocessor(expected["texts"].tolist())
    x = {name: np.asarray(value)[:, :length] for name, value in x.items()}
    np.testing.assert_array_equal(x["token_ids"], expected["token_ids"])
    mask = expected["padding_mask"].astype(bool)
    np.testing.assert_array_equal(x["padding_mask"], mask)
    outputs = classifier.backbone(x)
    np.testing.assert_allclose(
        np.asarray(outputs["sequence_output"])[mask],
        expected["hidden"][mask],
        atol=1e-5,
    )
    np.testing.assert_allclose(
        outputs["pooled_output"], expected["pooled"], atol=1e-5
    )


def test_it_is_all_there(expected):
    """The backbone has all tensors, so that nothing is to be said."""
    backbone = models.from_transformers(DIRECTORY)
    assert backbone.num_layers == 6
