"""The table of a fine-tuning run, the paper's figures beside."""

import statistics


def summarize(seeds: dict) -> dict[str, dict[str, float]]:
    """Returns median, least and largest of each figure over the seeds.

    Args:
        seeds: For each seed `"epochs"`, the figures after each, and `"best"`,
            the number of the one that counts.
    """
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
    """Returns the seed whose best epoch has the largest figure of that name.

    Args:
        seeds: As of `summarize`.
        decides: The name of a figure.
    """
    return max(seeds, key=lambda seed: _best_figures(seeds[seed])[decides])


def _best_figures(run):
    return run["epochs"][run["best"] - 1]


def format_results(results: dict) -> str:
    """Returns the figures of a run as Markdown, in percent."""
    count = len(results["seeds"])
    summary = results["summary"]
    names = list(summary)
    lines = [
        f"| model | {' | '.join(map(metric_title, names))} |",
        f"|---|{'---:|' * len(names)}",
    ]
    cells = list(map(percent, summary.values()))
    model = results["model"]
    if results["from_scratch"]:
        model += ", fresh weights"
    lines.append(f"| {model} | {' | '.join(cells)} |")
    cells = [f"{100 * results['baseline'][name]:.1f}" for name in names]
    if any(results["baseline"].values()):
        lines.append(f"| the most frequent class | {' | '.join(cells)} |")
    for model, row in results["paper"].items():
        figures = row["figures"]
        cells = [
            f"{figures[name]:.1f}" if name in figures else "-" for name in names
        ]
        lines.append(f"| the paper's {model} | {' | '.join(cells)} |")
    tables = sorted({row["table"] for row in results["paper"].values()})
    lines += [
        "",
        f"Dev sets, median (least-largest) of {count} "
        f"seed{'s' if count > 1 else ''}, in percent, after each seed's best "
        "epoch."
        + (
            " The paper's rows are its own, of other models and all training "
            f"data (table {' and '.join(map(str, tables))})."
            if tables
            else " The paper has no figures of this."
        ),
    ]
    return "\n".join(lines)


def percent(figures: dict[str, float]) -> str:
    """Returns the median of some seeds, with the least and the largest.

    These are left out where they are the same, as of one seed.
    """
    median, low, high = (
        f"{100 * figures[name]:.1f}" for name in ("median", "min", "max")
    )
    return median if low == high else f"{median} ({low}-{high})"


def metric_title(name: str) -> str:
    """Returns how tables call a metric."""
    return name.replace("matthews_correlation", "Matthews correlation")
