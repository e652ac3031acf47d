"""What teaching facts to a finished model changes, and what it does not."""

import functools
import itertools
import random
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from keras_pkm.teaching.fact_prompts import STAND_INS
from keras_pkm.teaching.fact_prompts import Fact
from keras_pkm.teaching.fact_prompts import Prompt
from keras_pkm.teaching.fact_prompts import phrasings_of
from training.facts.invented import invented
from training.measuring.asking import Asker
from training.measuring.asking import Question
from training.measuring.asking import behind
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
    document: str,
    seed: int,
) -> dict[str, dict[str, float]]:
    """Compares a model before and after it was taught facts.

    `phrasings` were taught, `asked` were not. `windows` are ids of text, and
    `document` is a text behind which facts are asked for.
    """
    rng = random.Random(seed)
    subjects = list(dict.fromkeys(fact.subject for fact in facts))
    taught = {
        fact.relation: phrasings_of(fact.relation, phrasings) for fact in facts
    }
    texts = list(itertools.chain.from_iterable(taught.values()))
    own = {(fact.subject, fact.relation) for fact in facts}
    of_other_relations = [
        Question(text, subject)
        for subject in subjects
        for relation in taught
        if (subject, relation) not in own
        for text in taught[relation]
    ]
    stored = invented()
    draw = functools.partial(_draw, before, rng)
    questions = {
        "near": draw(_pairs(sorted(_near_names(subjects)), texts)),
        "far": draw(_pairs(_far_names(subjects), texts)),
        "other": draw(of_other_relations),
        "never named": draw(_pairs(subjects, stored["never_named"])),
        "two steps": draw(_pairs(subjects, stored["two_steps"])),
        "known": [Question(text, "") for text in stored["known"]],
    }
    found = {
        kind: compare_answers(before, after, some)
        for kind, some in questions.items()
        if some
    }
    others = [fact for fact in facts if asked.get(fact.relation)]
    prompts = {
        "paraphrase": before.prompts(others, asked),
        "document": _in_a_document(before, rng, facts, taught, document),
    }
    for kind, some in prompts.items():
        if some:
            found[kind] = {
                when: float(asker.known(some).mean())
                for when, asker in (("before", before), ("after", after))
            }
    found["text"] = compare_on_text(before, after, windows)
    return found


def _pairs(names: Sequence[str], texts: Sequence[str]) -> list[Question]:
    return [Question(text, name) for name in names for text in texts]


def _draw(
    asker: Asker, rng: random.Random, questions: list[Question]
) -> list[Question]:
    rng.shuffle(questions)
    suitable = (each for each in questions if _suits(asker, each))
    return list(itertools.islice(suitable, _QUESTIONS))


def _in_a_document(
    asker: Asker,
    rng: random.Random,
    facts: Sequence[Fact],
    taught: Mapping[str, Sequence[str]],
    document: str,
) -> list[list[Prompt]]:
    """Prompts that ask for facts behind another text, as far as they fit."""
    found = []
    for fact in rng.sample(facts, min(_QUESTIONS, len(facts))):
        for text in taught[fact.relation]:
            question = Question(behind(document, text), fact.subject)
            if _suits(asker, question):
                prompt = asker.prompt(*question, fact.value)
                if len(prompt.ids) <= (asker.longest or len(prompt.ids)):
                    found.append([prompt])
                break
    return found


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
