"""What several ways of teaching the same facts learn and change, as a table."""

import json
import pathlib
from collections.abc import Callable

from benchmarks.published.figure import select


def taught_facts(ways: dict[str, str]) -> Callable[[pathlib.Path], str]:
    """Returns a function that makes the table from runs of `teach.py`."""

    def make(directory: pathlib.Path) -> str:
        rows = [
            ["what is trained", "known %", "old before", "after"]
            + ["change %", "steps", "rows", "bytes a fact"],
            ["---", *["---:"] * 7],
        ]
        for run, way in ways.items():
            results = _read(directory / run / "results.json")
            new, old = results["new"], results["old"]
            patch = results.get("patch")
            changed = ["all", "-"]
            if patch is not None:
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
        return select(rows)

    return make


def easy_and_realistic(
    ways: dict[str, tuple[str, str]],
) -> Callable[[pathlib.Path], str]:
    """Returns a function that makes a table of both comparisons of teaching."""

    def make(directory: pathlib.Path) -> str:
        measured = directory.parent
        report = _read(measured / "forgetting" / "report.json")
        rows = [
            ["what is trained", "random facts: new known %", "old kept %"]
            + ["model of text: new known %", "perplexity of the text, %"],
            ["---", *["---:"] * 4],
        ]
        for way, (key, run) in ways.items():
            found = report["contestants"][key]
            easy = found["tried"][found["best"]]
            real = _read(measured / "forgetting-text" / run / "results.json")
            rows.append(
                [
                    way,
                    f"{100 * easy['learned']:.1f}",
                    f"{100 * easy['kept']:.1f}",
                    f"{100 * real['new']['known_after']:.1f}",
                    f"{100 * real['old']['change']:+.1f}",
                ]
            )
        return select(rows)

    return make


def _read(path):
    return json.loads(path.read_text(encoding="utf-8"))
