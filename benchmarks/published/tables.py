"""Makes tables of pages from the JSON that commands wrote.

The first argument is the directory with what was measured.
"""

import json
import pathlib
from collections.abc import Collection
from collections.abc import Iterable
from typing import Any

_WORDS = ("---",)
_NAME_AND_NUMBERS = ("---", "---:")
_LEFT_AND_NUMBERS = (":---", "---:")
_NUMBERS = ("---:",)


def read(path: pathlib.Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def markdown(
    columns: Collection[str],
    rows: Iterable[Iterable],
    rules: tuple[str, ...] = _WORDS,
) -> str:
    """Returns a table; the last rule is that of all further columns, too."""
    rules += rules[-1:] * len(columns)
    # Without widths: a new figure then changes one row.
    return "\n".join(
        f"| {' | '.join(map(str, cells))} |"
        for cells in (columns, rules[: len(columns)], *rows)
    )


def stored(
    measured: pathlib.Path,
    file: str,
    title: str | None = None,
    columns: Collection[str | int] | None = None,
    renamed: dict[str, str] = {},
    without: Collection[str] = (),
) -> str:
    """The rows of a benchmark, or a table of a report or some of it."""
    found = read(measured / file)
    if title is None:
        return markdown(found["rows"][0], map(dict.values, found["rows"]))
    table = found["tables"][title]
    places = range(len(table["columns"]))
    if columns:
        # Two columns may have the same name: then numbers say which.
        places = [
            name if isinstance(name, int) else table["columns"].index(name)
            for name in columns
        ]
    names = [table["columns"][place] for place in places]
    return markdown(
        [renamed.get(name, name) for name in names],
        [
            [row[place] for place in places]
            for row in table["rows"]
            if row[0] not in without
        ],
        _LEFT_AND_NUMBERS,
    )


def pretrained(
    measured: pathlib.Path, file: str, with_usage: bool = True
) -> str:
    """The stages of a run, and how its memories are used."""
    # The site is built without the packages that training needs.
    from keras_pkm.metrics.usage_table import COLUMNS
    from keras_pkm.metrics.usage_table import memory_usage_cells
    from training.pretraining.results import result_rows

    results = read(measured / file)
    made = markdown(*result_rows(results), _LEFT_AND_NUMBERS)
    if not with_usage:
        return made
    usage = [
        [layer, *memory_usage_cells(figures, results["num_slots"])]
        for layer, figures in results["stages"][-1]["memory_usage"].items()
    ]
    return f"{made}\n\n{markdown(['memory layer', *COLUMNS], usage, _NUMBERS)}"


def before_and_after(measured: pathlib.Path, file: str) -> str:
    """What a run learned and forgot when it was taught facts."""
    from training.teaching.results import result_rows

    rows = result_rows(read(measured / file))
    return markdown(["what", "before", "after"], rows, _LEFT_AND_NUMBERS)


def taught(measured: pathlib.Path, ways: dict[str, str]) -> str:
    """What several ways of teaching the same facts learn and change."""
    rows = []
    for way, file in ways.items():
        results = read(measured / file)
        new, old = results["new"], results["old"]
        changed = ["all", "-"]
        if patch := results.get("patch"):
            size = patch["bytes"] / new["facts"]
            changed = [f"{patch['rows']:,}", f"{size:,.0f}"]
        rows.append(
            [
                way,
                f"{100 * new['known_after']:.1f}",
                f"{old['perplexity_before']:.2f}",
                f"{old['perplexity_after']:.2f}",
                f"{100 * old['change']:+.2f}",
                f"{sum(results['steps']):,}",
                *changed,
            ]
        )
    columns = ["what is trained", "known %", "old before", "after"]
    columns += ["change %", "steps", "rows", "bytes a fact"]
    return markdown(columns, rows, _NAME_AND_NUMBERS)


def easy_and_realistic(
    measured: pathlib.Path, ways: dict[str, tuple[str, str]]
) -> str:
    """Both comparisons of teaching: random facts, and a model of text."""
    candidates = read(measured / "forgetting/report.json")["candidates"]
    rows = []
    for way, (key, run) in ways.items():
        easy = candidates[key]
        real = read(measured / "forgetting-text" / run / "results.json")
        shares = (easy["learned"], easy["kept"], real["new"]["known_after"])
        change = f"{100 * real['old']['change']:+.1f}"
        rows.append([way, *(f"{100 * each:.1f}" for each in shares), change])
    columns = ["what is trained", "random facts: new known %", "old kept %"]
    columns += [
        "model of text (one seed): new known %",
        "change of its perplexity, %",
    ]
    return markdown(columns, rows, _NAME_AND_NUMBERS)


def costs(measured: pathlib.Path, with_paper: bool = True) -> str:
    """What a memory costs, by several benchmarks."""

    def cell(file, column, **where):
        rows = read(measured / file)["rows"]
        (row,) = (each for each in rows if where.items() <= each.items())
        return row[column]

    def speed(run, model):
        return cell(f"{run}/inference.json", "speed, BASE = 1", model=model)

    def trained(column, model):
        return cell("training/training.json", column, model=model)

    def layer(optimizer, task="train step"):
        where = {"against": f"EmbeddingBag (torch), {optimizer}", "task": task}
        file = "layer-short/layer.json"
        return "; ".join(
            cell(file, "times faster", tokens=tokens, **where)
            for tokens in (128, 2048)
        )

    resm, plain = "BASE+ResM, PKMAdam", "BASE, Adam"
    same = "the same"
    rows = [
        (
            "`inference.py --batches 1 --rounds 15`",
            "speed of BASE+ResM, 1 x 128 tokens, BASE = 1",
            speed("inference-1", "BASE+ResM"),
            "0.743",
        ),
        (same, "speed of LARGE", speed("inference-1", "LARGE"), "0.540"),
        (
            "`inference.py --batches 1 --rounds 7 --models BASE+ResM "
            "--implementation portable`",
            "speed of BASE+ResM when exported",
            speed("inference-portable", "BASE+ResM"),
            "-",
        ),
        (
            "`training.py --rounds 5`",
            "time of a train step of BASE+ResM, 8 x 128 tokens, BASE = 1",
            trained("times slower", resm),
            "1.82",
        ),
        (
            same,
            "its peak memory in MiB; that of BASE with Adam",
            "; ".join(trained("peak MiB", model) for model in (resm, plain)),
            "-",
        ),
        (
            "`layer.py --tokens 128 2048 --rounds 9`",
            "a layer's train step against torch's fused Adam: times faster at "
            "128; 2,048 tokens",
            layer("fused Adam"),
            "-",
        ),
        (same, "against torch's SparseAdam", layer("SparseAdam"), "-"),
        (same, "against torch's Adam", layer("Adam"), "-"),
        (
            same,
            "a layer's forward pass against torch's EmbeddingBag",
            layer("Adam", "forward"),
            "-",
        ),
    ]
    columns = ("`python benchmarks/…`", "measured", "here", "the paper, V100")
    shown = slice(None if with_paper else -1)
    return markdown(
        columns[shown], [row[shown] for row in rows], ("---", "---", "---:")
    )
