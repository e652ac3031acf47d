"""Ways to teach facts to a finished language model, and what they change."""

import functools
import pathlib
import random
import time

import keras
import numpy as np

from keras_pkm.teaching.fact_prompts import Fact
from training.corpora.corpus import open_corpus
from training.corpora.corpus import split_documents
from training.measuring.asking import Asker
from training.measuring.asking import Question
from training.measuring.asking import compare_logits
from training.measuring.asking import compare_on_text
from training.measuring.drawn_text import draw_documents
from training.measuring.drawn_text import draw_windows
from training.measuring.drawn_text import ids_of
from training.measuring.drawn_text import is_as_long
from training.runs.files import read_json
from training.runs.user_error import UserError
from training.studies.edits.material import Material
from training.studies.edits.material import make_material
from training.studies.edits.recipe import EditsRecipe
from training.studies.edits.report import best_of
from training.studies.edits.report import make_report
from training.studies.edits.ways import WAYS
from training.studies.edits.ways import Start
from training.studies.edits.ways import Teaching
from training.studies.edits.ways import time_a_pass
from training.studies.jobs import Job
from training.studies.report import Report
from training.studies.study import Study
from training.teaching.finished_model import is_finished
from training.teaching.finished_model import load_finished

# Facts that are asked for in a document, and of the untaught model.
_ASKED = 200


