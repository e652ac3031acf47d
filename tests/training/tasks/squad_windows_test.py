import dataclasses
import functools

import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from keras_pkm.export.modules.saved_question_answerer import marks_at
from keras_pkm.text import windows as in_graphs
from keras_pkm.text.special_tokens import SpecialTokens
from keras_pkm.text.tokenize import tokenize
from keras_pkm.text.tokenize import tokenize_with_offsets
from keras_pkm.text.windows import WindowSizes
from training.corpora.offset_tokenizer import OffsetTokenizer
from training.corpora.word_pieces import load_vocabulary
from training.corpora.word_pieces import make_tokenizer
from training.runs.user_error import UserError
from training.tasks.bad_rows import BadRows
from training.tasks.squad import SquadExample
from training.tasks.squad import read_squad
from training.tasks.squad_score import exact_match
from training.tasks.squad_score import squad_score
from training.tasks.squad_windows import best_answers
from training.tasks.squad_windows import make_windows

CONTEXT = "The quick brown fox jumped over the lazy dog. Nobody knows why."
# Of RoBERTa: bytes, and a merge.
BYTES = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def example(question="Why?", answer="lazy dog", context=CONTEXT):
    return SquadExample(
        "q", question, context, (answer,), (context.index(answer),)
    )


def windows_of(tokenizer, *examples, **sizes):
    sizes = WindowSizes(**{"sequence_length": 14, "stride": 3, **sizes})
    windows = make_windows(
        list(examples),
        with_offsets_of(tokenizer),
        SpecialTokens.of(tokenizer),
        sizes,
        "dev.json",
        BadRows(),
        progress=False,
    )
    return windows, sizes


@functools.cache
def with_offsets_of(tokenizer):
    """Its graphs take seconds to trace."""
    return OffsetTokenizer(tokenizer)


def gold_logits(windows):
    """Logits that a perfect model would give."""
    logits = np.zeros((2, *windows.token_ids.shape))
    for row, label in enumerate(windows.labels):
        if label.any():
            logits[0, row, label[0]] = logits[1, row, label[1]] = 10
    return logits


@pytest.fixture(scope="session")
def roberta_tokenizer():
    letters = sorted({*CONTEXT.replace(" ", "Ġ"), *"ÃĤÄéW?"})
    firsts = sorted({word[0] for word in CONTEXT.split()[1:]})
    merges = [*(f"Ġ {letter}" for letter in firsts), "Ġt h", "h e"]
    merged = [merge.replace(" ", "") for merge in merges]
    return keras_hub.models.RobertaTokenizer(
        {t: number for number, t in enumerate([*BYTES, *letters, *merged])},
        merges,
    )


@pytest.fixture(params=["bert", "roberta"])
def any_tokenizer(request, tokenizer, roberta_tokenizer):
    return {"bert": tokenizer, "roberta": roberta_tokenizer}[request.param]


def encode(tokenizer, text):
    """The ids of a text, and the first and last place of each token."""
    found = with_offsets_of(tokenizer).with_offsets([text])
    ids, starts, ends = (each[0].numpy().tolist() for each in found)
    assert with_offsets_of(tokenizer).ids([text]) == [ids]
    return ids, list(zip(starts, ends))


def test_offsets_and_ids(any_tokenizer):
    ids, offsets = encode(any_tokenizer, CONTEXT)
    assert ids == list(any_tokenizer(CONTEXT))
    for number, (start, end) in zip(ids, offsets):
        token = any_tokenizer.id_to_token(number)
        plain = token.removeprefix("##").removeprefix("Ġ")
        assert CONTEXT[start:end].lower() == plain.lower()


@pytest.mark.slow
def test_accents_do_not_shift_offsets(tokenizer):
    text = "Ein CAFÉ, cafe\u0301 — coffee"
    ids, offsets = encode(tokenizer, text)
    start, end = offsets[-1]
    assert text[:end].endswith("coffee"[-(end - start) :])
    assert ids == list(tokenizer(text))


