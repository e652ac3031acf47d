"""Memories of facts: oracle, claims, decoding, errors."""

import keras
import keras_hub
import numpy as np
import pytest

import keras_pkm
from keras_pkm.layers import FactMemory
from keras_pkm.layers.make_memory import template_for
from keras_pkm.layers.word_edges import BEGINS
from keras_pkm.layers.word_edges import ENDS
from keras_pkm.layers.word_edges import read_word_edges
from keras_pkm.layers.word_edges import word_edges
from keras_pkm.models import memories
from tests.any_backbone.tiny_families import make_causal_lm
from tests.contracts import to_numpy
from tests.slow_tier import slow_on_tensorflow

DIM, LENGTH, WINDOW = 6, 40, 7
SUBJECTS = [(3,), (2, 3), (4, 1, 2), (5, 5)]


def make_memory(**options):
    """A memory in which most subjects have several facts."""
    options = {"num_keys": 5, "window": WINDOW, "orders": (1, 2, 3), **options}
    memory = FactMemory(60, **options)
    memory.build((None, None, DIM))
    rng = np.random.default_rng(4)
    rows = 0.5 * rng.normal(size=(60, DIM + 1))
    memory.write(range(60), rows)
    for number in range(4):
        assert memory.claim_key(f"relation {number}") == number
    claimed = {}
    for subject in SUBJECTS:
        for key in rng.choice(4, 2, replace=False).tolist():
            claimed[subject, key] = memory.claim(subject, key)
    assert len(set(claimed.values())) == len(claimed)
    return memory, claimed, rows.astype("float32")


class Tokens:
    """A tokenizer of twelve tokens, some of which are parts of words."""

    tokens = ["ab", "Ġab", "!", "Ġ3", "'s", "a", "Ġ", "ä", None, "Ċ", "1", "a."]

    def vocabulary_size(self):
        return len(self.tokens)

    def id_to_token(self, number):
        return self.tokens[number]

    @staticmethod
    def joins(first, second):
        # "ä" stands for a byte that is a part of a character.
        return first in (0, 1, 3, 4, 5, 10) and second in (0, 5, 10, 11)


def slots_by_hand(ids, x, claimed, rows, joins):
    """The slot that each token of a text reads, or -1."""
    stood = []
    for place in range(len(ids)):
        for length in (1, 2, 3):
            words = tuple(ids[max(0, place + 1 - length) : place + 1])
            begins = place - length < 0 or not joins(*ids[place - length :][:2])
            if words in SUBJECTS and len(words) == length and begins:
                stood.append((place, words))
    found = []
    for place in range(len(ids)):
        subject = None
        for since, words in stood:
            is_behind = since < place <= since + WINDOW
            if is_behind and not joins(*ids[since : since + 2]):
                subject = words
        slot = -1
        if subject is not None:
            fits = {
                key: rows[key, :-1] @ x[place] + rows[key, -1] + rows[own, -1]
                for (name, key), own in claimed.items()
                if name == subject
            }
            best = max(fits, key=fits.get)
            if fits[best] > 0:
                slot = claimed[subject, best]
        found.append(slot)
    return found


@pytest.mark.parametrize("has_edges", [False, True])
def test_reads_are_those_by_hand(has_edges):
    joins = Tokens.joins if has_edges else lambda first, second: False
    edges = word_edges(Tokens()) if has_edges else None
    memory, claimed, rows = make_memory(word_edges=edges)
    rng = np.random.default_rng(5)
    ids = rng.integers(0, 12, (6, LENGTH))
    x = rng.normal(size=(6, LENGTH, DIM)).astype("float32")
    outputs, (slots, weights) = memory(
        x, token_ids=ids, return_memory_access=True
    )
    expected = np.array(
        [
            slots_by_hand(row.tolist(), of_row, claimed, rows, joins)
            for row, of_row in zip(ids, x, strict=True)
        ]
    )
    assert 0.1 < (expected >= 0).mean() < 0.5
    weights, slots = to_numpy(weights)[..., 0, 0], to_numpy(slots)[..., 0, 0]
    assert (weights == (expected >= 0)).all()
    assert (slots[expected >= 0] == expected[expected >= 0]).all()
    values = np.where((expected >= 0)[..., None], rows[expected, :-1], 0)
    assert (to_numpy(outputs) == values).all()


def test_edges_of_words_by_the_kind_of_tokenizer():
    class SentencePiece(Tokens):
        tokens = ["<s>", "\u2581Bob", "by", "\u2581", ".", "\u25813"]

    class Maltese(Tokens):
        tokens = [*SentencePiece.tokens, "\u0120"]

    class Silent(Tokens):
        def id_to_token(self, number):
            raise NotImplementedError

    edges = read_word_edges(word_edges(SentencePiece()))
    assert edges.tolist() == [0, ENDS, BEGINS | ENDS, 0, 0, ENDS]
    edges = read_word_edges(word_edges(Maltese()))
    assert edges.tolist()[:3] == [0, ENDS, BEGINS | ENDS]
    assert word_edges(Silent()) is None


def test_a_task_brings_the_edges_of_its_words():
    memory = FactMemory(60, num_keys=5)
    config = keras.saving.serialize_keras_object(memory)
    for template in (memory, config):
        suited = template_for(template, Tokens())
        assert suited.word_edges == word_edges(Tokens())
        assert template_for(suited, None) is suited
    arguments = {"num_sub_keys": 4}
    assert template_for(arguments, Tokens()) is arguments


