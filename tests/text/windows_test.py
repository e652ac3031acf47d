"""Windows and answers are those of BERT's code for SQuAD."""

import numpy as np
import tensorflow as tf
from hypothesis import example
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from keras_pkm.text.special_tokens import SpecialTokens
from keras_pkm.text.windows import WindowSizes
from keras_pkm.text.windows import best_spans
from keras_pkm.text.windows import make_windows

# As of BERT and RoBERTa.
BERT = SpecialTokens(2, (3,), 3, 0, 4, 1)
ROBERTA = SpecialTokens(0, (2, 2), 2, 1, 3, 0)


def definition(length, room, step):
    """Compares all windows at each token.

    Returns:
        The first tokens of the windows, and the window of each token.
    """
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
    return firsts, np.argmax(scores, axis=0)


@settings(deadline=None, max_examples=25)
@given(
    lengths=st.lists(st.integers(0, 900), min_size=1, max_size=3),
    room=st.integers(5, 400),
    step=st.integers(1, 500),
    special=st.sampled_from([BERT, ROBERTA]),
)
# The second window is so short that the first has more context near its end.
@example(lengths=[362, 0], room=361, step=128, special=BERT)
@example(lengths=[150], room=5, step=1, special=ROBERTA)
def test_equal_the_definition(lengths, room, step, special):
    question = [7, 8]
    head = [special.start, *question, *special.between]
    length = len(head) + room + 1
    windows = make_windows(
        tf.ragged.constant([question] * len(lengths), "int32"),
        tf.ragged.constant(
            [np.arange(100, 100 + n).tolist() for n in lengths],
            "int32",
            ragged_rank=1,
        ),
        WindowSizes(length, step, 30),
        special,
    )
    row = 0
    for number, count in enumerate(lengths):
        firsts, best = definition(count, room, min(step, room))
        for window, first in enumerate(firsts):
            tokens = np.arange(first, min(first + room, count))
            ids = [*head, *(100 + tokens), special.end]
            padding = [special.padding] * (length - len(ids))
            kinds = [0] * len(head) + [special.second_segment] * (
                len(tokens) + 1
            )
            inside = slice(len(head), len(head) + len(tokens))
            middle = np.zeros(length, bool)
            middle[inside] = best[tokens] == window
            places = np.full(length, -1)
            places[inside] = tokens
            for found, expected in (
                (windows.inputs["input_word_ids"], ids + padding),
                (windows.inputs["input_type_ids"], kinds + [0] * len(padding)),
                (
                    windows.inputs["input_mask"],
                    [1] * len(ids) + [0] * len(padding),
                ),
                (windows.tokens, places),
                (windows.in_the_middle, middle),
            ):
                np.testing.assert_array_equal(found[row], expected)
            assert windows.examples[row] == number
            row += 1
    assert row == len(windows.examples)


def test_no_answer():
    """Neither an empty context nor an endless question is an error."""
    sizes = WindowSizes(12, 4, 4)
    windows = make_windows(
        tf.ragged.constant([[], list(range(5, 99)), [7]], dtype="int32"),
        tf.ragged.constant([[], [9, 9, 9, 9], []], dtype="int32"),
        sizes,
        BERT,
    )
    np.testing.assert_array_equal(windows.examples, [0, 1, 1, 2])
    np.testing.assert_array_equal(
        windows.inputs["input_word_ids"][:2],
        [
            [2, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            [2, 5, 6, 7, 8, 9, 10, 3, 9, 9, 9, 3],
        ],
    )
    zeros = tf.zeros((4, 12))
    first, last, score = best_spans(windows, 3, zeros, zeros, sizes)
    assert first.numpy().tolist() == [-1, 0, -1]
    assert last.numpy().tolist() == [-1, 0, -1]
    assert score.numpy()[[0, 2]].tolist() == [0, 0]
