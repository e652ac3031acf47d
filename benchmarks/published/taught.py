"""What several ways of teaching the same facts learn and change, as a table."""

import json
import pathlib
from collections.abc import Callable

from benchmarks.published.figure import select


def taught_facts(ways: dict[str, str]) -> Callable[[pathlib.Path], str]:
    """Returns a function that makes the table from runs of `teach.py`.

    Args:
        ways: What is trained, by the directories of the runs.
    """

    def make(directory: pathlib.Path) -> str:
        rows = [
            ["what is trained", "known %", "old before", "after"]
            + ["change %", "steps", "rows", "bytes a fact"],
            ["---", *["---:"] * 7],
        ]
        for run, way in ways.items():
            path = directory / run / "results.json"
            results = json.loads(path.read_text(encoding="utf-8"))
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
