import math

import numpy as np
import pytest

from training.measuring.unigram import count_tokens
from training.measuring.unigram import unigram_perplexity

# Token 5 thrice, 6 once; [PAD], [CLS] and [SEP] are 0, 2 and 3.
TRAIN = np.array([[2, 5, 5, 3], [2, 5, 6, 3], [2, 3, 0, 0]], np.int32)
SPECIAL = (0, 2, 3)


def test_by_hand(monkeypatch):
    monkeypatch.setattr("training.measuring.unigram._ROWS_PER_READ", 2)
    batches = [
        (None, np.array([[5, 6], [7, 0]]), np.array([[1, 1], [1, 0]])),
        (None, np.array([[5, 0], [0, 0]]), np.array([[1, 0], [0, 0]])),
    ]
    # p = (count + 1) / (4 + 8).
    nll = -sum(math.log(p / 12) for p in (4, 2, 1, 4))
    perplexity = unigram_perplexity(count_tokens(TRAIN, 8), batches, SPECIAL)
    assert perplexity == pytest.approx(math.exp(nll / 4), rel=1e-12)


def test_no_text_is_uniform():
    batches = [(None, np.array([[5, 6]]), np.array([[1.0, 1.0]]))]
    perplexity = unigram_perplexity(np.zeros(8, int), batches, SPECIAL)
    assert perplexity == pytest.approx(8, rel=1e-12)


def test_nothing_masked():
    batches = [(None, np.array([[0]]), np.array([[0.0]]))]
    with pytest.raises(ValueError, match="must contain a masked position"):
        unigram_perplexity(count_tokens(TRAIN, 8), batches, SPECIAL)
