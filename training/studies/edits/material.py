"""Invented facts, and the questions that show what teaching them changes."""

import dataclasses
import random

from keras_pkm.teaching.fact_prompts import Fact
from training.facts.invented import invented
from training.measuring.asking import Question
from training.measuring.asking import behind
from training.studies.edits.recipe import EditsRecipe

# Number of questions of each sort.
_QUESTIONS = 120


@dataclasses.dataclass(frozen=True)
class Material:
    """What is taught and what is asked, with one seed."""

    # The groups, which are taught one after the other.
    groups: list[list[Fact]]
    # How relations are asked for while they are taught, and then.
    taught: dict[str, list[str]]
    asked: dict[str, list[str]]
    # Questions whose answers must remain as they were, by their sort.
    same: dict[str, list[Question]]

    @property
    def facts(self) -> list[Fact]:
        """All facts."""
        return [fact for group in self.groups for fact in group]

    def inside(self, document: str) -> dict[str, list[str]]:
        """The first taught phrasing of each relation, behind a text."""
        return {
            relation: [behind(document, phrasings[0])]
            for relation, phrasings in self.taught.items()
        }


def make_material(recipe: EditsRecipe, seed: int) -> Material:
    """Returns the facts and questions of a seed."""
    stored = invented()
    rng = random.Random(seed)
    names = [
        f"{first} {last}"
        for first in stored["first_names"]
        for last in stored["last_names"]
    ]
    rng.shuffle(names)
    relations = stored["relations"]
    chosen = rng.sample(sorted(relations), recipe.relations)
    each = recipe.facts_per_subject
    facts = []
    for number in range(recipe.num_facts):
        # The relations of a subject follow each other.
        subject = names[number // each]
        relation = chosen[(number // each + number % each) % len(chosen)]
        value = rng.choice(relations[relation]["values"])
        facts.append(Fact(subject, relation, value))
    subjects = list(dict.fromkeys(fact.subject for fact in facts))
    asked = {name: of[recipe.asked] for name, of in relations.items()}

    def questions(people: list[str], texts: list[str]) -> list[Question]:
        pairs = [Question(text, who) for who in people for text in texts]
        return rng.sample(pairs, min(_QUESTIONS, len(pairs)))

    known = {(fact.subject, fact.relation) for fact in facts}
    others = [
        Question(text, subject)
        for subject in subjects
        for relation, texts in asked.items()
        if (subject, relation) not in known
        for text in texts
    ]
    parts = {part for subject in subjects for part in subject.split()}
    rest = names[len(subjects) :]
    of_taught = [text for name in chosen for text in asked[name]]
    near = [name for name in rest if parts & set(name.split())]
    far = [name for name in rest if not parts & set(name.split())]
    same = {
        "other": rng.sample(others, min(_QUESTIONS, len(others))),
        "never named": questions(subjects, stored["never_named"]),
        "two steps": questions(subjects, stored["two_steps"]),
        "near": questions(near[:_QUESTIONS], of_taught),
        "far": questions(far[:_QUESTIONS], of_taught),
        "known": [Question(text, "") for text in stored["known"]],
    }
    return Material(
        groups=_cut(facts, recipe.groups),
        taught={
            name: of["taught"][: recipe.taught_phrasings]
            for name, of in relations.items()
        },
        asked=asked,
        # With many subjects, every name shares a part with one.
        same={kind: some for kind, some in same.items() if some},
    )


def _cut(facts: list[Fact], count: int) -> list[list[Fact]]:
    """Cuts facts into groups of about the same size."""
    places = [len(facts) * number // count for number in range(count + 1)]
    return [facts[a:b] for a, b in zip(places, places[1:])]
