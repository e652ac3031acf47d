"""Which window has most of the paragraph around a token."""

import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from training.tasks.squad_windows import most_context
from training.tasks.squad_windows import num_windows


def definition(length, room, step):
    """Compares all windows at each token, as BERT's code for SQuAD does."""
    firsts = [0]
    while firsts[-1] + room < length:
        firsts.append(firsts[-1] + step)
    tokens = np.arange(length)
    scores = []
    for first in firsts:
        last = min(first + room, length)
        context = np.minimum(tokens - first, last - 1 - tokens)
        inside = (first <= tokens) & (tokens < last)
        score = context + 0.01 * (last - first)
        scores.append(np.where(inside, score, -1.0))
    return np.argmax(scores, axis=0), len(firsts)


@given(
    length=st.integers(0, 150), room=st.integers(1, 40), step=st.integers(1, 40)
)
def test_equals_the_definition(length, room, step):
    step = min(step, room)
    expected, count = definition(length, room, step)
    np.testing.assert_array_equal(most_context(length, room, step), expected)
    assert num_windows(length, room, step) == count


def test_memory_grows_with_the_tokens_alone():
    """Tokens x windows would be 80 GB."""
    tracemalloc.start()
    windows = most_context(100_000, 300, 1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert windows[-1] == 99_700
    assert peak < 100_000 * 8 * 30
