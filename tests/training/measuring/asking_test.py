"""Two models on the same text."""

import types

import numpy as np
import pytest

from training.measuring.asking import compare_on_text


def test_each_token_counts_the_same():
    """Also those of a last batch that is smaller."""
    rng = np.random.default_rng(0)
    windows = rng.integers(7, size=(5, 6))
    logits = rng.normal(size=(2, 5, 6, 7))
    # The models differ most in the last window.
    logits[1, :4] = logits[0, :4] + 0.01 * logits[1, :4]
    models = [
        types.SimpleNamespace(read=lambda _, x=each: iter([x[:4], x[4:]]))
        for each in logits
    ]
    found = compare_on_text(*models, windows)
    shares = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    losses = [
        -np.log(
            [each[i, j, windows[i, j + 1]] for i in range(5) for j in range(5)]
        )
        for each in shares
    ]
    before, after = (np.exp(each.mean()) for each in losses)
    assert found["perplexity_before"] == pytest.approx(before)
    assert found["perplexity_after"] == pytest.approx(after)
    assert found["change"] == pytest.approx(after / before - 1)
    divergence = (shares[0] * np.log(shares[0] / shares[1])).sum(axis=-1)
    assert found["divergence"] == pytest.approx(divergence[:, :-1].mean())
