"""The report on ways to teach a finished model: tables and a plot."""

import statistics
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence

from matplotlib.figure import Figure

from training.measuring.drawn_text import MEASURED
from training.studies.best_rate import best_rate
from training.studies.best_rate import marked
from training.studies.edits.recipe import EditsRecipe
from training.studies.report import Report
from training.studies.report import Table
from training.studies.report import over_seeds

_KINDS = {
    "other": "other relations",
    "never named": "other questions",
    "two steps": "two steps",
    "near": "near names",
    "far": "far names",
    "known": "general",
}


def best_of(tried: Sequence[dict]) -> int:
    """Returns which rate is best, by paraphrase and near names as before.

    Only the first seed has tried all of them.
    """
    first = [found["seeds"][0] for found in tried]
    return best_rate(
        [
            statistics.mean(
                group["taught"] for group in seed["each group then"]
            )
            for seed in first
        ],
        [seed["paraphrase"] * seed["same"]["near"]["same"] for seed in first],
    )


def make_report(recipe: EditsRecipe, findings: dict) -> Report:
    """Returns the report on the findings."""
    ways = list(findings["ways"].values())
    best = [(way, way["best"]) for way in ways]
    every = [(way, index) for way in ways for index in range(len(way["tried"]))]
    return Report(
        "Ways to teach facts to a finished language model",
        [_summary(recipe, ways)],
        [
            Table(
                "What is known, and what remains", "", *_knowledge(best, True)
            ),
            Table("What it costs", "", *_costs(recipe, best)),
            Table("All learning rates", "", *_knowledge(every, False)),
        ],
        {
            "edits": (
                _plot(best),
                "Other phrasings, and other questions as before.",
            )
        },
    )


def _summary(recipe: EditsRecipe, ways: list[dict]) -> str:
    untaught = [
        seed["untaught"]["taught"]
        for way in ways[:1]
        for seed in way["tried"][0]["seeds"]
    ]
    seconds = sum(
        seed["seconds"] + seed["seconds of preparing"]
        for way in ways
        for tried in way["tried"]
        for seed in tried["seeds"]
    )
    return (
        f"{recipe.model} was taught {recipe.num_facts:,} invented facts of "
        f"{recipe.relations} relations, {recipe.facts_per_subject} a subject, "
        f"in {_phrasings(recipe.taught_phrasings)}{_in_groups(recipe.groups)}, "
        f"until all were known, at most {recipe.passes} passes. It gave "
        f"{_percent(untaught)} % of the answers before. Known are the facts "
        "that are answered in each taught phrasing; paraphrase is the share of "
        f"others ({recipe.asked}) that are answered, and in a document the "
        "share of answers behind 900 characters of other text. The next "
        "columns are the shares of next tokens that are as before, and of "
        "logits that are so bit for bit: other relations of the same subjects, "
        "questions that no relation is about, two steps from a fact, names "
        "that share a part with taught ones (near), other names (far), and "
        "what models know (general). Perplexity is its change on "
        f"{MEASURED:,} tokens, drawn from half of the documents of "
        f"{recipe.text}; text to replay, and on which product keys are "
        "adapted, is drawn from the other half. The best rate is the one with "
        "the highest product of paraphrase and near names, of those "
        "with which 95 % is known right after it was taught; if it was with "
        "none, of all. The first seed tries all rates, and the others the best "
        "one, which is marked where it is the lowest or the highest that was "
        "tried. Facts in the prompt "
        "are those of the subject, as a perfect retrieval would find them; "
        "their tokens are read with each question. Teaching / one pass "
        "is the time of teaching, divided by that of a forward and a backward "
        "pass of the model over the same prompts, timed after it, both beside "
        f"other work if several processes are at work. Teaching took "
        f"{seconds / 3600:.1f} hours in all. Seeds: {recipe.seeds}."
    )


def _phrasings(count: int) -> str:
    return "one phrasing" if count == 1 else f"{count} phrasings"


