import math

import keras
import numpy as np
import pytest

import keras_pkm
from keras_pkm.teaching import SlotImportance
from tests.slow_tier import slow_on_tensorflow
from tests.teaching.models import SLOTS
from tests.teaching.models import make_batch
from tests.teaching.models import make_model


def test_the_formula():
    importance = SlotImportance(9, {1: [0, 9, 4, 1, 0]})
    scores = importance.score({1: np.array([1, 5, 2, 0, 2])})[1]
    expected = [
        0.1 * math.log(10 / 1),
        0.5 * math.log(10 / 10),
        0.2 * math.log(10 / 5),
        0,
        0.2 * math.log(10 / 1),
    ]
    np.testing.assert_allclose(scores, expected, rtol=1e-15)
    best = importance.best({1: np.array([1, 5, 2, 0, 2])}, 2)
    assert best[1].tolist() == [4, 0]
    # Neither what all of the background reads, nor what nothing reads.
    best = importance.best({1: np.array([1, 5, 2, 0, 2])}, 5)
    assert best[1].tolist() == [4, 0, 2]


def test_nothing_read_has_no_importance():
    importance = SlotImportance(9, {1: [0, 9]})
    assert importance.score({1: np.zeros(2, "int64")})[1].tolist() == [0, 0]


@slow_on_tensorflow
def test_a_background_is_counted_by_batches():
    model = make_model()
    batches = [make_batch(seed)[0] for seed in range(5)]
    importance = SlotImportance.of_background(model, batches)
    probe = keras_pkm.models.MemoryProbe(model)
    expected = {1: np.zeros(SLOTS), 2: np.zeros(SLOTS)}
    for batch in batches:
        probe.measure([batch])
        for number, counts in probe.counts.items():
            expected[number][counts["reads"] > 0] += 1
    assert importance.num_batches == 5
    for number, frequencies in importance.document_frequencies.items():
        np.testing.assert_array_equal(frequencies, expected[number])
        assert 0 < frequencies.max() <= 5


def test_padding_is_not_counted():
    inputs = keras.Input((4,), dtype="int32")
    x = keras.layers.Embedding(10, 8, mask_zero=True)(inputs)
    x = keras_pkm.layers.ProductKeyMemory(8, 1, 2, 4)(x)
    probe = keras_pkm.models.MemoryProbe(keras.Model(inputs, x))
    ((counts,),) = (
        each.values() for each in probe.count_each([np.array([[1, 2, 0, 0]])])
    )
    assert counts["reads"].sum() == 2 * 2


def test_saved_and_loaded(tmp_path):
    path = tmp_path / "importance.npz"
    importance = SlotImportance(7, {2: [0, 7, 3], 5: [1, 1, 0]})
    importance.save(path)
    loaded = SlotImportance.load(path)
    assert loaded.num_batches == 7
    assert set(loaded.document_frequencies) == {2, 5}
    for number, frequencies in importance.document_frequencies.items():
        np.testing.assert_array_equal(
            loaded.document_frequencies[number], frequencies
        )


def test_mistakes(tmp_path):
    with pytest.raises(ValueError, match="from 0 to `num_batches`.* to 8"):
        SlotImportance(7, {1: [0, 8]})
    with pytest.raises(ValueError, match="at least one batch"):
        SlotImportance.of_background(make_model(), [])
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="SlotImportance.save.*arrays a"):
        SlotImportance.load(tmp_path / "other.npz")
    (tmp_path / "text.npz").write_text("text")
    with pytest.raises(ValueError, match="text.npz"):
        SlotImportance.load(tmp_path / "text.npz")


def test_a_table_that_several_memories_read():
    """A slot that another memory often reads is not specific."""
    importance = SlotImportance(10, {1: [1, 0, 8, 0], 2: [9, 1, 0, 0]})
    reads = {1: np.array([9, 1, 1, 0]), 2: np.array([0, 1, 0, 1])}
    assert importance.best_of_table(reads, 2).tolist() == [1, 3]
    assert importance.best_of_table({1: reads[1]}, 2).tolist() == (
        importance.best({1: reads[1]}, 2)[1].tolist()
    )
