"""The report on the comparison: the paper's tables and figures, and ours."""

import json
import pathlib
import statistics

from matplotlib.figure import Figure
from tabulate import tabulate

from training import memory_page as page
from training import memory_plots as plots
from training.finetuning_report import percent
from training.paper_figures import paper_figures
from training.paper_figures import paper_masked_lm
from training.reproduction_figures import median_over_seeds
from training.reproduction_plan import run_path
from training.reproduction_recipe import MODELS
from training.reproduction_recipe import ReproductionRecipe
from training.run_directory import write_whole
from training.training_curves import read_curves
from training.training_curves import read_staleness

_PAPER = (
    "Rows and columns marked as the paper's are its own (Kim and Jung, 2020), "
    "of other models, data and machines: compare orders, not values."
)


def write_report(recipe: ReproductionRecipe, figures: dict) -> pathlib.Path:
    """Writes `report.html`, `.md` and `.json` and the plots.

    Args:
        recipe: whose runs have all ended.
        figures: those of `training.reproduction_figures.collect_figures`.

    Returns:
        The path of the page.
    """
    drawn = _draw(recipe)
    for name, (figure, _) in drawn.items():
        for kind in ("png", "svg"):
            figure.savefig(recipe.out / f"{name}.{kind}", dpi=150)
    tables = _tables(figures)
    size = figures["recipe"]
    notes = [
        f"{size['scale']} scale, {size['steps']:,} steps a stage, trained on "
        f"{size['corpus']}, {size['seeds']} seed(s).",
        _PAPER,
    ]
    if size["scale"] == "quick":
        notes.append("A quick run shows that all works, and nothing else.")
    write_whole(
        recipe.out / "report.md",
        "\n\n".join(
            ["# The comparison", *notes]
            + [
                f"## {title}\n\n{explanation}\n\n"
                + tabulate(
                    rows, header, tablefmt="github", disable_numparse=True
                )
                for title, explanation, header, rows in tables
            ]
        )
        + "\n",
    )
    write_whole(recipe.out / "report.json", json.dumps(figures, indent=2))
    sections = [("What was done", [page.note(text) for text in notes])]
    sections += [
        (title, [page.note(explanation), page.table(header, rows)])
        for title, explanation, header, rows in tables
    ]
    sections.append(
        (
            "Figures",
            [page.picture(figure, text) for figure, text in drawn.values()],
        )
    )
    path = recipe.out / "report.html"
    write_whole(path, page.make_page("The comparison", sections))
    return path


def _tables(figures):
    tables = [
        (
            "Perplexity and use of the memories (table 2)",
            "Held-out perplexity with its standard error over sequences, and "
            "how the held-out text uses the two memories, the lower one "
            "first. Before: right after the memory was added. Medians over "
            "the seeds.",
            *_table_2(figures),
        ),
        (
            "Orders",
            "Perplexities: the difference of the mean -ln p in nats, with the "
            "95 % interval of a bootstrap over blocks of 64 sequences, for "
            "each seed. Use: the difference in percentage points.",
            ["order", "difference", "verdict"],
            [
                [
                    row["what"],
                    "; ".join(map(_difference, row["differences"])),
                    row["verdict"],
                ]
                for row in figures["orderings"]
            ],
        ),
    ]
    if figures["fine_tuning"]:
        tables.append(
            (
                "Fine-tuning (tables 4 and 5)",
                "Dev sets, in percent, after the best epoch: with memories "
                "that learn too, and with frozen ones. Medians over the seeds.",
                *_tables_4_and_5(figures),
            )
        )
    return tables


def _table_2(figures):
    header = [
        *("model", "steps", "before", "perplexity", "other text"),
        *("top-1 used %", "KL_u", "KL_w", "the paper's: perplexity"),
        *("top-1 used %", "KL_u", "KL_w"),
    ]
    rows = []
    for key, model in figures["models"].items():
        seeds = model["seeds"]
        paper = paper_masked_lm().get(MODELS[key].in_table, "- - - - - -")
        cells = paper.split()
        rows.append(
            [
                f"{key} {model['title']}",
                f"{model['steps']:,}",
                _number(median_over_seeds(seeds, "perplexity_before")),
                f"{_number(median_over_seeds(seeds, 'perplexity'))} ± "
                f"{_number(median_over_seeds(seeds, 'standard_error'))}",
                _number(median_over_seeds(seeds, "out_of_domain_perplexity")),
                _usage(seeds, "top1_mu", 100, 1),
                _usage(seeds, "kl_u", 1, 2),
                _usage(seeds, "kl_w", 1, 2),
                *(cells[0], *cells[3:]),
            ]
        )
    return header, rows


def _tables_4_and_5(figures):
    tasks = figures["fine_tuning"]
    header, columns = ["model"], []
    for task, models in tasks.items():
        for name in next(iter(models.values()))["updated"]:
            header += [
                f"{task} {name}",
                "frozen",
                "the paper's",
                "frozen",
            ]
            columns.append((task, name))
    rows = []
    for key, model in MODELS.items():
        if not model.in_table:
            continue
        row = [f"{key} {model.title}"]
        for task, name in columns:
            ours = tasks[task][key]
            paper = paper_figures(task, "bert", frozen=True)
            for kind in ("updated", "frozen"):
                summary = ours.get(kind)
                row.append(percent(summary[name]) if summary else "-")
            for title in (model.in_table, f"{model.in_table}, memory frozen"):
                known = paper.get(title, {}).get("figures", {})
                row.append(f"{known[name]:.1f}" if name in known else "-")
        rows.append(row)
    return header, rows


def _number(value):
    return "-" if value is None else f"{value:.2f}"


def _usage(seeds, name, factor, digits):
    layers = sorted(seeds[0]["memory_usage"], key=int)
    values = [
        statistics.median(seed["memory_usage"][layer][name] for seed in seeds)
        for layer in layers
    ]
    return "/".join(f"{factor * value:.{digits}f}" for value in values) or "-"


def _difference(found):
    if isinstance(found, list):
        mean, low, high = found
        return f"{mean:+.4f} ({low:+.4f} to {high:+.4f})"
    return f"{100 * found:+.1f}"


def _draw(recipe) -> dict[str, tuple[Figure, str]]:
    """Returns figures 2 and 3 of the first seed, with captions."""
    runs = {key: str(run_path(recipe, 0, key)) for key in MODELS}
    curves = {
        f"{key} {MODELS[key].title}": stages
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
        if MODELS[key].has_memory:
            title = f"{key} {MODELS[key].title}"
            drawn[f"staleness-{key}"] = (
                plots.plot_staleness(read_staleness(run)),
                f"{title}: when slots were the best of a head for the last "
                "time (figure 2).",
            )
    return drawn
