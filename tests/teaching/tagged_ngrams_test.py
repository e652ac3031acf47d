"""Where no taught n-gram stands, a model computes what it did, bit for bit."""

import keras
import keras_hub
import numpy as np
import pytest

import keras_pkm
from keras_pkm.models import memories
from tests.any_backbone.tiny_families import make_plain

NAMES, WINDOWS, LENGTH = 60, 200, 8


@pytest.mark.slow
@pytest.mark.parametrize("num_slots", [64, 4096])
def test_windows_without_a_taught_n_gram(num_slots):
    """Also where most n-grams share a row with one that was taught."""
    plain = keras_hub.models.GPT2CausalLM(make_plain("GPT2"))
    model = keras_pkm.models.add_memory(
        plain,
        (1, 2),
        keras_pkm.layers.NGramMemory(num_slots, orders=(2, 3), tags=True),
    )
    rng = np.random.default_rng(0)
    windows = rng.integers(1, 50, (WINDOWS, LENGTH)).astype("int32")
    mask = np.ones_like(windows)
    inputs = {"token_ids": windows, "padding_mask": mask}
    before = model.predict(inputs, verbose=0)

    names = rng.integers(1, 50, (NAMES, 3)).astype("int32")
    taught, lost = set(), 0
    for memory in memories(model).values():
        for name in names:
            claim = memory.claim(name)
            lost += claim.lost
            if claim.rows:
                taught.add(tuple(name.tolist()))
    x = np.concatenate([names, rng.integers(1, 50, (NAMES, 5))], 1)
    teacher = keras_pkm.teaching.MemoryTeacher(
        model,
        0.1,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    teacher.teach(
        [({"token_ids": x, "padding_mask": np.ones_like(x)}, np.roll(x, -1))],
        steps=4,
    )

    # Windows in which a taught n-gram stands, put there for the test.
    windows[:20, 2:5] = list(taught)[:20]
    after = model.predict(inputs, verbose=0)
    has_taught = np.array(
        [
            any(tuple(row[i : i + 3].tolist()) in taught for i in range(6))
            for row in windows
        ]
    )
    assert 20 <= has_taught.sum() < 40
    np.testing.assert_array_equal(after[~has_taught], before[~has_taught])
    changed = (after[:20] != before[:20]).any((1, 2))
    assert changed.all()

    (memory, _) = memories(model).values()
    _, (slots, weights) = memory(
        np.zeros((WINDOWS, LENGTH, 16)),
        token_ids=windows,
        return_memory_access=True,
    )
    slots, weights = map(keras.ops.convert_to_numpy, (slots, weights))
    tags = keras.ops.convert_to_numpy(memory.table.tags)
    shared = int(((tags[slots] != 0) & (weights == 0)).sum())
    print(
        f"{num_slots} slots: {lost} of {2 * NAMES} rows lost to others; "
        f"{shared} of {slots.size} n-grams hash to another's row"
    )
    assert shared > 0
