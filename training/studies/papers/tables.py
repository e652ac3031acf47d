"""The tables of the comparison: the paper's figures, and ours."""

import statistics
from collections.abc import Callable
from typing import Any

from training.finetuning.results import metric_title
from training.finetuning.results import percent
from training.reports.paper import paper_figures
from training.reports.paper import paper_masked_lm
from training.studies.report import Table
from training.studies.report import over_seeds


def make_tables(figures: dict) -> list[Table]:
    """Returns the comparison's tables."""
    tables = [_table_2(figures), _orders(figures)]
    if figures["fine_tuning"]:
        tables.append(_tables_4_and_5(figures))
    return tables


def _table_2(figures: dict) -> Table:
    models = figures["models"].values()
    causal = any(model["seeds"][0]["bits_per_byte"] for model in models)
    columns = _causal_columns if causal else _masked_columns
    rows = [
        {
            "model": f"{key} {model['title']}",
            "steps": f"{model['steps']:,}",
            **columns(model),
        }
        for key, model in figures["models"].items()
    ]
    return Table(
        "Perplexity and use of the memories (table 2)",
        (_CAUSAL if causal else _MASKED) + " " + _USE,
        list(rows[0]),
        [list(row.values()) for row in rows],
    )


_MASKED = (
    "Held-out perplexity with its standard error over sequences, and how the "
    "held-out text uses the memories, the lower one first. Before: right after "
    "the memory was added."
)
_CAUSAL = (
    "Held-out perplexity for each token with its standard error over "
    "sequences, bits for each byte, training speed, and how the held-out text "
    "uses the memories, the lowest one first."
)
_USE = (
    "Stale: slots that were the best of no head in the last half of the "
    "training, in the part of the held-out text that is read meanwhile. "
    "Medians over the seeds, with the least and the greatest where there are "
    "several."
)


def _masked_columns(model: dict) -> dict[str, str]:
    paper = paper_masked_lm().get(model["in_table"], "- - - - - -").split()
    seeds = model["seeds"]
    return {
        "before": _of_all(seeds, "perplexity_before"),
        **_perplexities(seeds),
        **_usage(seeds),
        "the paper's: perplexity": paper[0],
        # Those of ours and the paper's have the same names.
        **{
            f"{name} (paper)": cell
            for name, cell in zip(("top-1 used %", "KL_u", "KL_w"), paper[3:])
        },
    }


def _causal_columns(model: dict) -> dict[str, str]:
    seeds = model["seeds"]
    return {
        **_perplexities(seeds),
        "bits/byte": _of_all(seeds, "bits_per_byte", 3),
        "tokens/s": _middle([seed["tokens_per_second"] for seed in seeds], 0),
        **_usage(seeds),
    }


def _perplexities(seeds: list[dict]) -> dict[str, str]:
    error = _middle([seed["standard_error"] for seed in seeds])
    return {
        "perplexity": f"{_of_all(seeds, 'perplexity')} ± {error}",
        "other text": _of_all(seeds, "out_of_domain_perplexity"),
    }


def _usage(seeds: list[dict]) -> dict[str, str]:
    usages = [seed["memory_usage"] for seed in seeds]
    return {
        "top-1 used %": _by_layer(usages, lambda u: 100 * u["top1_mu"], 1),
        "KL_u": _by_layer(usages, lambda found: found["kl_u"], 2),
        "KL_w": _by_layer(usages, lambda found: found["kl_w"], 2),
        "stale %": _by_layer(
            [seed["stale"] for seed in seeds], lambda share: 100 * share, 1
        ),
    }


def _of_all(seeds: list[dict], name: str, digits: int = 2) -> str:
    return _over_seeds([seed.get(name) for seed in seeds], digits)


def _orders(figures: dict) -> Table:
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


def _tables_4_and_5(figures: dict) -> Table:
    tasks = figures["fine_tuning"]
    header, columns = ["model"], []
    for task, models in tasks.items():
        for name in next(iter(models.values()))["updated"]:
            title = f"{task} {metric_title(name)}"
            header += [title, "frozen", "the paper's", "frozen"]
            columns.append((task, name))
    rows = []
    for key, model in figures["models"].items():
        if not model["in_table"]:
            continue
        row = [f"{key} {model['title']}"]
        for task, name in columns:
            ours = tasks[task][key]
            paper = paper_figures(task, "bert", frozen=True)
            for kind in ("updated", "frozen"):
                summary = ours.get(kind)
                row.append(percent(summary[name]) if summary else "-")
            name_in_table = model["in_table"]
            for title in (name_in_table, f"{name_in_table}, memory frozen"):
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


def _over_seeds(values: list, digits: int = 2) -> str:
    if None in values:
        return "-"
    return over_seeds(values, f".{digits}f")


def _middle(values: list[float | None], digits: int = 2) -> str:
    known = [value for value in values if value is not None]
    return f"{statistics.median(known):.{digits}f}" if known else "-"


def _by_layer(
    seeds: list[dict], figure: Callable[[Any], float], digits: int
) -> str:
    return (
        " / ".join(
            _over_seeds([figure(seed[layer]) for seed in seeds], digits)
            for layer in sorted(seeds[0], key=int)
        )
        or "-"
    )


def _difference(kind: str, found: Any) -> str:
    if kind == "perplexity":
        mean, low, high = found
        return f"{mean:+.4f} ({low:+.4f} to {high:+.4f})"
    return f"{100 * found:+.1f}" if kind == "use" else f"{found:+.4f}"
