"""The report on a comparison of teaching methods: Markdown, JSON, a plot."""

import shlex
import statistics

from keras_pkm.files.whole_files import replacing_file
from keras_pkm.files.whole_files import write_whole
from training.forgetting.directory import ForgettingDirectory
from training.forgetting.findings import kept
from training.forgetting.findings import learned
from training.forgetting.plan import plan_jobs
from training.forgetting.recipe import ForgettingRecipe
from training.reports.knowledge_plots import plot_forgetting
from training.reports.markdown import markdown_table
from training.runs.files import write_json

_EDGES = (
    "A best rate that is the lowest or the highest of those that were tried is "
    "marked: rates beyond it may be better."
)


def write_report(recipe: ForgettingRecipe, findings: dict) -> None:
    """Writes `report.md`, `report.json` and the plot."""
    directory = ForgettingDirectory(recipe.out)
    contestants = list(findings["contestants"].values())
    is_text = recipe.model is not None
    figure = plot_forgetting(
        {
            found["title"]: [
                (tried["kept"], tried["learned"]) for tried in found["tried"]
            ]
            for found in contestants
        },
        of="text" if is_text else "facts",
    )
    for kind in ("png", "svg"):
        with replacing_file(directory.plot(kind)) as path:
            figure.savefig(path, format=kind, dpi=150)
    table = _text_table if is_text else _fact_table
    commands = [
        shlex.join(["python", f"training/{job.script}", *job.args])
        for job in plan_jobs(recipe)
    ]
    lines = [
        "# What models learn and forget when they are taught",
        _summary(recipe, findings),
        "![What was learned and what was kept](forgetting.png)",
        "## The best learning rate of each way",
        table(recipe, [(found, found["best"]) for found in contestants], True),
        "## All learning rates",
        table(
            recipe,
            [
                (found, index)
                for found in contestants
                for index in range(len(found["tried"]))
            ],
            False,
        ),
        "## Jobs",
        "\n".join(["```shell", *commands, "```"]),
    ]
    write_json(directory.numbers, findings)
    write_whole(directory.table, "\n\n".join(lines) + "\n")


def _summary(recipe, findings):
    if recipe.model is not None:
        return (
            f"The model of {recipe.model} was taught {recipe.text} until its "
            f"perplexity had fallen to {recipe.fall:g} of what it was, at most "
            f"{recipe.steps:,} steps of {recipe.batch_size:,} sequences; "
            f"{recipe.keep} is what it was to keep. The best rate is the one "
            "that changed this least, of those with which the first text's "
            "perplexity fell as far; if it did with none, the one with the "
            "highest product of what was learned and what was kept. " + _EDGES
        )
    known = ", ".join(
        f"{100 * share:.2f}" for share in findings["known_before"]
    )
    return (
        f"Models with a memory that knew {known} % of {recipe.old_facts:,} "
        f"random facts were taught {recipe.new_facts:,} new ones in groups of "
        f"{recipe.group_size:,}, each until all were known, at most "
        f"{recipe.steps:,} steps. New is the share of the new facts that is "
        "known at the end, old that of the old ones known before that still "
        "is. The best rate is the one with the highest product of both, by "
        f"these medians. {_EDGES} Groups learned are those that were known "
        "completely before the last of these steps, with all seeds, at the "
        "rate of the row and at all rates: the others were stopped by the "
        f"number of steps. Seeds: {recipe.seeds}."
    )


def _fact_table(recipe, chosen, are_best):
    rows = []
    for found, index in chosen:
        tried = found["tried"][index]
        groups = [_groups_learned([tried], recipe.steps)]
        if are_best:
            groups.append(_groups_learned(found["tried"], recipe.steps))
        rows.append(
            [
                found["title"],
                _rate(found, index, are_best),
                *groups,
                _percent(map(learned, tried["seeds"])),
                _percent(map(kept, tried["seeds"])),
                _middle(
                    (sum(seed["steps"]) for seed in tried["seeds"]), ",.0f"
                ),
                _rows_of(tried["seeds"]),
            ]
        )
    header = [
        *("what is trained", "rate", "groups learned"),
        *(["at all rates"] if are_best else []),
        *("new %", "old %", "steps", "rows"),
    ]
    return markdown_table(header, rows)


def _text_table(_, chosen, are_best):
    rows = []
    for found, index in chosen:
        seeds = found["tried"][index]["seeds"]
        rows.append(
            [
                found["title"],
                _rate(found, index, are_best),
                *(
                    _middle((seed[part][name] for seed in seeds), ".2f")
                    for part in ("new", "old")
                    for name in ("perplexity_before", "perplexity_after")
                ),
                _middle(
                    (100 * seed["old"]["change"] for seed in seeds), "+.2f"
                ),
                _middle((sum(seed["steps"]) for seed in seeds), ",.0f"),
                _rows_of(seeds),
            ]
        )
    header = [
        *("what is trained", "rate", "new before", "after", "old before"),
        *("after", "change %", "steps", "rows"),
    ]
    return markdown_table(header, rows)


def _rate(found, index, is_best):
    """The rate; of a best one also whether it is at the edge of its grid."""
    rates = [tried["rate"] for tried in found["tried"]]
    cell = f"{rates[index]:g}"
    if not is_best or len(rates) == 1:
        return cell
    edges = {min(rates): " (lowest)", max(rates): " (highest)"}
    return cell + edges.get(rates[index], "")


def _groups_learned(tried, steps):
    """The groups that needed fewer steps than they had, of all groups."""
    taken = [
        group
        for each in tried
        for seed in each["seeds"]
        for group in seed["steps"]
    ]
    return f"{sum(group < steps for group in taken)} of {len(taken)}"


def _percent(shares):
    return _middle((100 * share for share in shares), ".2f")


def _rows_of(seeds):
    if "rows" not in seeds[0]:
        return "all"
    return _middle((seed["rows"] for seed in seeds), ",.0f")


def _middle(values, style):
    """The median, with the range if there are several."""
    values = list(values)
    middle = format(statistics.median(values), style)
    if len(values) == 1:
        return middle
    return f"{middle} ({min(values):{style}}-{max(values):{style}})"
