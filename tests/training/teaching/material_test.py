"""What is taught together, and in which batches."""

import itertools

import pytest
import tensorflow as tf

from training.facts.random_facts import RandomFacts
from training.teaching.material import FactMaterial

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
