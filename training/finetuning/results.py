"""The results of a fine-tuning run, and their table beside the paper's."""

import statistics

from training.finetuning.kind import FinetuningKind
from training.finetuning.recipe import FinetuningRecipe
from training.loading.pretrained_model import PretrainedModel
from training.reports.markdown import markdown_table
from training.reports.paper import paper_figures
from training.runs.run_directory import RunDirectory


def make_results(
    recipe: FinetuningRecipe,
    pretrained: PretrainedModel,
    kind: FinetuningKind,
    run: RunDirectory,
    seeds: dict[int, dict],
) -> dict:
    """Returns the results of a run, serializable as JSON."""
    best = run.seed(best_seed(seeds, kind.decides)).best
    return {
        "task": recipe.task,
        "model": recipe.model,
        "family": pretrained.family.name,
        "from_scratch": recipe.from_scratch,
        "memory_layers": list(pretrained.backbone.memory_layers),
        "memory_block": pretrained.backbone.memory_block,
        "freeze": list(recipe.freeze),
        "classes": None if recipe.is_squad else list(recipe.glue_task.classes),
        "texts": 1 if recipe.is_squad else len(recipe.glue_task.columns),
        "best_model": run.name_of(best),
        "baseline": kind.baseline,
        "seeds": seeds,
        "summary": summarize(seeds),
        "paper": paper_figures(
            recipe.task, pretrained.family.name, bool(recipe.freeze)
        ),
    }


def summarize(seeds: dict) -> dict[str, dict[str, float]]:
    """Returns median, smallest and largest of each figure over the seeds."""
    best = [_best_figures(run) for run in seeds.values()]
    return {
        name: {
            "median": statistics.median(figures[name] for figures in best),
            "min": min(figures[name] for figures in best),
            "max": max(figures[name] for figures in best),
        }
        for name in best[0]
        if not name.endswith("loss")
    }


def best_seed(seeds: dict, decides: str) -> int:
    """Returns the seed whose best epoch has the largest figure of that name."""
    return max(seeds, key=lambda seed: _best_figures(seeds[seed])[decides])


def _best_figures(run: dict) -> dict[str, float]:
    return run["epochs"][run["best"] - 1]


def format_results(results: dict) -> str:
    """Returns the figures of a run as Markdown, in percent."""
    summary = results["summary"]
    names = list(summary)
    model = results["model"]
    if results["from_scratch"]:
        model += ", fresh weights"
    rows = [[model, *map(percent, summary.values())]]
    if any(results["baseline"].values()):
        cells = [f"{100 * results['baseline'][name]:.1f}" for name in names]
        rows.append(["the most frequent class", *cells])
    for model, row in results["paper"].items():
        figures = row["figures"]
        cells = [
            f"{figures[name]:.1f}" if name in figures else "-" for name in names
        ]
        rows.append([f"the paper's {model}", *cells])
    table = markdown_table(["model", *map(metric_title, names)], rows)
    return f"{table}\n\n{_explanation(results)}"


def _explanation(results: dict) -> str:
    count = len(results["seeds"])
    text = (
        f"Dev sets, median (least-largest) of {count} "
        f"seed{'s' if count > 1 else ''}, in percent, after each seed's best "
        "epoch."
    )
    tables = sorted({row["table"] for row in results["paper"].values()})
    if not tables:
        return f"{text} The paper has no figures of this."
    return (
        f"{text} The paper's rows are its own, of other models and all "
        f"training data (table {' and '.join(map(str, tables))})."
    )


def percent(figures: dict[str, float]) -> str:
    """Returns the median over seeds, with the smallest and the largest figure.

    The range is left out if both are the same, as with a single seed.
    """
    median, low, high = (
        f"{100 * figures[name]:.1f}" for name in ("median", "min", "max")
    )
    return median if low == high else f"{median} ({low}-{high})"


def metric_title(name: str) -> str:
    """Returns the name of a metric in tables."""
    return name.replace("matthews_correlation", "Matthews correlation")
