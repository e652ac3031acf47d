import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from training.facts.fact_batches import some_facts
from training.facts.fact_batches import training_batches
from training.facts.random_facts import END
from training.facts.random_facts import MASK
from training.facts.random_facts import START
from training.facts.random_facts import RandomFacts
from training.runs.user_error import UserError

FACTS = RandomFacts(
    num_facts=40_000, num_values=64, num_relations=3, name_tokens=32
)


@pytest.fixture(scope="module")
def drawn():
    """The inputs and values of all facts."""
    indices = tf.range(FACTS.num_facts, dtype=tf.int64)
    return FACTS.inputs_of(indices).numpy(), FACTS.values_of(indices).numpy()


def test_inputs(drawn):
    inputs, _ = drawn
    assert inputs.shape == (40_000, FACTS.sequence_length) == (40_000, 7)
    start, *name, relation, mask, end = inputs.T
    assert set(start) == {START} and set(mask) == {MASK} and set(end) == {END}
    assert set(np.ravel(name)) == set(range(4, 4 + 32))
    np.testing.assert_array_equal(
        relation - (4 + 32), np.arange(40_000) % FACTS.num_relations
    )
    # Subject and relation say which fact it is.
    assert len(np.unique(inputs, axis=0)) == FACTS.num_facts
    names = np.stack(name, axis=1)
    np.testing.assert_array_equal(names[0::3][:13_333], names[1::3][:13_333])
    assert len(np.unique(names, axis=0)) == -(-FACTS.num_facts // 3)


def test_a_causal_model_reads_what_stands_before_the_value(drawn):
    facts = dataclasses.replace(FACTS, causal=True)
    indices = tf.range(100, dtype=tf.int64)
    features, labels, weights = facts.examples_of(indices)
    inputs, values = (each[:100] for each in drawn)
    assert facts.sequence_length == 5
    np.testing.assert_array_equal(features["token_ids"], inputs[:, :5])
    np.testing.assert_array_equal(labels[:, :-1], inputs[:, 1:5])
    np.testing.assert_array_equal(labels[:, -1], facts.first_value + values)
    np.testing.assert_array_equal(weights, [[0, 0, 0, 0, 1]] * 100)


def chi_square(counts):
    expected = counts.sum() / counts.size
    return ((counts - expected) ** 2 / expected).sum()


def test_values_are_uniform_and_independent_of_all_else(drawn):
    """Of counts in n cells chi² is about n, with a deviation of √(2 n)."""
    inputs, values = drawn
    cells = [np.bincount(values, minlength=64)]
    # Of neighbours, and of each token of the name, which are about uniform.
    cells.append(np.bincount(values[:-1] * 64 + values[1:], minlength=64**2))
    for column in (1, 2, 3):
        other = inputs[:, column] - 4
        cells.append(np.bincount(other * 64 + values, minlength=32 * 64))
    for counts in cells:
        n = counts.size
        assert abs(chi_square(counts) - n) < 5 * np.sqrt(2 * n)


def test_follow_from_the_seed_alone(drawn):
    inputs, values = drawn
    some = tf.constant([39_999, 5, 5], tf.int64)
    same = dataclasses.replace(FACTS)
    np.testing.assert_array_equal(same.inputs_of(some), inputs[some])
    np.testing.assert_array_equal(same.values_of(some), values[some])
    # More of them leave those as they are.
    more = dataclasses.replace(FACTS, num_facts=90_000)
    np.testing.assert_array_equal(more.values_of(some), values[some])
    np.testing.assert_array_equal(more.inputs_of(some), inputs[some])
    other = dataclasses.replace(FACTS, seed=1)
    indices = tf.range(1000, dtype=tf.int64)
    assert np.mean(other.values_of(indices) == values[:1000]) < 0.05
    assert np.mean(other.inputs_of(indices)[:, 1] == inputs[:1000, 1]) < 0.1


def test_bits():
    assert RandomFacts(1000).bits == 10_000
    assert RandomFacts(1000, num_values=2).bits == 1000


def test_as_many_as_names_and_no_more():
    most = RandomFacts(24, name_tokens=2, num_relations=3)
    inputs = most.inputs_of(tf.range(24, dtype=tf.int64))
    assert len(np.unique(inputs, axis=0)) == 24
    for number in (25, 0):
        with pytest.raises(
            UserError, match="--facts must be from 1 to 24, .*8"
        ):
            dataclasses.replace(most, num_facts=number)


def test_batches_go_on_where_others_stopped():
    def batches(first, number):
        return list(
            training_batches(
                FACTS,
                batch_size=7,
                seed=3,
                first_step=first,
                num_steps=number,
            ).as_numpy_iterator()
        )

    whole = batches(0, 5)
    for one, other in zip(whole[3:], batches(3, 2), strict=True):
        for a, b in zip(tf.nest.flatten(one), tf.nest.flatten(other)):
            np.testing.assert_array_equal(a, b)


def test_an_epoch_has_each_fact_once(drawn):
    _, values = drawn
    batches = training_batches(
        dataclasses.replace(FACTS, num_facts=100),
        batch_size=50,
        seed=0,
        first_step=2,
        num_steps=2,
    )
    labels = np.concatenate([y for _, y, _ in batches.as_numpy_iterator()])
    expected = FACTS.first_value + values[:100]
    assert sorted(labels[:, 0]) == sorted(expected)
    assert list(labels[:, 0]) != list(expected)


def test_some_facts(drawn):
    inputs, values = drawn
    facts = dataclasses.replace(FACTS, num_facts=10)
    batches = list(some_facts(facts, 4).as_numpy_iterator())
    assert [len(y) for _, y, _ in batches] == [4, 4, 2]
    x, y, weights = batches[2]
    np.testing.assert_array_equal(x["token_ids"], inputs[8:10])
    np.testing.assert_array_equal(y[:, 0], FACTS.first_value + values[8:10])
    assert (x["token_ids"][:, x["mask_positions"][0, 0]] == MASK).all()
    assert weights.dtype == np.float32 and (weights == 1).all()


def test_some_of_the_facts_are_of_all_relations():
    """Every tenth fact would have the first of the five relations."""
    facts = dataclasses.replace(FACTS, num_relations=5)
    batches = [
        list(some_facts(facts, 500, at_most=4000).as_numpy_iterator())
        for _ in range(2)
    ]
    first, again = (
        np.concatenate([x["token_ids"] for x, _, _ in some]) for some in batches
    )
    np.testing.assert_array_equal(first, again)
    assert len(np.unique(first, axis=0)) == 4000
    relations = np.bincount(first[:, -3] - first[:, -3].min())
    # 800 each are expected; the standard deviation is 24.
    assert len(relations) == 5 and abs(relations - 800).max() < 120


def test_synonyms_are_as_many_as_words():
    with pytest.raises(UserError, match="--synonyms must be 1, or at least th"):
        dataclasses.replace(FACTS, synonyms=2)


def test_synonyms_are_asked_for_in_words_that_are_never_trained_together():
    facts = dataclasses.replace(FACTS, num_facts=3000, synonyms=4)
    assert facts.vocabulary_size == FACTS.vocabulary_size + 3 * 32
    indices = tf.range(3000, dtype=tf.int64)
    asked = facts.inputs_of(indices).numpy()
    np.testing.assert_array_equal(asked, facts.inputs_of(indices).numpy())
    plain = dataclasses.replace(facts, synonyms=1).inputs_of(indices).numpy()
    trained = [
        facts.inputs_of(indices, indices + 3000 * number).numpy()
        for number in range(20)
    ]
    for inputs in (asked, *trained):
        names, words = np.divmod(inputs[:, 1:4] - 4, 4)
        np.testing.assert_array_equal(names, plain[:, 1:4] - 4)
        np.testing.assert_array_equal(inputs[:, 4] - 4 * 32, plain[:, 4] - 32)
        for first, second in ((0, 1), (0, 2), (1, 2)):
            apart = (words[:, second] - words[:, first]) % 4 == second - first
            assert apart.all() if inputs is asked else not apart.any()
    # All words of a meaning, about as often.
    _, words = np.divmod(np.concatenate(trained)[:, 1:4] - 4, 4)
    for place in range(3):
        counts = np.bincount(words[:, place], minlength=4)
        assert chi_square(counts) < 20
    assert len(np.unique(asked[:, 1:4], axis=0)) > 2000
    # A batch's place in the training says which ones are drawn.
    batches = [
        [features["token_ids"].numpy() for features, _, _ in batches]
        for batches in [
            training_batches(
                facts, batch_size=50, seed=1, first_step=first, num_steps=2
            )
            for first in (0, 0, 60)
        ]
    ]
    np.testing.assert_array_equal(batches[0], batches[1])
    assert (np.stack(batches[0]) != np.stack(batches[2])).any()
