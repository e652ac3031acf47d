"""Scores by hand, following the official script's rules step by step."""

import pytest

from training.tasks.squad_score import exact_match
from training.tasks.squad_score import f1
from training.tasks.squad_score import normalize_answer
from training.tasks.squad_score import squad_score

# Prediction, answer, exact match, shared words, words of each.
PAIRS = [
    ("Denver Broncos", "Denver Broncos", 1, (2, 2, 2)),
    ("denver broncos", "Denver Broncos", 1, (2, 2, 2)),
    ("the Denver Broncos", "Denver Broncos", 1, (2, 2, 2)),
    ("The  Denver\tBroncos\n", "a Denver an Broncos", 1, (2, 2, 2)),
    ("Denver Broncos.", "Denver Broncos", 1, (2, 2, 2)),
    ('"Denver" (Broncos)!', "Denver Broncos", 1, (2, 2, 2)),
    ("Broncos", "Denver Broncos", 0, (1, 1, 2)),
    ("Broncos Denver", "Denver Broncos", 0, (2, 2, 2)),
    ("Denver Broncos of 2016", "Denver Broncos", 0, (2, 4, 2)),
    ("Carolina Panthers", "Denver Broncos", 0, (0, 2, 2)),
    # Articles are words, not parts of words.
    ("theory", "theory", 1, (1, 1, 1)),
    ("ate another theme", "ate another theme", 1, (3, 3, 3)),
    ("the the the", "a", 1, (0, 0, 0)),
    ("", "", 1, (0, 0, 0)),
    ("", "Denver", 0, (0, 0, 1)),
    ("the", "Denver", 0, (0, 0, 1)),
    ("...", "", 1, (0, 0, 0)),
    # Punctuation goes before articles do: "a." is an article.
    ("a. b", "b", 1, (1, 1, 1)),
    # It leaves no space behind.
    ("1,000", "1000", 1, (1, 1, 1)),
    ("$3.5 million", "35 million", 1, (2, 2, 2)),
    ("well-known", "wellknown", 1, (1, 1, 1)),
    ("well-known", "well known", 0, (0, 1, 2)),
    ("O'Neill's", "oneills", 1, (1, 1, 1)),
    # "a" stands alone once its neighbours are gone, as in "U.S.A."
    ("U.S.A.", "USA", 1, (1, 1, 1)),
    ("the-end", "theend", 1, (1, 1, 1)),
    # Only ASCII punctuation is dropped.
    ("“Denver”", "Denver", 0, (0, 1, 1)),
    ("1990–2000", "19902000", 0, (0, 1, 1)),
    ("café", "cafe", 0, (0, 1, 1)),
    ("CAFÉ", "café", 1, (1, 1, 1)),
    # str.lower knows more than ASCII; composed and decomposed stay apart.
    ("ÅNGSTRÖM", "ångström", 1, (1, 1, 1)),
    ("cafe\u0301", "caf\u00e9", 0, (0, 1, 1)),
    # A no-break space is white space.
    ("New\u00a0York", "New York", 1, (2, 2, 2)),
    ("東京 の", "東京 の", 1, (2, 2, 2)),
    # "the" between word characters of any script is no article.
    ("théa", "théa", 1, (1, 1, 1)),
    # Words count as often as they occur on both sides.
    ("to be or to be", "to be", 0, (2, 5, 2)),
    ("no no no", "no no", 0, (2, 3, 2)),
    ("An apple a day", "apple day", 1, (2, 2, 2)),
    ("_under_score_", "underscore", 1, (1, 1, 1)),
]


@pytest.mark.parametrize("prediction, answer, exact, words", PAIRS)
def test_pairs(prediction, answer, exact, words):
    shared, predicted, expected = words
    assert len(normalize_answer(prediction).split()) == predicted
    assert len(normalize_answer(answer).split()) == expected
    assert exact_match(prediction, answer) == exact
    value = 0.0
    if shared:
        value = 2 * shared / (predicted + expected)
    assert f1(prediction, answer) == pytest.approx(value, abs=1e-12)
    assert exact_match(answer, prediction) == exact


def test_the_best_of_all_answers_counts():
    answers = {
        "1": ["Denver Broncos", "Broncos"],
        "2": ["Santa Clara", "Levi's Stadium"],
        "3": ["gold"],
        "4": ["never answered"],
    }
    predictions = {"1": "the Broncos", "2": "Stadium of Levis", "3": "blue"}
    # 1: exact. 2: shares 2 of 3 and 2 words. 3 and 4: nothing.
    assert squad_score(predictions, answers) == pytest.approx(
        {"exact_match": 25.0, "f1": 25 * (1 + 0.8)}
    )
