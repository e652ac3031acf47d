"""What is taught together, and in which batches."""

import itertools
import types

import numpy as np
import pytest
import tensorflow as tf

from training.batches.objectives import NextTokens
from training.facts.random_facts import RandomFacts
from training.measuring.text_batches import PackedText
from training.teaching.material import FactMaterial
from training.teaching.material import TextMaterial

FACTS = RandomFacts(num_facts=10, seed=0)


def subjects_of(batches):
    return [
        tuple(row)
        for features, *_ in batches
        for row in features["token_ids"].numpy()
    ]


@pytest.mark.parametrize(
    ("batch_size", "group_size", "passes"),
    [
        # All together, in one batch and in several.
        (10, None, [1]),
        (32, None, [1]),
        (4, None, [3]),
        # Groups, the last of which is smaller.
        (5, 4, [1, 1, 1]),
        (3, 4, [2, 2, 1]),
    ],
)
def test_a_pass_sees_every_fact(batch_size, group_size, passes):
    groups = FactMaterial(FACTS, batch_size, group_size).groups(None)
    assert [group.pass_steps for group in groups] == passes
    assert [group.check_every for group in groups] == passes
    seen = []
    for group in groups:
        of_a_pass = itertools.islice(group.batches, group.pass_steps)
        seen.append(set(subjects_of(of_a_pass)))
    everything = set(
        subjects_of([FACTS.examples_of(tf.range(10, dtype=tf.int64))])
    )
    assert set().union(*seen) == everything
    assert sum(map(len, seen)) == len(everything) == 10


def test_a_share_of_a_text_is_from_all_of_it():
    rows = np.repeat(np.arange(1, 101, dtype="int32")[:, None], 4, axis=1)
    objective = NextTokens(types.SimpleNamespace(end_token_id=0), 4)
    text = TextMaterial(PackedText(rows, objective), 10, seed=0, fall=0.5)
    for share, passes in ((0.1, 1), (1.0, 10)):
        batches = text.samples(10, seed=0, share=share).take(passes)
        drawn = {row[0] for row in subjects_of(batches)}
        assert len(drawn) == 10 * passes
        assert min(drawn) == 1 and max(drawn) == 100
