"""Which of the paper's orders a comparison has seen."""

import math

import pytest

from training.measuring.paired_bootstrap import Difference
from training.studies.papers.figures import judge_order
from training.studies.papers.figures import order_models


def seed(lower, upper, before):
    usage = {"10": {"top1_mu": upper}, "2": {"top1_mu": lower}}
    return {"memory_usage": usage, "perplexity_before": before}


MODELS = {
    "e": {"seeds": [seed(0.8, 0.1, 70.0), seed(0.6, 0.1, 80.0)]},
    "f": {"seeds": [seed(0.9, 0.0, 50.0), seed(0.5, 0.9, 50.0)]},
    "g": {"seeds": [seed(0.7, 1.0, 60.0)]},
}


def test_all_seeds_must_have_the_order_in_the_lower_layer():
    found = order_models("use", "top-1 use", MODELS, "f", "e")
    assert found["differences"] == pytest.approx([0.1, -0.1])
    assert found["verdict"] == "not seen"
    assert found["what"] == "top-1 use f >= e"


def test_only_seeds_that_both_have_are_compared():
    found = order_models("use", "top-1 use", MODELS, "e", "g")
    assert found["differences"] == pytest.approx([0.1])
    assert found["verdict"] == "seen"


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        ([0.3], "seen"),
        ([-0.3], "the other way round"),
        ([0.05], "not told apart"),
        ([0.3, 0.2], "seen"),
        ([-0.3, -0.2], "the other way round"),
        ([0.3, 0.05], "not told apart"),
        ([0.3, 0.05, -0.3], "the seeds disagree"),
    ],
)
def test_all_seeds_must_have_the_order_of_perplexities(means, verdict):
    differences = [Difference(mean, mean - 0.1, mean + 0.1) for mean in means]
    assert judge_order(differences) == verdict


def test_first_perplexities_are_compared_in_nats():
    found = order_models("first", "first perplexity", MODELS, "e", "f")
    expected = [math.log(70 / 50), math.log(80 / 50)]
    assert found["differences"] == pytest.approx(expected)
    assert found["verdict"] == "seen"
