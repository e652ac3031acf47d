"""The README's table of costs, from the results of several benchmarks."""

import json
import pathlib

from benchmarks.published.figure import select


def costs(directory: pathlib.Path) -> str:
    """Returns the table of costs.

    Args:
        directory: The directory of one of the benchmarks, beside the others.
    """
    measured = directory.parent
    served = _rows(measured / "inference-1" / "inference.json")
    portable = _rows(measured / "inference-portable" / "inference.json")
    trained = _rows(measured / "training" / "training.json")
    layers = _rows(measured / "layer-short" / "layer.json")

    def speed(rows, model):
        (row,) = (row for row in rows if row["model"] == model)
        return _middle(row["speed, BASE = 1"])

    def layer(against):
        found = {
            row["tokens"]: _middle(row["times faster"])
            for row in layers
            if row["task"] == "train step" and row["against"] == against
        }
        return f"{found[128]}; {found[2048]}"

    (resm,) = (row for row in trained if row["model"] == "BASE+ResM, PKMAdam")
    rows = [
        ["`python benchmarks/…`", "measured", "here", "the paper, V100"],
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
            "train step of BASE+ResM, 8 x 128 tokens, BASE = 1",
            _middle(resm["times slower"]),
            "1.82",
        ],
        [
            "`layer.py --tokens 128 2048 --rounds 9`",
            "a layer's train step against torch with Adam: times faster at "
            "128; 2,048 tokens",
            layer("EmbeddingBag (torch), Adam"),
            "-",
        ],
        [
            "the same",
            "against torch with fused Adam",
            layer("EmbeddingBag (torch), fused Adam"),
            "-",
        ],
    ]
    return select(rows)


def _rows(path):
    return json.loads(path.read_text(encoding="utf-8"))["rows"]


def _middle(cell):
    """The median of `0.893 (0.84-0.929)`."""
    return str(cell).split()[0]