def _in_groups(count: int) -> str:
    return f" and {count:,} groups" if count > 1 else ""


def _knowledge(
    chosen: list[tuple[dict, int]], are_best: bool
) -> tuple[list[str], list[list[str]]]:
    rows = []
    for way, index in chosen:
        tried = way["tried"][index]
        seeds, rate = tried["seeds"], tried["rate"]
        rates = [each["rate"] for each in way["tried"]] if are_best else [rate]
        rows.append(
            [
                way["title"],
                marked(rate, rates) if rate else "",
                _percent(seed["known"] for seed in seeds),
                _percent(seed["paraphrase"] for seed in seeds),
                _percent(seed["document"] for seed in seeds),
                *(
                    "{} / {}".format(
                        *(
                            _percent(seed["same"][kind][name] for seed in seeds)
                            for name in ("same", "bits")
                        )
                    )
                    if kind in seeds[0]["same"]
                    else "-"
                    for kind in _KINDS
                ),
                over_seeds(
                    (100 * seed["text"]["change"] for seed in seeds), "+.2f"
                ),
            ]
        )
    header = ["way", "rate", "known %", "paraphrase %", "in a document %"]
    titles = (f"{title} %" for title in _KINDS.values())
    return [*header, *titles, "perplexity %"], rows


def _costs(
    recipe: EditsRecipe, chosen: list[tuple[dict, int]]
) -> tuple[list[str], list[list[str]]]:
    rows = []
    for way, index in chosen:
        seeds = way["tried"][index]["seeds"]
        rows.append(
            [
                way["title"],
                over_seeds(
                    (seed["bytes"] / recipe.num_facts for seed in seeds), ",.0f"
                ),
                # Only gradient descent on the whole model counts them.
                over_seeds((sum(seed["steps"]) for seed in seeds), ",.0f")
                if any(sum(seed["steps"]) for seed in seeds)
                else "-",
                over_seeds((seed["seconds"] for seed in seeds), ",.0f"),
                _passes(seeds),
                over_seeds(
                    (seed["text"]["divergence"] for seed in seeds), ".4f"
                ),
                *(
                    " / ".join(
                        _percent(
                            seed["first group"][when][what] for seed in seeds
                        )
                        for when in ("then", "at the end")
                    )
                    for what in ("taught", "paraphrase")
                ),
            ]
        )
    return [
        *("way", "bytes a fact", "steps", "seconds"),
        *("teaching / one pass", "KL on text"),
        *("first group, taught %", "first group, paraphrase %"),
    ], rows


def _passes(seeds: list[dict]) -> str:
    """The time of teaching, divided by that of one pass."""
    # Facts in a prompt take no time, and older trials did not time a pass.
    if not all(seed.get("seconds of a pass") for seed in seeds):
        return "-"
    return over_seeds(
        (seed["seconds"] / seed["seconds of a pass"] for seed in seeds), ".1f"
    )


def _plot(chosen: list[tuple[dict, int]]) -> Figure:
    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    for way, index in chosen:
        found = way["tried"][index]
        # With facts of all relations, there is no other one.
        if "other" not in found["seeds"][0]["same"]:
            continue
        x = 100 * _median(found, lambda seed: seed["same"]["other"]["same"])
        y = 100 * _median(found, lambda seed: seed["paraphrase"])
        axes.scatter(x, y)
        axes.annotate(
            way["title"],
            (x, y),
            xytext=(-6 if x > 60 else 6, 0),
            textcoords="offset points",
            ha="right" if x > 60 else "left",
            va="center",
            fontsize=8,
        )
    axes.set_xlabel("Other relations of the same subjects as before (%)")
    axes.set_ylabel("Other phrasings answered (%)")
    return figure


def _median(found: dict, value: Callable[[dict], float]) -> float:
    return statistics.median(map(value, found["seeds"]))


def _percent(shares: Iterable[float]) -> str:
    return over_seeds((100 * share for share in shares), ".1f")
