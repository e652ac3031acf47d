"""Text on which a model is measured, and text on which it is trained."""

import numpy as np
import pytest

from training.corpora.corpus import Corpus
from training.corpora.corpus import split_documents
from training.measuring.drawn_text import MEASURED
from training.measuring.drawn_text import draw_documents
from training.measuring.drawn_text import draw_windows
from training.measuring.drawn_text import ids_of
from training.measuring.drawn_text import is_as_long
from training.runs.user_error import UserError


def numbers(count, words=300):
    """Documents that each repeat their number; the first five are long."""
    return Corpus(
        "numbers",
        lambda: (
            " ".join([str(number)] * (100 * words if number < 5 else words))
            for number in range(count)
        ),
    )


def tokenize(text):
    return [int(word) for word in text.split()]


def test_text_is_drawn_from_all_documents():
    ids = ids_of(draw_documents(numbers(400)), tokenize, "--text")
    windows = draw_windows(ids)
    assert windows.size == MEASURED
    # Windows of many documents, not of the first or the longest ones.
    assert len(np.unique(windows)) > 25
    assert np.isin(windows, range(5)).mean() < 0.2
    assert np.median(windows) > 100


def test_the_draw_is_the_same_each_time():
    first, second = (
        draw_windows(ids_of(draw_documents(numbers(90)), tokenize, "--text"))
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_no_window_twice():
    ids = np.arange(40_000, dtype="int32")
    windows = draw_windows(ids)
    assert len(np.unique(windows)) == MEASURED


def test_models_that_take_less_than_a_window():
    windows = draw_windows(np.arange(40_000, dtype="int32"), 60)
    assert windows.shape == (MEASURED // 60, 60)
    assert is_as_long(windows.size)
    assert not is_as_long(MEASURED // 2)


def test_no_document_is_on_both_sides():
    both = [
        set(ids_of(draw_documents(half), tokenize, "--text"))
        for half in split_documents(numbers(400), 0.5)
    ]
    assert both[0] and both[1] and not both[0] & both[1]


def test_too_little_text():
    documents = draw_documents(numbers(13, words=200))
    with pytest.raises(UserError, match="--text must have at least 4,096"):
        ids_of(documents[:2], tokenize, "--text")
