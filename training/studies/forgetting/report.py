"""The report on teaching methods: tables and a plot."""

from collections.abc import Iterable

from training.reports.knowledge_plots import plot_forgetting
from training.studies.best_rate import GRID_SEED
from training.studies.best_rate import marked
from training.studies.forgetting.merit import kept
from training.studies.forgetting.merit import learned
from training.studies.forgetting.merit import right_after
from training.studies.forgetting.recipe import ForgettingRecipe
from training.studies.report import Report
from training.studies.report import Table
from training.studies.report import over_seeds

_BEST = (
    "The best rate is the one with the highest product of what was learned and "
    "what was kept, of those with which 95 % was learned right after it was "
    "taught; if it was with none, of all. It was chosen with the seed "
    f"{GRID_SEED}, whose figures are those of the second table alone."
)
_EDGES = (
    "A best rate that is the lowest or the highest of those that were tried is "
    "marked: rates beyond it may be better."
)


def make_report(recipe: ForgettingRecipe, findings: dict) -> Report:
    """Returns the report on the findings."""
    candidates = list(findings["candidates"].values())
    is_text = recipe.model is not None
    figure = plot_forgetting(
        {
            found["title"]: [
                (tried["kept"], tried["learned"])
                for tried in found["tried"] or [found]
            ]
            for found in candidates
        },
        of="text" if is_text else "facts",
    )
    table = _text_table if is_text else _fact_table
    best = [
        (found, marked(found["rate"], found["rates"]), found["seeds"])
        for found in candidates
    ]
    every = [
        (found, f"{tried['rate']:g}", [tried])
        for found in candidates
        for tried in found["tried"]
    ]
    return Report(
        "What models learn and forget when they are taught",
        [_summary(recipe, findings)],
        [
            Table(
                "The best learning rate of each way",
                "",
                *table(recipe, best, True),
            ),
            Table("All learning rates", "", *table(recipe, every, False)),
        ],
        {"forgetting": (figure, "What was learned, and what was kept.")},
    )


def _summary(recipe: ForgettingRecipe, findings: dict) -> str:
    if recipe.model is not None:
        return (
            f"The model of {recipe.model} was taught {recipe.text} until its "
            f"perplexity had fallen to {recipe.fall:g} of what it was, at most "
            f"{recipe.steps:,} steps of {recipe.batch_size:,} sequences; "
            f"{recipe.keep} is what it was to keep. {_BEST} {_EDGES}"
        )
    known = ", ".join(
        f"{100 * share:.2f}" for share in findings["known_before"]
    )
    return (
        f"Models with a memory that knew {known} % of {recipe.old_facts:,} "
        f"random facts were taught {recipe.new_facts:,} new ones in groups of "
        f"{recipe.group_size:,}, each until all were known, at most "
        f"{recipe.steps:,} steps. Right after is the share of the facts that "
        "are known when their group has been taught, new of those that are "
        "known at the end, old of the old ones known before that still are. "
        f"{_BEST} {_EDGES} Groups learned are those that were known "
        "completely before the last of these steps: of all seeds, and, at all "
        f"rates, of the seed {GRID_SEED}. The others were stopped by the "
        f"number of steps. Seeds: {recipe.seeds}."
    )


_Rows = list[tuple[dict, str, list[dict]]]


def _fact_table(
    recipe: ForgettingRecipe, chosen: _Rows, are_best: bool
) -> tuple[list[str], list[list[str]]]:
    rows = []
    for found, rate, seeds in chosen:
        groups = [_groups_learned(seeds, recipe.steps)]
        if are_best:
            groups.append(_groups_learned(found["tried"], recipe.steps))
        rows.append(
            [
                *(found["title"], rate, *groups),
                _percent(map(right_after, seeds)),
                _percent(map(learned, seeds)),
                _percent(map(kept, seeds)),
                over_seeds((sum(seed["steps"]) for seed in seeds), ",.0f"),
                _rows_of(seeds),
            ]
        )
    header = [
        *("what is trained", "rate", "groups learned"),
        *(["at all rates"] if are_best else []),
        *("right after %", "new %", "old %", "steps", "rows"),
    ]
    return header, rows


def _text_table(
    _: ForgettingRecipe, chosen: _Rows, are_best: bool
) -> tuple[list[str], list[list[str]]]:
    rows = []
    for found, rate, seeds in chosen:
        rows.append(
            [
                *(found["title"], rate),
                *(
                    over_seeds((seed[part][name] for seed in seeds), ".2f")
                    for part in ("new", "old")
                    for name in ("perplexity_before", "perplexity_after")
                ),
                over_seeds(
                    (100 * seed["old"]["change"] for seed in seeds), "+.2f"
                ),
                over_seeds((sum(seed["steps"]) for seed in seeds), ",.0f"),
                _rows_of(seeds),
            ]
        )
    header = [
        *("what is trained", "rate", "new before", "after", "old before"),
        *("after", "change %", "steps", "rows"),
    ]
    return header, rows


def _groups_learned(trials: list[dict], steps: int) -> str:
    """The groups that needed fewer steps than they had, of all groups."""
    taken = [group for each in trials for group in each["steps"]]
    if not taken:
        return "-"
    return f"{sum(group < steps for group in taken)} of {len(taken)}"


def _percent(shares: Iterable[float]) -> str:
    return over_seeds((100 * share for share in shares), ".2f")


def _rows_of(seeds: list[dict]) -> str:
    if "rows" not in seeds[0]:
        return "all"
    return over_seeds((seed["rows"] for seed in seeds), ",.0f")
