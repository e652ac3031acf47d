"""Exact match and F1 of answers, by the rules of SQuAD 1.1's official script.

Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text"
(2016), section 6.1.
"""

import collections
import re
import string
from collections.abc import Mapping
from collections.abc import Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b", re.UNICODE)
# ASCII punctuation alone, as in the official script.
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Lowercases, drops punctuation and articles, and joins words by spaces."""
    text = text.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def exact_match(prediction: str, answer: str) -> float:
    """Returns 1.0 if both are equal after normalization, else 0.0."""
    return float(normalize_answer(prediction) == normalize_answer(answer))


def f1(prediction: str, answer: str) -> float:
    """Returns the harmonic mean of precision and recall of words, from 0 to 1.

    It is 0 if no word is shared, even if both are empty.
    """
    predicted = normalize_answer(prediction).split()
    expected = normalize_answer(answer).split()
    shared = collections.Counter(predicted) & collections.Counter(expected)
    count = sum(shared.values())
    if count == 0:
        return 0.0
    precision = count / len(predicted)
    recall = count / len(expected)
    return 2 * precision * recall / (precision + recall)


def squad_score(
    predictions: Mapping[str, str], answers: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """Scores predictions against the best of each question's answers."""
    sums = {"exact_match": 0.0, "f1": 0.0}
    for question, right in answers.items():
        if question not in predictions:
            continue
        prediction = predictions[question]
        sums["exact_match"] += max(exact_match(prediction, a) for a in right)
        sums["f1"] += max(f1(prediction, a) for a in right)
    return {name: 100 * total / len(answers) for name, total in sums.items()}
