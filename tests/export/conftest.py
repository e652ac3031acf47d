"""Tiny trained models on disk, as runs leave them."""

import keras
import keras_hub
import pytest

from export.saved_model import main
from keras_pkm import models
from keras_pkm.files.presets import save_preset
from tests.built_once import built_once
from tests.models.tiny import tiny_answerer
from tests.models.tiny import tiny_classifier
from tests.models.tiny import tiny_masked_lm

WORDS = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] the quick brown fox jump ##s ##ed over "
    "lazy dog who what when ann met bob in paris . , ? ! ' \" - a e i o u ##a "
    "##e ##t ##n 1 2 19 ##99 straße strasse cafe naive 日 本 語"
).split()
LENGTH = 16


@pytest.fixture(scope="session")
def tokenizer():
    words = [*WORDS, *(f"w{i}" for i in range(100 - len(WORDS)))]
    return keras_hub.models.BertTokenizer(words, lowercase=True)


def randomize(task):
    """Weights of which each has a part in the outputs."""
    generator = keras.random.SeedGenerator(1)
    for weight in task.weights:
        if not weight.path.endswith("moving_variance"):
            noise = keras.random.normal(weight.shape, 0, 0.3, seed=generator)
            weight.assign_add(noise)


@pytest.fixture(scope="session")
def presets(tmp_path_factory, tokenizer):
    """Presets of all kinds, in a directory."""
    return built_once(
        tmp_path_factory,
        "presets",
        lambda root: _build_presets(root, tokenizer),
    )


def _build_presets(root, tokenizer):
    keras.utils.set_random_seed(0)  # that of a test comes after this
    for name, task, preprocessor in (
        (
            "mlm",
            tiny_masked_lm(),
            keras_hub.models.BertMaskedLMPreprocessor,
        ),
        (
            "classifier",
            tiny_classifier(3),
            keras_hub.models.BertTextClassifierPreprocessor,
        ),
        (
            "qa",
            tiny_answerer(),
            models.BertQuestionAnswererPreprocessor,
        ),
        (
            "plain",
            tiny_masked_lm(memory_layers=()),
            keras_hub.models.BertMaskedLMPreprocessor,
        ),
    ):
        randomize(task)
        save_preset(
            task, preprocessor(tokenizer, sequence_length=LENGTH), root / name
        )


@pytest.fixture(scope="session")
def exports(tmp_path_factory, presets):
    """Exported models of all kinds, in a directory."""
    return built_once(
        tmp_path_factory, "exports", lambda root: _build_exports(root, presets)
    )


def _build_exports(root, presets):
    for what, preset, flags in (
        ("encoder", "mlm", ""),
        ("preprocessor", "mlm", ""),
        ("mlm", "mlm", ""),
        ("classifier", "classifier", "--labels no maybe yes --texts 2"),
        ("qa", "qa", "--stride 4 --answer-length 5"),
    ):
        args = f"--model {presets / preset} --what {what} --out {root / what}"
        assert main([*args.split(), *flags.split()]) == 0