class EditsStudy(Study):
    """Ways to teach facts to a finished language model, and what they change.

    The first seed tries all learning rates of a way, the others its best one.

    - `trials/`: the figures of each way, learning rate and seed.
    """

    name = "edits"
    recipe_type = EditsRecipe
    may_change = ("out", "ways", "seeds", "processes")
    recipe: EditsRecipe

    def trial(self, name: str) -> pathlib.Path:
        """Returns the file of the figures of a trial."""
        return self.root / "trials" / f"{name}.json"

    @property
    def seeds(self) -> range:
        """The seeds."""
        first = self.recipe.first_seed
        return range(first, first + self.recipe.seeds)

    def rates(self, key: str) -> tuple[float, ...]:
        """Returns the learning rates to try with a way."""
        field = WAYS[key].rates_field
        rates = getattr(self.recipe, field) if field else (0.0,)
        # The middle one of three.
        return rates[len(rates) // 2 :][:1] if self.recipe.quick else rates

    def check_inputs(self) -> None:
        """Checks the model and the text."""
        if not is_finished(self.recipe.model, is_plain=True):
            raise UserError(
                "--model must be a causal language model without a memory, "
                f"received '{self.recipe.model}'"
            )
        open_corpus(self.recipe.text)
        for path in (self.root / "trials").glob("*.json"):
            tokens = read_json(path, "--out")["text"].get("tokens", 0)
            if not is_as_long(tokens):
                raise UserError(
                    f"--out must have trials of this version, but '{path}' was "
                    "measured on other text: delete it, and repeat the command"
                )

    def jobs(self) -> list[Job]:
        """Returns a job for each rate with the first seed, and each other seed.

        Each of the others needs those of its way's rates.
        """
        first, *others = self.seeds
        rates = {key: self.rates(key) for key in self.recipe.ways}
        jobs = [
            self.study_job(
                f"{WAYS[key].title}{f' ({rate:g})' if rate else ''}, "
                f"seed {first}",
                _name(key, first, rate),
                self.trial(_name(key, first, rate)),
                functools.partial(try_way, self.recipe, key, rate, first),
            )
            for key in self.recipe.ways
            for rate in rates[key]
        ]
        return jobs + [
            self.study_job(
                f"{WAYS[key].title}, seed {seed}",
                _name(key, seed),
                self.trial(_name(key, seed)),
                functools.partial(self.try_best, key, seed),
                needs=tuple(
                    self.trial(_name(key, first, rate)) for rate in rates[key]
                ),
            )
            for seed in others
            for key in self.recipe.ways
        ]

    def try_best(self, key: str, seed: int) -> dict:
        """Tries the best learning rate of a way, with another seed."""
        tried = self._tried(key)
        return try_way(self.recipe, key, tried[best_of(tried)]["rate"], seed)

    def collect(self) -> dict:
        """Reads the figures of all jobs."""
        ways = {}
        for key in self.recipe.ways:
            tried = self._tried(key)
            best = best_of(tried)
            tried[best]["seeds"] += [
                read_json(self.trial(_name(key, seed)), "--out")
                for seed in self.seeds[1:]
            ]
            ways[key] = {
                "title": WAYS[key].title,
                "tried": tried,
                "best": best,
            }
        return {"ways": ways}

    def _tried(self, key: str) -> list[dict]:
        """The figures of all learning rates of a way, with the first seed."""
        first = self.seeds[0]
        return [
            {
                "rate": rate,
                "seeds": [
                    read_json(self.trial(_name(key, first, rate)), "--out")
                ],
            }
            for rate in self.rates(key)
        ]

    def report(self, findings: dict) -> Report:
        """Returns the report on the findings."""
        return make_report(self.recipe, findings)


def _name(key: str, seed: int, rate: float | None = None) -> str:
    """A trial's name: that with a way's best rate has none of its own."""
    return f"{key}{'' if rate is None else f'-rate-{rate:g}'}-seed-{seed}"


def try_way(recipe: EditsRecipe, key: str, rate: float, seed: int) -> dict:
    """Teaches a model in one way, and measures what has changed."""
    material = make_material(recipe, seed)
    before = Asker(load_finished(recipe.model))
    # No document is both measured and trained on.
    trained, measured = map(
        draw_documents, split_documents(open_corpus(recipe.text), 0.5)
    )
    half = "each half of the documents of --text"
    ids = ids_of(measured, before.tokenize, half)
    windows = draw_windows(ids, before.longest)
    text = ids_of(trained, before.tokenize, half)
    document = " ".join(" ".join(measured).split())
    keras.utils.set_random_seed(seed)
    start = Start(
        load_finished(recipe.model),
        material.taught,
        recipe.passes,
        " ".join(trained),
        text,
        seed,
    )
    began = time.perf_counter()
    teaching = WAYS[key].begin(start, rate)
    preparing = time.perf_counter() - began
    after = Asker(teaching.task)
    found_then = []
    steps, seconds = [], 0.0
    for group in material.groups:
        began = time.perf_counter()
        steps.append(teaching.teach(group))
        seconds += time.perf_counter() - began
        found_then.append(_known(after, teaching, group, material))
    last = found_then[0]
    if len(material.groups) > 1:
        last = _known(after, teaching, material.groups[0], material)
    facts = material.facts
    some = random.Random(seed).sample(facts, min(_ASKED, len(facts)))
    shares = _shares(after, teaching, facts, material.taught)
    same = {
        kind: compare_logits(
            before.logits(questions),
            after.logits(_asked(teaching, questions)),
        )
        for kind, questions in material.same.items()
    }
    size = teaching.size()
    return {
        "rate": rate,
        "taught": float(shares.mean()),
        "known": float((shares == 1).mean()),
        "paraphrase": float(
            _shares(after, teaching, facts, material.asked).mean()
        ),
        "document": float(
            _shares(after, teaching, some, material.inside(document)).mean()
        ),
        "each group then": found_then,
        "untaught": _known(before, None, some, material),
        "first group": {
            "then": found_then[0],
            "at the end": last,
        },
        "same": same,
        "text": compare_on_text(before, after, windows),
        "bytes": size,
        "steps": steps,
        "seconds": seconds,
        "seconds of preparing": preparing,
        "seconds of a pass": (
            time_a_pass(before, facts, material.taught) if size else None
        ),
    }


def _known(
    asker: Asker,
    teaching: Teaching | None,
    facts: list[Fact],
    material: Material,
) -> dict[str, float]:
    """The shares of the phrasings in which facts are known."""
    sets = {"taught": material.taught, "paraphrase": material.asked}
    return {
        name: float(_shares(asker, teaching, facts, phrasings).mean())
        for name, phrasings in sets.items()
    }


def _shares(
    asker: Asker,
    teaching: Teaching | None,
    facts: list[Fact],
    phrasings: dict[str, list[str]],
) -> np.ndarray:
    """The share of each fact's phrasings that is answered."""
    prompts = []
    for fact in facts:
        before = teaching.before(fact.subject) if teaching else ""
        texts = [before + text for text in phrasings[fact.relation]]
        prompts += asker.prompts([fact], {fact.relation: texts})
    return asker.known(prompts)


def _asked(teaching: Teaching, questions: list[Question]) -> list[Question]:
    """The questions as the taught model gets them."""
    return [
        Question(teaching.before(subject) + text, subject)
        for text, subject in questions
    ]
