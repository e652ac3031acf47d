"""The README's table of costs, from the results of several benchmarks."""

import json
import pathlib

from benchmarks.published.figure import select


def costs(directory: pathlib.Path, with_paper: bool = True) -> str:
    """Returns the table of costs."""
    measured = directory.parent
    served = _rows(measured / "inference-1" / "inference.json")
    portable = _rows(measured / "inference-portable" / "inference.json")
    trained = _rows(measured / "training" / "training.json")
    layers = _rows(measured / "layer-short" / "layer.json")

    def speed(rows, model):
        (row,) = (row for row in rows if row["model"] == model)
        return row["speed, BASE = 1"]

    def layer(optimizer):
        found = {
            row["tokens"]: row["times faster"]
            for row in layers
            if row["task"] == "train step"
            and row["against"] == f"EmbeddingBag (torch), {optimizer}"
        }
        return f"{found[128]}; {found[2048]}"

    (resm,) = (row for row in trained if row["model"] == "BASE+ResM, PKMAdam")
    (plain,) = (row for row in trained if row["model"] == "BASE, Adam")
    columns = ["`python benchmarks/…`", "measured", "here", "the paper, V100"]
    rows = [
        columns,
        ["---", "---", "---:", "---:"],
        [
            "`inference.py --batches 1 --rounds 15`",
            "speed of BASE+ResM, 1 x 128 tokens, BASE = 1",
            speed(served, "BASE+ResM"),
            "0.743",
        ],
        ["the same", "speed of LARGE", speed(served, "LARGE"), "0.540"],
        [
            "`inference.py --batches 1 --rounds 7 --models BASE+ResM "
            "--implementation portable`",
            "speed of BASE+ResM when exported",
            speed(portable, "BASE+ResM"),
            "-",
        ],
        [
            "`training.py --rounds 5`",
            "time of a train step of BASE+ResM, 8 x 128 tokens, BASE = 1",
            resm["times slower"],
            "1.82",
        ],
        [
            "the same",
            "its peak memory in MiB; that of BASE",
            f"{resm['peak MiB']}; {plain['peak MiB']}",
            "-",
        ],
        [
            "`layer.py --tokens 128 2048 --rounds 9`",
            "a layer's train step against torch's fused Adam: times faster "
            "at 128; 2,048 tokens",
            layer("fused Adam"),
            "-",
        ],
        *(
            ["the same", f"against torch's {each}", layer(each), "-"]
            for each in ("SparseAdam", "Adam")
        ),
    ]
    shown = columns if with_paper else columns[:-1]
    return select(rows, {name: name for name in shown})


def _rows(path):
    return json.loads(path.read_text(encoding="utf-8"))["rows"]
