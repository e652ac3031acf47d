"""What is asked before and after a finished model was taught."""

import random

from training.teaching.edit_measures import _draw


class Asker:
    """Its tokens join a full stop and a question mark."""

    def prompt(self, text, subject):
        if ".?" in text.replace("{subject}", subject):
            raise ValueError


def test_questions_that_do_not_suit_a_name_are_left_out():
    texts = ["Who is {subject}?", "{subject} is"]
    names = ["Sammy Jr.", "Bob"]
    found = _draw(Asker(), random.Random(0), names, texts)
    assert len(found) == 3
    assert ("Who is {subject}?", "Sammy Jr.") not in found
