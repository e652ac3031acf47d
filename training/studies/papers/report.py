"""The report on a paper's comparison: its tables and figures, and ours."""

from matplotlib.figure import Figure

from training.pretraining.logs import read_curves
from training.pretraining.logs import read_staleness
from training.reports import plots
from training.studies.papers.recipe import ReproductionRecipe
from training.studies.papers.tables import make_tables
from training.studies.report import Report


def make_report(recipe: ReproductionRecipe, findings: dict) -> Report:
    """Returns the report on the findings."""
    return Report(
        "The comparison",
        _notes(findings),
        make_tables(findings),
        _draw(recipe),
    )


def _notes(figures: dict) -> list[str]:
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


def _count_seeds(models: dict[str, dict]) -> str:
    """Says how many seeds the models have, by their letters."""
    counts: dict[int, list[str]] = {}
    for key, model in models.items():
        counts.setdefault(len(model["seeds"]), []).append(key)
    if len(counts) == 1:
        return f"{next(iter(counts))} each"
    return ", ".join(
        f"{count} of {' '.join(keys)}" for count, keys in counts.items()
    )


def _draw(recipe: ReproductionRecipe) -> dict[str, tuple[Figure, str]]:
    """Figures 2 and 3 of the first seed, with captions."""
    roots = {key: str(recipe.pretraining(0, key).root) for key in recipe.models}
    curves = {
        f"{key} {recipe.models[key].title}": stages
        for key, run in roots.items()
        for stages in read_curves(run).values()
    }
    drawn = {
        "curves": (
            plots.plot_curves(curves),
            "Perplexity while training, each from the start of its own stage "
            "(figure 3).",
        )
    }
    for key, run in roots.items():
        if recipe.models[key].has_memory:
            title = f"{key} {recipe.models[key].title}"
            drawn[f"staleness-{key}"] = (
                plots.plot_staleness(read_staleness(run)),
                f"{title}: when slots were the best of a head for the last "
                "time (figure 2).",
            )
    return drawn
