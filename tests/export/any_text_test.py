"""Whatever the text: no crash, and finite scores."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies

# 50 in each of 40 batches: 2,000 cases.
_TEXTS = strategies.lists(
    strategies.one_of(
        strategies.binary(max_size=60),
        strategies.text(max_size=40).map(lambda text: text.encode()),
        strategies.sampled_from(
            [
                "",
                " \u3000\u00a0\t\n",
                "👩‍👩‍👧‍👦 🏳️‍🌈",
                "नमस्ते दुनिया",
                "שלום עולם",
                "[MASK][MASK] [MASK",
                "\x00",
                "e\u0301" * 30,
                "x" * 300,
            ]
        ).map(lambda text: text.encode()),
    ),
    min_size=50,
    max_size=50,
)


# Its exports take a minute to make.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def loaded(exports):
    return {
        kind: tf.saved_model.load(str(exports / kind)).signatures[
            "serving_default"
        ]
        for kind in ("mlm", "classifier", "qa")
    }


def check(loaded, texts):
    text = tf.constant(texts, tf.string)
    for kind, names in (
        ("mlm", ["sentences"]),
        ("classifier", ["text", "text_pair"]),
        ("qa", ["question", "context"]),
    ):
        found = loaded[kind](**dict(zip(names, [text, text[::-1]])))
        for output in found.values():
            assert len(output) == len(texts)
            if output.dtype == "float32":
                assert np.isfinite(output).all()
        if kind == "qa":
            for answer, context in zip(found["answer"].numpy(), texts[::-1]):
                assert len(answer) <= 3 * len(context)
                answer.decode()


@settings(deadline=None, max_examples=40)
@given(texts=_TEXTS)
def test_any_text(loaded, texts):
    check(loaded, texts)


def test_long_text(loaded):
    long = ["the quick brown fox " * 5_000, "日本語" * 11_000, "x" * 100_000]
    check(loaded, [text.encode() for text in [*long, ""]])


def test_no_text(loaded):
    check(loaded, [])
