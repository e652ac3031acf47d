"""Windows and answers in a graph are those of training."""

import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.export.encoder import INPUTS
from keras_pkm.text.special_tokens import SpecialTokens
from keras_pkm.text.tokenize import tokenize
from keras_pkm.text.tokenize import tokenize_with_offsets
from keras_pkm.text.windows import WindowSizes
from keras_pkm.text.windows import best_spans
from keras_pkm.text.windows import make_windows
from training.tasks import squad_windows
from training.tasks.bad_rows import BadRows
from training.tasks.squad import SquadExample
from training.text.offset_tokenizer import make_offset_tokenizer

SIZES = [
    (12, 3, 2),
    (16, 100, 30),
    *(
        pytest.param(sizes, marks=pytest.mark.slow)
        for sizes in ((20, 7, 4), (64, 1, 1))
    ),
]


@pytest.fixture(scope="module")
def examples():
    rng = np.random.default_rng(0)
    words = (
        "the quick brown fox jumps over lazy dogs 1999 . ann met bob".split()
    )
    lengths = [1, 5, 6, 7, 9, 13, 30, 80]
    contexts = [" ".join(rng.choice(words, n)) for n in lengths]
    return [
        SquadExample(
            id=str(number),
            question=("who met ann ? " * 2)[: 4 * (1 + number % 3)].strip(),
            context=context,
            answers=(context.split()[0],),
            answer_starts=(0,),
        )
        for number, context in enumerate(contexts)
    ]


@pytest.mark.parametrize("sizes", SIZES)
def test_as_in_training(tokenizer, examples, sizes):
    special = SpecialTokens.of(tokenizer)
    expected = squad_windows.make_windows(
        examples,
        make_offset_tokenizer(tokenizer),
        special,
        WindowSizes(*sizes),
        "a file",
        BadRows(),
        progress=False,
    )
    sizes = WindowSizes(*sizes)
    rng = np.random.default_rng(1)
    # Equal logits, too: the first of them counts.
    logits = [
        rng.integers(-4, 5, expected.token_ids.shape).astype("float32")
        for _ in range(2)
    ]
    answers = squad_windows.best_answers(examples, expected, *logits, sizes)

    @tf.function(autograph=False)
    def run(questions, contexts):
        ids, starts, ends = tokenize_with_offsets(tokenizer, contexts)
        windows = make_windows(
            tokenize(tokenizer, questions), ids, sizes, special
        )
        spans = best_spans(windows, len(examples), *logits, sizes)
        return vars(windows), spans, starts, ends

    windows, (first, last, score), starts, ends = run(
        tf.constant([e.question for e in examples]),
        tf.constant([e.context for e in examples]),
    )
    for theirs, ours in INPUTS.items():
        np.testing.assert_array_equal(
            windows["inputs"][theirs], getattr(expected, ours), theirs
        )
    np.testing.assert_array_equal(windows["examples"], expected.examples)
    np.testing.assert_array_equal(
        windows["in_the_middle"], expected.in_the_middle
    )
    for number, example in enumerate(examples):
        start = starts[number, int(first[number])]
        end = ends[number, int(last[number])]
        best = answers[example.id][0]
        assert example.context[int(start) : int(end)] == best["text"]
        assert 0 < score[number] <= 1


def test_no_answer(tokenizer):
    """Neither an empty context nor an endless question is an error."""
    special = SpecialTokens.of(tokenizer)
    sizes = WindowSizes(12, 4, 4)
    windows = make_windows(
        tf.ragged.constant([[], list(range(5, 99)), [7]], dtype="int32"),
        tf.ragged.constant([[], [9, 9, 9, 9], []], dtype="int32"),
        sizes,
        special,
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