def test_an_answer_ends_with_its_combining_marks(tokenizer):
    """A tokenizer that strips accents has no tokens for them."""
    text = "The dog had a cafe\u0301."
    question = example(answer="cafe\u0301", context=text)
    windows, sizes = windows_of(tokenizer, question, sequence_length=40)
    found = best_answers([question], windows, *gold_logits(windows), sizes)
    assert found["q"][0]["text"] == "cafe\u0301"
    texts = tf.constant([text, "cafe\u0301", "dog", ""])
    ends = tf.constant([text.index("\u0301"), 4, 3, 0])
    assert marks_at(texts, ends).numpy().tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize(
    "answer, length",
    [("The", 40), ("lazy dog", 30), ("why", 60), ("dog. Nobody", 200)],
)
def test_layout_and_answers(any_tokenizer, answer, length):
    question = example(answer=answer)
    windows, sizes = windows_of(any_tokenizer, question, sequence_length=length)
    special = SpecialTokens.of(any_tokenizer)
    asked = list(any_tokenizer("Why?"))
    head = [special.start, *asked, *special.between]
    whole = list(any_tokenizer(CONTEXT))
    covered = set()
    for row in range(len(windows)):
        ids = windows.token_ids[row]
        count = windows.padding_mask[row].sum()
        assert list(ids[: len(head)]) == head
        assert ids[count - 1] == special.end
        assert (ids[count:] == special.padding).all()
        inside = windows.starts[row] >= 0
        assert inside.sum() == count - len(head) - 1
        assert inside[len(head) : count - 1].all()
        np.testing.assert_array_equal(
            windows.segment_ids[row],
            special.second_segment
            * ((np.arange(length) >= len(head)) & (np.arange(length) < count)),
        )
        covered.update(windows.starts[row][inside])
        if windows.labels[row].any():
            a, b = windows.labels[row]
            start, end = windows.starts[row, a], windows.ends[row, b]
            assert CONTEXT[start:end] == answer
    assert len(covered) == len(whole)
    # Each token is in the middle of one window.
    assert windows.in_the_middle.sum() == len(whole)
    assert windows.labels.any()
    start, end = gold_logits(windows)
    (best, *_) = best_answers([question], windows, start, end, sizes)["q"]
    assert best["text"] == answer


def test_windows_without_the_answer_point_at_the_first_token(tokenizer):
    windows, _ = windows_of(tokenizer, example(answer="The"))
    assert len(windows) > 2
    assert windows.labels[0].any()
    assert not windows.labels[-1].any()


def test_best_answers_are_possible_ones(tokenizer):
    """By brute force over all pairs of tokens."""
    question = example()
    windows, sizes = windows_of(tokenizer, question, answer_length=3)
    rng = np.random.default_rng(0)
    start, end = rng.normal(size=(2, *windows.token_ids.shape))
    expected = {}
    length = windows.token_ids.shape[1]
    for row in range(len(windows)):
        for a in range(length):
            for b in range(a, min(a + 3, length)):
                if (
                    windows.in_the_middle[row, a]
                    and windows.starts[row, b] >= 0
                ):
                    span = slice(windows.starts[row, a], windows.ends[row, b])
                    text = CONTEXT[span]
                    logit = start[row, a] + end[row, b]
                    expected[text] = max(expected.get(text, -np.inf), logit)
    ranked = sorted(expected.items(), key=lambda item: -item[1])[:5]
    answers = best_answers([question], windows, start, end, sizes, best=1000)
    for (text, logit), actual in zip(ranked, answers["q"]):
        assert actual["text"] == text
        assert actual["logit"] == pytest.approx(logit)
    assert sum(a["probability"] for a in answers["q"]) == pytest.approx(1)
    few = best_answers([question], windows, start, end, sizes, best=2)["q"]
    assert len(few) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "sizes", [(14, 3, 2), (18, 100, 30), (24, 7, 4), (64, 1, 1)]
)
def test_exported_models_choose_the_same_answers(tokenizer, sizes):
    rng = np.random.default_rng(0)
    words = CONTEXT.split()
    examples = []
    for number, count in enumerate([1, 5, 6, 7, 9, 13, 30, 80]):
        context = " ".join(rng.choice(words, count))
        asked = example("Why? " * (1 + number % 2), words[0], context + " The")
        examples.append(dataclasses.replace(asked, id=str(number)))
    length, stride, answer_length = sizes
    found, sizes = windows_of(
        *(tokenizer, *examples),
        sequence_length=length,
        stride=stride,
        answer_length=answer_length,
    )
    # Equal logits, too: the first of them counts.
    logits = [
        rng.integers(-4, 5, found.token_ids.shape).astype("float32")
        for _ in range(2)
    ]
    answers = best_answers(examples, found, *logits, sizes)

    @tf.function(autograph=False)
    def serve(questions, contexts):
        ids, starts, ends = tokenize_with_offsets(tokenizer, contexts)
        windows = in_graphs.make_windows(
            tokenize(tokenizer, questions),
            ids,
            sizes,
            SpecialTokens.of(tokenizer),
        )
        spans = in_graphs.best_spans(windows, len(examples), *logits, sizes)
        return spans, starts, ends

    (first, last, score), starts, ends = serve(
        tf.constant([e.question for e in examples]),
        tf.constant([e.context for e in examples]),
    )
    for number, one in enumerate(examples):
        start = starts[number, int(first[number])]
        end = ends[number, int(last[number])]
        best = answers[one.id][0]
        assert one.context[int(start) : int(end)] == best["text"]
        assert 0 < score[number] <= 1


