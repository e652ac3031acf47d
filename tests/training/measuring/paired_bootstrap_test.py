import numpy as np
import pytest

from training.measuring.paired_bootstrap import paired_difference


def test_interval_of_a_known_difference():
    rng = np.random.default_rng(0)
    found = []
    for seed in range(60):
        tokens = rng.integers(1, 9, 64 * 200).astype(float)
        # What a document has in common moves both models alike.
        common = np.repeat(rng.normal(4, 1, 200), 64) * tokens
        noise = np.repeat(rng.normal(0, 0.1, 200), 64) * tokens
        other = common + 0.01 * tokens + noise
        found.append(paired_difference((common, tokens), (other, tokens), seed))
    # The standard error of 200 documents, of which the blocks know nothing.
    expected = 0.1 / 200**0.5
    widths = [some.high - some.low for some in found]
    assert np.mean(widths) == pytest.approx(2 * 1.96 * expected, rel=0.1)
    inside = [some.low < 0.01 < some.high for some in found]
    assert 0.85 < np.mean(inside) <= 1


def test_mean():
    rng = np.random.default_rng(1)
    tokens = rng.integers(1, 9, 1000).astype(float)
    first, second = rng.random((2, 1000))
    found = paired_difference((first, tokens), (second, tokens))
    assert found.mean == pytest.approx(
        (second.sum() - first.sum()) / tokens.sum()
    )
    same = paired_difference((first, tokens), (first, tokens))
    assert (same.mean, same.low, same.high) == (0, 0, 0)
    with pytest.raises(ValueError, match="of the same sequences"):
        paired_difference((first, tokens), (second[:9], tokens[:9]))


@pytest.mark.parametrize("count", [1, 2, 60])
def test_few_sequences_are_not_certain(count):
    rng = np.random.default_rng(2)
    tokens = np.full(count, 8.0)
    first, second = rng.normal(size=(2, count))
    found = paired_difference((first, tokens), (second, tokens))
    assert found.low < found.mean < found.high
    if count == 60:
        error = (second - first).std(ddof=1) / 8 / count**0.5
        width = found.high - found.low
        assert width == pytest.approx(2 * 1.96 * error, rel=0.2)
