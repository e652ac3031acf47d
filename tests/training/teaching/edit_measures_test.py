"""What is asked before and after a finished model was taught."""

import random

import numpy as np

from keras_pkm.teaching.fact_prompts import Fact
from keras_pkm.teaching.fact_prompts import Prompt
from training.measuring.asking import Question
from training.teaching import edit_measures
from training.teaching.edit_measures import measure_edit

PHRASINGS = {"home": ["{subject} lives in"], "work": ["{subject} is a"]}
FACTS = [
    Fact("Ann Lee", "home", "Rome"),
    Fact("Bob Ray", "home", "Oslo"),
    Fact("Bob Ray", "work", "baker"),
]
DOCUMENT = "some words " * 200
WINDOWS = np.ones((2, 6), "int32")
KINDS = ("near", "far", "other", "never named", "two steps", "known")


class Asker:
    """Its tokens are words; a full stop and a question mark are one."""

    def __init__(self, share=0.0, longest=None):
        self.share, self.longest = share, longest
        self.asked = []

    def prompt(self, text, subject, value=""):
        words = text.replace("{subject}", subject)
        if ".?" in words:
            raise ValueError
        ids = [*words.split(), *value.split()]
        return Prompt(ids, (subject,), 0, len(words.split()))

    def prompts(self, facts, phrasings):
        return [
            [
                self.prompt(text, fact.subject, fact.value)
                for text in phrasings[fact.relation]
            ]
            for fact in facts
        ]

    def known(self, prompts):
        return np.full(len(prompts), self.share)

    def logits(self, questions):
        self.asked.append(questions)
        return np.zeros((len(questions), 2))

    def read(self, windows):
        yield np.zeros((*windows.shape, 5), "float32")


def test_questions_that_do_not_suit_a_name_are_left_out():
    questions = [
        Question(text, name)
        for text in ("Who is {subject}?", "{subject} is")
        for name in ("Sammy Jr.", "Bob")
    ]
    left_out = questions[0]
    found = edit_measures._draw(Asker(), random.Random(0), questions)
    assert len(found) == 3 and left_out not in found


def test_what_is_measured():
    before, after = Asker(0.0), Asker(1.0)
    asked = {"home": ["the home of {subject} is"]}
    found = measure_edit(
        before, after, FACTS, PHRASINGS, asked, WINDOWS, DOCUMENT, seed=0
    )
    assert set(found) == {*KINDS, "paraphrase", "document", "text"}
    assert found["document"] == found["paraphrase"] == {"before": 0, "after": 1}
    assert found["text"]["tokens"] == 12
    questions = dict(zip(KINDS, before.asked, strict=True))
    # Nobody has taught what Ann Lee is.
    assert questions["other"] == [("{subject} is a", "Ann Lee")]
    named = {
        kind: {name for _, name in some} for kind, some in questions.items()
    }
    assert named["two steps"] == {"Ann Lee", "Bob Ray"}
    assert not {"Ann Lee", "Bob Ray"} & named["near"]


def test_a_document_that_is_too_long_for_the_model():
    askers = Asker(longest=60), Asker(longest=60)
    found = measure_edit(
        *askers, FACTS, PHRASINGS, {}, WINDOWS, DOCUMENT, seed=0
    )
    assert "document" not in found and "paraphrase" not in found
