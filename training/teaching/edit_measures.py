"""What teaching facts to a finished model changes, and what it does not."""

import functools
import itertools
import random
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from keras_pkm.teaching.fact_prompts import STAND_INS
from keras_pkm.teaching.fact_prompts import Fact
from keras_pkm.teaching.fact_prompts import phrasings_of
from training.facts.invented import invented
from training.measuring.asking import Asker
from training.measuring.asking import Question
from training.measuring.asking import compare_answers
from training.measuring.asking import compare_on_text

# Number of questions of each sort.
_QUESTIONS = 60


def measure_edit(
    before: Asker,
    after: Asker,
    facts: Sequence[Fact],
    phrasings: Mapping[str, Sequence[str]],
    asked: Mapping[str, Sequence[str]],
    windows: np.ndarray,
    seed: int,
) -> dict[str, dict[str, float]]:
    """Compares a model before and after it was taught facts.

    `phrasings` were taught, `asked` were not. `windows` are ids of text.
    """
    rng = random.Random(seed)
    subjects = list(dict.fromkeys(fact.subject for fact in facts))
    texts = [
        text
        for relation in dict.fromkeys(fact.relation for fact in facts)
        for text in phrasings_of(relation, phrasings)
    ]
    stored = invented()
    draw = functools.partial(_draw, before, rng)
    questions = {
        "near": draw(sorted(_near_names(subjects)), texts),
        "far": draw(_far_names(subjects), texts),
        "never named": draw(subjects, stored["never_named"]),
        "known": [Question(text, "") for text in stored["known"]],
    }
    found = {
        kind: compare_answers(before, after, some)
        for kind, some in questions.items()
        if some
    }
    others = [fact for fact in facts if asked.get(fact.relation)]
    if others:
        shares = [
            float(each.known(each.prompts(others, asked)).mean())
            for each in (before, after)
        ]
        found["paraphrase"] = dict(zip(("before", "after"), shares))
    found["text"] = compare_on_text(before, after, windows)
    return found


def _draw(
    asker: Asker,
    rng: random.Random,
    names: Sequence[str],
    texts: Sequence[str],
) -> list[Question]:
    pairs = [Question(text, name) for name in names for text in texts]
    rng.shuffle(pairs)
    suitable = (each for each in pairs if _suits(asker, each))
    return list(itertools.islice(suitable, _QUESTIONS))


def _suits(asker: Asker, question: Question) -> bool:
    """Whether a name such as "Sammy Davis Jr." joins no other sign."""
    try:
        asker.prompt(*question)
    except ValueError:
        return False
    return True


def _near_names(subjects: Sequence[str]) -> set[str]:
    """Names that share a word with a subject, or begin with all of it."""
    words = [name.split() for name in (*subjects, *STAND_INS)]
    whole = [parts for parts in words if len(parts) > 1]
    own = {part for name in subjects for part in name.split()}
    mixed = {
        " ".join([*some[:-1], other[-1]]) for some in whole for other in whole
    }
    mixed = {name for name in mixed if own & set(name.split())}
    longer = {f"{name}{end}" for name in subjects for end in ("son", "2")}
    return (mixed | longer) - set(subjects)


def _far_names(subjects: Sequence[str]) -> list[str]:
    """Names that share no word with a subject."""
    own = {part for name in subjects for part in name.split()}
    return [name for name in STAND_INS if not own & set(name.split())]