def test_a_question_that_fills_the_window(tokenizer):
    long = example(question="Why? " * 30)
    with pytest.raises(
        UserError, match="dev.json, question q: .*14 tokens, re"
    ):
        windows_of(tokenizer, long)


def test_a_long_question_is_cut_as_in_serving(tokenizer):
    """It leaves a quarter of a window to the paragraph."""
    windows, _ = windows_of(tokenizer, example(question="Why " * 10))
    why = tokenizer("why")
    asked = windows.token_ids[0, 1:9]
    assert len(why) == 1 and asked[:8].tolist() == 8 * list(why)
    assert (windows.starts[0] >= 0).sum() == 3


def test_other_tokenizers():
    with pytest.raises(UserError, match="byte-pair.*WordPiece.* received a ob"):
        OffsetTokenizer(object())


@pytest.fixture(scope="session")
def bert_tokenizer(shared_data):
    path = shared_data / "vocab" / "bert-base-uncased-vocab.txt"
    return make_tokenizer(load_vocabulary(str(path)))


@pytest.fixture(scope="session")
def dev_set(shared_data):
    return read_squad(shared_data / "squad" / "dev-v1.1.json", BadRows())


@pytest.mark.slow
def test_ids_are_keras_hub_s_on_all_of_squad_s_dev_set(bert_tokenizer, dev_set):
    texts = [*{e.context for e in dev_set}, *(e.question for e in dev_set)]
    ours = OffsetTokenizer(bert_tokenizer)
    theirs = [list(ids) for ids in bert_tokenizer(texts)]
    assert ours.ids(texts) == theirs
    assert ours.with_offsets(texts)[0].to_list() == theirs


@pytest.mark.slow
def test_gold_spans_of_all_dev_questions(bert_tokenizer, dev_set):
    """Through windows, n-best and text to the metric."""
    sizes = WindowSizes(answer_length=10_000)
    windows = make_windows(
        dev_set,
        OffsetTokenizer(bert_tokenizer),
        SpecialTokens.of(bert_tokenizer),
        sizes,
        "dev",
        BadRows(),
        progress=False,
    )
    start, end = gold_logits(windows)
    best = best_answers(dev_set, windows, start, end, sizes, best=1)
    predictions = {key: found[0]["text"] for key, found in best.items()}
    wrong = {
        question.id: (predictions[question.id], question.answers[0])
        for question in dev_set
        if not exact_match(predictions[question.id], question.answers[0])
    }
    print(f"{len(wrong)} of {len(dev_set)} differ: {wrong}")
    # No answer can begin or end inside a token. "gold" in "golden" does.
    assert len(wrong) == 34
    asked = [question for question in dev_set if question.id in wrong]
    _, starts, ends = OffsetTokenizer(bert_tokenizer).with_offsets(
        [question.context for question in asked]
    )
    for question, *row in zip(asked, starts.to_list(), ends.to_list()):
        first = question.answer_starts[0]
        last = first + len(question.answers[0])
        assert any(
            start < border < end
            for start, end in zip(*row)
            for border in (first, last)
        ), question.id
    answers = {question.id: question.answers for question in dev_set}
    score = squad_score(predictions, answers)
    # Of the 34, 9 are right by another of the question's answers.
    expected = 100 * (1 - 25 / 10_570)
    assert score["exact_match"] == pytest.approx(expected)
