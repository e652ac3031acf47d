"""The report on the comparison: the paper's tables and figures, and ours."""

import pathlib
import shlex

from matplotlib.figure import Figure

from keras_pkm.files.whole_files import write_whole
from training.pretraining.logs import read_curves
from training.pretraining.logs import read_staleness
from training.reports import html_page as page
from training.reports import plots
from training.reports.markdown import markdown_table
from training.reproduction.comparison_directory import ComparisonDirectory
from training.reproduction.plan import plan_jobs
from training.reproduction.recipe import ReproductionRecipe
from training.reproduction.tables import make_tables
from training.runs.files import write_json


def write_report(recipe: ReproductionRecipe, figures: dict) -> pathlib.Path:
    """Writes `report.html`, `.md` and `.json` and the plots."""
    directory = ComparisonDirectory(recipe.out)
    drawn = _draw(recipe)
    for name, (figure, _) in drawn.items():
        for kind in ("png", "svg"):
            figure.savefig(directory.plot(name, kind), dpi=150)
    tables, notes = make_tables(figures), _notes(figures)
    commands = [
        shlex.join(["python", f"training/{job.script}", *job.args])
        for job in plan_jobs(recipe)
    ]
    markdown = ["# The comparison", *notes]
    sections = [("What was done", [page.note(text) for text in notes])]
    for table in tables:
        rows = markdown_table(table.header, table.rows)
        markdown += [f"## {table.title}", table.explanation, rows]
        parts = [
            page.note(table.explanation),
            page.table(table.header, table.rows),
        ]
        sections.append((table.title, parts))
    markdown += ["## Commands", "\n".join(["```shell", *commands, "```"])]
    sections += [
        (
            "Figures",
            [page.picture(figure, text) for figure, text in drawn.values()],
        ),
        ("Commands", [page.commands(commands)]),
    ]
    write_whole(directory.table, "\n\n".join(markdown) + "\n")
    write_json(directory.numbers, figures)
    write_whole(directory.page, page.make_page("The comparison", sections))
    return directory.page


def _notes(figures):
    size = figures["recipe"]
    notes = [
        f"{size['scale']} scale, {size['steps']:,} steps a stage, trained on "
        f"{size['corpus']}. Seeds: {_count_seeds(figures['models'])}.",
        f"Orders, and figures marked as the paper's, are those of "
        f"{size['paper']}, of other models, data and machines: compare orders, "
        "not values.",
    ]
    if size["scale"] == "quick":
        notes.append("A quick run shows that all works, and nothing else.")
    seeds = [
        seed for model in figures["models"].values() for seed in model["seeds"]
    ]
    fewest = min(
        usage["top1_reads"] / seed["num_slots"]
        for seed in seeds
        for usage in seed["memory_usage"].values()
    )
    notes.append(
        f"{seeds[0]['predicted_tokens']:,} held-out tokens were predicted. All "
        f"that were not padding have read a memory at least {fewest:,.1f} "
        "times a slot (top-1 reads)."
        + ("" if fewest >= 5 else " Below five, use is underrated.")
    )
    return notes


def _count_seeds(models):
    """Says how many seeds the models have, by their letters."""
    counts = {}
    for key, model in models.items():
        counts.setdefault(len(model["seeds"]), []).append(key)
    if len(counts) == 1:
        return f"{next(iter(counts))} each"
    return ", ".join(
        f"{count} of {' '.join(keys)}" for count, keys in counts.items()
    )


def _draw(recipe) -> dict[str, tuple[Figure, str]]:
    """Returns figures 2 and 3 of the first seed, with captions."""
    directory = ComparisonDirectory(recipe.out)
    runs = {
        key: str(directory.pretraining(0, key).root) for key in recipe.models
    }
    curves = {
        f"{key} {recipe.models[key].title}": stages
        for key, run in runs.items()
        for stages in read_curves(run).values()
    }
    drawn = {
        "curves": (
            plots.plot_curves(curves),
            "Perplexity while training, each from the start of its own stage "
            "(figure 3).",
        )
    }
    for key, run in runs.items():
        if recipe.models[key].has_memory:
            title = f"{key} {recipe.models[key].title}"
            drawn[f"staleness-{key}"] = (
                plots.plot_staleness(read_staleness(run)),
                f"{title}: when slots were the best of a head for the last "
                "time (figure 2).",
            )
    return drawn
