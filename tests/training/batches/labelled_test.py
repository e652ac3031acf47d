import keras_hub
import numpy as np
import pytest

from tests.slow_tier import slow_but
from training.batches.labelled import Labelled
from training.batches.labelled import dev_batches
from training.batches.labelled import encode_texts
from training.batches.labelled import training_batches


def numbered(count, paired):
    rows = np.arange(count, dtype="int32")
    labels = {"start": rows, "end": rows + 1} if paired else rows
    ids = np.stack([rows, -rows], 1)
    features = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    return Labelled(features, labels)


@pytest.mark.parametrize("paired", [False, True])
def test_training_batches(paired):
    data = numbered(10, paired)
    batches = list(training_batches(data, batch_size=4, seed=3, num_steps=5))
    for features, labels in batches:
        ids = features["token_ids"].numpy()
        np.testing.assert_array_equal(ids[:, 0], -ids[:, 1])
        first = labels["start"] if paired else labels
        np.testing.assert_array_equal(first, ids[:, 0])
        if paired:
            np.testing.assert_array_equal(labels["end"], ids[:, 0] + 1)
    rows = np.concatenate([b[0]["token_ids"][:, 0] for b in batches])
    # Two epochs, each row once in each, in another order.
    assert sorted(rows[:10]) == sorted(rows[10:]) == list(range(10))
    assert list(rows[:10]) != list(rows[10:])
    later = training_batches(
        data, batch_size=4, seed=3, first_step=3, num_steps=2
    )
    again = np.concatenate([b[0]["token_ids"][:, 0] for b in later])
    np.testing.assert_array_equal(again, rows[12:])
    other = next(iter(training_batches(data, batch_size=10, seed=4)))
    assert list(other[0]["token_ids"][:, 0]) != list(rows[:10])


def test_training_batches_are_as_long_as_their_longest_row():
    lengths = np.array([3, 8, 9, 20, 30])
    mask = (np.arange(30) < lengths[:, None]).astype("int32")
    data = Labelled({"padding_mask": mask, "token_ids": mask * 7}, lengths)
    batches = training_batches(data, batch_size=2, seed=0, num_steps=20)
    assert batches.element_spec[0]["token_ids"].shape == (2, None)
    seen = set()
    for features, labels in batches:
        longest = max(labels.numpy())
        seen.add(longest)
        assert features["token_ids"].shape == features["padding_mask"].shape
        width = features["token_ids"].shape[1]
        assert width == min(30, -(-longest // 8) * 8)
        # Nothing but padding is lost.
        kept = features["padding_mask"].numpy().sum(1)
        np.testing.assert_array_equal(kept, labels)
    assert len(seen) > 2


@pytest.mark.parametrize("seed", [0, 1])
def test_rows_of_like_length_share_batches(seed):
    count, batch_size = 1_000, 2
    # 150 batches are two whole pools of 64 and a part of one.
    kwargs = {"batch_size": batch_size, "seed": seed}
    lengths = np.random.default_rng(0).integers(1, 41, count)
    mask = (np.arange(40) < lengths[:, None]).astype("int32")
    data = Labelled({"padding_mask": mask}, np.arange(count, dtype="int32"))

    def rows(**more):
        batches = training_batches(data, **kwargs, **more)
        return np.stack([labels for _, labels in batches])

    plain = rows(num_steps=150)
    grouped = rows(num_steps=150, group_by_length=True)
    for pool in (slice(0, 64), slice(64, 128), slice(128, 150)):
        assert sorted(grouped[pool].ravel()) == sorted(plain[pool].ravel())
        spread = np.ptp(lengths[grouped[pool]], axis=1)
        assert spread.mean() < 0.2 * np.ptp(lengths[plain[pool]], axis=1).mean()
        # Short batches do not all come first.
        means = lengths[grouped[pool]].mean(axis=1)
        assert 0.3 < np.mean(np.diff(means) > 0) < 0.7
    later = rows(first_step=100, num_steps=50, group_by_length=True)
    np.testing.assert_array_equal(later, grouped[100:])


def test_rows_of_like_length_of_a_small_set():
    """Each epoch has each row once, but for those that fill its last batch."""
    lengths = np.random.default_rng(0).integers(1, 41, 100)
    mask = (np.arange(40) < lengths[:, None]).astype("int32")
    data = Labelled({"padding_mask": mask}, np.arange(100, dtype="int32"))
    batches = training_batches(
        data, batch_size=8, seed=0, num_steps=36, group_by_length=True
    )
    rows = np.stack([labels for _, labels in batches])
    for epoch in rows[:12], rows[12:24], rows[24:]:
        assert len(np.unique(epoch)) > 0.9 * epoch.size
    assert len(np.unique(rows[:12])) == 96


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("count", [8, 9, 11])
def test_dev_batches(paired, count):
    batches = list(dev_batches(numbered(count, paired), batch_size=4))
    assert all(b[0]["token_ids"].shape == (4, 2) for b in batches)
    weights = [b[2]["end"] if paired else b[2] for b in batches]
    weights = np.concatenate(weights)
    rows = np.concatenate([b[0]["token_ids"][:, 0] for b in batches])
    assert list(rows[weights == 1]) == list(range(count))
    assert weights.sum() == count


@pytest.mark.parametrize("columns", slow_but(2, [1, 2]))
def test_texts(tokenizer, columns):
    texts = ["the dog", "nobody knows", "the lazy fox jumped over the dog"]
    labels = np.array([1, 0, 1], "int32")
    preprocessor = keras_hub.models.BertTextClassifierPreprocessor(
        tokenizer, sequence_length=9
    )
    columns_of_texts = (texts, texts[::-1])[:columns]
    data = encode_texts(columns_of_texts, labels, preprocessor)
    assert len(data) == 3
    ids = list(tokenizer(texts[0]))
    row = data.features["token_ids"][0]
    assert list(row[: len(ids) + 1]) == [tokenizer.cls_token_id, *ids]
    segments = data.features["segment_ids"]
    assert segments.any() == (columns == 2)
    assert data.features["padding_mask"].dtype == "int32"
    np.testing.assert_array_equal(data.labels, [1, 0, 1])


def test_texts_are_read_as_they_are_served(tokenizer):
    """Other spaces separate words, and nothing ends at NUL."""
    preprocessor = keras_hub.models.BertTextClassifierPreprocessor(
        tokenizer, sequence_length=8
    )
    texts = [f"the{space}dog" for space in (" ", "\u00a0", "\x00")]
    rows = encode_texts([texts], np.zeros(3), preprocessor)
    plain, *odd = rows.features["token_ids"]
    for row in odd:
        np.testing.assert_array_equal(row, plain)
