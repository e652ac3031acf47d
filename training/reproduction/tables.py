"""The tables of the comparison: the paper's figures, and ours."""

import dataclasses
import statistics

from training.finetuning.results import metric_title
from training.finetuning.results import percent
from training.reports.paper import paper_figures
from training.reports.paper import paper_masked_lm
from training.reproduction.recipe import MODELS


@dataclasses.dataclass(frozen=True)
class Table:
    """Text in cells.

    Attributes:
        title: What it shows.
        explanation: Of its columns.
        header: The columns.
        rows: The cells.
    """

    title: str
    explanation: str
    header: list[str]
    rows: list[list[str]]


def make_tables(figures: dict) -> list[Table]:
    """Returns the comparison's tables.

    Args:
        figures: those of `training.reproduction.numbers.collect_figures`.
    """
    tables = [_table_2(figures), _orders(figures)]
    if figures["fine_tuning"]:
        tables.append(_tables_4_and_5(figures))
    return tables


def _table_2(figures):
    rows = []
    for key, model in figures["models"].items():
        seeds = model["seeds"]
        paper = paper_masked_lm().get(MODELS[key].in_table, "- - - - - -")
        cells = paper.split()
        usages = [seed["memory_usage"] for seed in seeds]
        rows.append(
            [
                f"{key} {model['title']}",
                f"{model['steps']:,}",
                _over_seeds([seed["perplexity_before"] for seed in seeds]),
                _over_seeds([seed["perplexity"] for seed in seeds])
                + " ± "
                + _middle([seed["standard_error"] for seed in seeds]),
                _over_seeds(
                    [seed.get("out_of_domain_perplexity") for seed in seeds]
                ),
                _by_layer(usages, lambda found: 100 * found["top1_mu"], 1),
                _by_layer(usages, lambda found: found["kl_u"], 2),
                _by_layer(usages, lambda found: found["kl_w"], 2),
                _by_layer(
                    [seed["stale"] for seed in seeds],
                    lambda share: 100 * share,
                    1,
                ),
                *(cells[0], *cells[3:]),
            ]
        )
    return Table(
        "Perplexity and use of the memories (table 2)",
        "Held-out perplexity with its standard error over sequences, and how "
        "the held-out text uses the memories, the lower one first. Before: "
        "right after the memory was added. Stale: slots that were the best of "
        "no head in the last half of the training, in the part of the "
        "held-out text that is read meanwhile. Medians over the seeds, with "
        "the least and the greatest where there are several.",
        [
            *("model", "steps", "before", "perplexity", "other text"),
            *("top-1 used %", "KL_u", "KL_w", "stale %"),
            *("the paper's: perplexity", "top-1 used %", "KL_u", "KL_w"),
        ],
        rows,
    )


def _orders(figures):
    return Table(
        "Orders",
        "Perplexities: the difference of the mean -ln p in nats, with the 95 % "
        "interval of a bootstrap over blocks of 64 sequences, for each seed. "
        "Use: the difference in percentage points. First perplexities, right "
        "after the memory was added: the difference in nats.",
        ["order", "difference", "verdict"],
        [
            [
                row["what"],
                "; ".join(
                    _difference(row["kind"], difference)
                    for difference in row["differences"]
                ),
                row["verdict"],
            ]
            for row in figures["orderings"]
        ],
    )


def _tables_4_and_5(figures):
    tasks = figures["fine_tuning"]
    header, columns = ["model"], []
    for task, models in tasks.items():
        for name in next(iter(models.values()))["updated"]:
            title = f"{task} {metric_title(name)}"
            header += [title, "frozen", "the paper's", "frozen"]
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
    return Table(
        "Fine-tuning (tables 4 and 5)",
        "Dev sets, in percent, after the best epoch: with memories that learn "
        "too, and with frozen ones. Medians over the seeds, with the least and "
        "the greatest where they differ.",
        header,
        rows,
    )


def _over_seeds(values, digits=2):
    if None in values:
        return "-"
    found = _middle(values, digits)
    if len(values) > 1:
        found += f" ({min(values):.{digits}f} to {max(values):.{digits}f})"
    return found


def _middle(values, digits=2):
    return f"{statistics.median(values):.{digits}f}"


def _by_layer(seeds, figure, digits):
    return (
        " / ".join(
            _over_seeds([figure(seed[layer]) for seed in seeds], digits)
            for layer in sorted(seeds[0], key=int)
        )
        or "-"
    )


def _difference(kind, found):
    if kind == "perplexity":
        mean, low, high = found
        return f"{mean:+.4f} ({low:+.4f} to {high:+.4f})"
    return f"{100 * found:+.1f}" if kind == "use" else f"{found:+.4f}"
