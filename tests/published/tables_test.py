"""Tables of the documentation that are made from several results."""

import json

import pytest

from benchmarks.published.tables import costs
from benchmarks.published.tables import easy_and_realistic
from benchmarks.published.tables import stored
from benchmarks.published.tables import taught


def test_a_table_of_a_report_and_some_of_it(tmp_path):
    table = {
        "columns": ["model", "recall %", "after", "after"],
        "rows": [["plain", "18.9", "58", "-"], ["ResM", "100.0", "9", "8"]],
    }
    text = json.dumps({"tables": {"Models": table}})
    (tmp_path / "report.json").write_text(text)
    assert stored(tmp_path, "report.json", "Models").splitlines() == [
        "| model | recall % | after | after |",
        "| :--- | ---: | ---: | ---: |",
        "| plain | 18.9 | 58 | - |",
        "| ResM | 100.0 | 9 | 8 |",
    ]
    assert stored(
        tmp_path,
        "report.json",
        "Models",
        columns=["model", "recall %"],
        renamed={"recall %": "known %"},
        without=["plain"],
    ).splitlines() == [
        "| model | known % |",
        "| :--- | ---: |",
        "| ResM | 100.0 |",
    ]
    with pytest.raises(KeyError, match="Speed"):
        stored(tmp_path, "report.json", "Speed")


def test_the_table_of_a_benchmark(tmp_path):
    rows = [{"model": "a", "ms": "21.0"}, {"model": "b", "ms": "4.5"}]
    (tmp_path / "layer.json").write_text(json.dumps({"rows": rows}))
    assert stored(tmp_path, "layer.json").splitlines() == [
        "| model | ms |",
        "| --- | --- |",
        "| a | 21.0 |",
        "| b | 4.5 |",
    ]


def test_the_table_of_costs(tmp_path):
    rows = {
        "inference-1/inference": [
            {"model": "BASE+ResM", "speed, BASE = 1": "0.893 (0.84-0.929)"},
            {"model": "LARGE", "speed, BASE = 1": "0.291 (0.2-0.3)"},
        ],
        "inference-portable/inference": [
            {"model": "BASE+ResM", "speed, BASE = 1": "0.847 (0.8-0.9)"},
        ],
        "training/training": [
            {
                "model": "BASE+ResM, PKMAdam",
                "times slower": "1.18 (1.1-1.2)",
                "peak MiB": "8,900",
            },
            {"model": "BASE, Adam", "peak MiB": "3,300"},
        ],
        "layer-short/layer": [
            {
                "tokens": tokens,
                "task": "train step",
                "against": f"EmbeddingBag (torch), {optimizer}",
                "times faster": f"{faster} (1-20)",
            }
            for tokens, optimizer, faster in (
                *((128, "Adam", 12.3), (2048, "Adam", 2.6)),
                *((128, "fused Adam", 5.96), (2048, "fused Adam", 1.09)),
                *((128, "SparseAdam", 4.5), (2048, "SparseAdam", 5.7)),
            )
        ],
    }
    rows["layer-short/layer"] += [
        {**row, "task": "forward", "times faster": f"0.{row['tokens']}"}
        for row in rows["layer-short/layer"]
    ]
    for name, found in rows.items():
        path = tmp_path / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"rows": found}))
    cells = [
        line.split(" | ")[-2:] for line in costs(tmp_path).splitlines()[2:]
    ]
    assert cells == [
        ["0.893 (0.84-0.929)", "0.743 |"],
        ["0.291 (0.2-0.3)", "0.540 |"],
        ["0.847 (0.8-0.9)", "- |"],
        ["1.18 (1.1-1.2)", "1.82 |"],
        ["8,900; 3,300", "- |"],
        ["5.96 (1-20); 1.09 (1-20)", "- |"],
        ["4.5 (1-20); 5.7 (1-20)", "- |"],
        ["12.3 (1-20); 2.6 (1-20)", "- |"],
        ["0.128; 0.2048", "- |"],
    ]
    alone = costs(tmp_path, with_paper=False)
    assert [line.split(" | ")[-1] for line in alone.splitlines()[2:]] == [
        f"{here} |" for here, _ in cells
    ]


def test_the_table_of_taught_facts(tmp_path):
    results = {
        "new": {"facts": 500, "known_after": 0.996},
        "old": {
            "perplexity_before": 61.27,
            "perplexity_after": 66.12,
            "change": 0.0791,
        },
        "steps": [3000, 200],
    }
    patched = {**results, "patch": {"rows": 4923, "bytes": 5_081_240}}
    for run, found in (("one", patched), ("two", results)):
        (tmp_path / run).mkdir()
        (tmp_path / run / "results.json").write_text(json.dumps(found))
    table = taught(
        tmp_path,
        {"slots": "one/results.json", "all weights": "two/results.json"},
    )
    same = "99.6 | 61.27 | 66.12 | +7.91 | 3,200"
    assert table.splitlines()[2:] == [
        f"| slots | {same} | 4,923 | 10,162 |",
        f"| all weights | {same} | all | - |",
    ]


def test_the_table_of_both_comparisons(tmp_path):
    report = {"candidates": {"all": {"learned": 0.022, "kept": 0.0225}}}
    results = {"new": {"known_after": 1.0}, "old": {"change": 2.6638}}
    for name, found in (
        ("forgetting/report", report),
        ("forgetting-text/taught-all/results", results),
    ):
        path = tmp_path / f"{name}.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(found))
    ways = {"all weights": ("all", "taught-all")}
    assert easy_and_realistic(tmp_path, ways).splitlines()[2:] == [
        "| all weights | 2.2 | 2.2 | 100.0 | +266.4 |"
    ]