def test_padding_reads_nothing():
    memory, _, _ = make_memory()
    ids = np.array([[3, 2, 3, 9, 9, 9]])
    x = np.random.default_rng(36).normal(size=(1, 6, DIM)).astype("float32")
    mask = np.array([[1, 1, 1, 1, 0, 0]], "bool")
    # Without a mask, the last two places read, too.
    assert to_numpy(memory(x, token_ids=ids))[0, 4:].any(-1).all()
    outputs = to_numpy(memory(x, token_ids=ids, mask=mask))
    assert not outputs[0, 4:].any()


def test_a_window_shorter_than_the_text_before():
    """Ids that precede the inputs count as the text before them."""
    memory, _, _ = make_memory()
    rng = np.random.default_rng(7)
    ids = rng.integers(0, 6, (3, LENGTH))
    x = rng.normal(size=(3, LENGTH, DIM)).astype("float32")
    whole = to_numpy(memory(x, token_ids=ids))
    size = memory.context_size
    last = to_numpy(memory(x[:, -2:], token_ids=ids[:, -(size + 1) :]))
    assert whole.any() and (whole[:, -2:] == last).all()


@slow_on_tensorflow
def test_generates_as_without_a_cache():
    model = make_causal_lm("Llama", FactMemory(200, num_keys=4))
    (memory,) = memories(model).values()
    key = memory.claim_key("any")
    memory.claim([7, 8], key)
    rows = np.random.default_rng(8).normal(size=(200, memory.table.value_dim))
    rows[key] = 0
    rows[key, -1] = 1  # whatever is asked
    memory.write(range(200), 5 * rows)
    padded = np.zeros((1, 10), "int32")
    padded[:, :4] = [5, 7, 8, 9]

    def best_tokens(ids, length):
        mask = np.arange(10)[None] < length
        inputs = {"token_ids": ids, "padding_mask": mask.astype("int32")}
        return inputs, to_numpy(model(inputs))[0].argmax(-1)

    ids = padded.copy()
    for length in range(4, 10):
        ids[0, length] = best_tokens(ids, length)[1][length - 1]
    prompt, _ = best_tokens(padded, 4)
    model.compile(sampler="greedy")
    generated = model.generate(prompt, stop_token_ids=None)
    assert to_numpy(generated["token_ids"]).tolist() == ids.tolist()
    # And the memory had a part in it.
    memory.release([memory.find([7, 8], key)])
    _, without = best_tokens(ids, 10)
    assert without[3:-1].tolist() != ids[0, 4:].tolist()


def test_claims():
    memory, claimed, _ = make_memory()
    assert memory.find_key("relation 2") == 2
    assert memory.find_key("another") is None
    for (subject, key), slot in claimed.items():
        assert memory.find(subject, key) == slot
        assert memory.claim(subject, key) == slot
    (subject, key), slot = next(iter(claimed.items()))
    memory.release([slot])
    assert memory.find(subject, key) == -1
    assert not to_numpy(memory.table.values)[slot].any()
    before = to_numpy(memory.table.values)
    with pytest.raises(ValueError, match="release these facts, too"):
        memory.release([memory.find_key("relation 2")])
    np.testing.assert_array_equal(to_numpy(memory.table.values), before)
    assert memory.find_key("relation 2") == 2


def test_has_a_config():
    memory, _, _ = make_memory(reach=9)
    copy = keras.layers.deserialize(keras.layers.serialize(memory))
    assert isinstance(copy, FactMemory)
    assert copy.get_config() == memory.get_config()
    assert (copy.reach, copy.window, copy.num_keys) == (9, WINDOW, 5)


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda m: m.claim([1, 2, 3, 4], 0), "Received: 4 tokens"),
        (lambda m: m.claim([-1], 0), "at least 0"),
        (lambda m: m.claim([1], 5), "from 0 to 4. Received: 5"),
        (
            lambda m: [m.claim_key(str(n)) for n in range(2)],
            "`num_keys` must be above 5",
        ),
        (
            lambda m: [m.claim([n], 0) for n in range(60)],
            "`num_slots` must be above 60",
        ),
        (lambda _: FactMemory(600).claim([1], 0), "must be built"),
        (
            lambda _: FactMemory(60, num_keys=40),
            r"at least `num_keys \+ reach`",
        ),
        (lambda _: FactMemory(600, num_keys=257), "at most 256"),
        (lambda _: FactMemory(60, num_keys=4, value_dim=8), "must be None"),
    ],
)
def test_mistakes(do, message):
    memory, _, _ = make_memory()
    with pytest.raises(ValueError, match=message):
        do(memory)


def test_a_model_with_it_is_the_plain_one():
    plain = keras_hub.models.LlamaCausalLM(
        keras_hub.models.LlamaBackbone(50, 2, 2, 16, 32, 2), preprocessor=None
    )
    model = keras_pkm.models.add_memory(plain, (1,), FactMemory(200))
    ids = np.random.default_rng(9).integers(0, 50, (4, 12))
    inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    assert (to_numpy(model(inputs)) == to_numpy(plain(inputs))).all()
