"""Curves of runs whose directories have the same name, and of a run twice."""

import dataclasses
import json

import pytest

from tests.training.tiny_run import TINY
from training.pretraining.logs import read_curves_of_runs
from training.pretraining.logs import read_rows
from training.pretraining.recipe import parse_recipe
from training.runs.user_error import UserError


def write_run(path, perplexity):
    """What a run of two stages leaves of which curves are read."""
    recipe = parse_recipe([*TINY, "--evaluate-every", "2"])
    logs = path / "logs"
    logs.mkdir(parents=True)
    text = json.dumps(dataclasses.asdict(recipe), default=str)
    (path / "recipe.json").write_text(text)
    for stage in ("plain", "resm"):
        (logs / f"{stage}.csv").write_text(
            f"epoch,val_perplexity\n0,{perplexity}\n1,{perplexity / 2}\n"
        )
        (logs / f"{stage}-perplexity.csv").write_text(
            f"step,perplexity\n1,{2 * perplexity}\n"
        )
    return str(path)


def test_curves_of_runs(tmp_path):
    one = write_run(tmp_path / "one" / "run", 60)
    other = write_run(tmp_path / "other" / "run", 80)
    last = write_run(tmp_path / "last", 90)
    curves = read_curves_of_runs([one, last, one])
    assert list(curves) == [
        f"{name}, {stage}"
        for name in ("run", "last")
        for stage in ("plain", "+Init resm")
    ]
    assert curves["last, plain"] == {
        "training": [(1, 180)],
        "held_out": [(2, 90), (4, 45)],
    }
    # Names that are not enough give way to paths.
    curves = read_curves_of_runs([one, other])
    assert [(name, lines["held_out"][0]) for name, lines in curves.items()] == [
        (f"{path}, {stage}", (2, perplexity))
        for path, perplexity in ((one, 60), (other, 80))
        for stage in ("plain", "+Init resm")
    ]


def test_what_is_no_run(tmp_path):
    (tmp_path / "recipe.json").write_text('{"task": "sst2"}')
    with pytest.raises(UserError, match="--runs must be.*has no recipe.json"):
        read_curves_of_runs([str(tmp_path)])


def test_a_run_of_a_later_version(tmp_path):
    run = write_run(tmp_path / "run", 60)
    path = tmp_path / "run" / "recipe.json"
    recipe = {**json.loads(path.read_text()), "half_life": 3}
    path.write_text(json.dumps(recipe))
    with pytest.raises(UserError, match="run' has half_life: use the"):
        read_curves_of_runs([run])


def test_of_equal_rows_the_last_counts(tmp_path):
    """As an interruption leaves them: steps come once more."""
    path = tmp_path / "log.csv"
    assert read_rows(path, "step") == []
    path.write_text("step,layer,x\n1,1,a\n1,2,b\n2,1,c\n1,2,d\n10,1,e\n")
    rows = read_rows(path, "step", "layer")
    assert [row["x"] for row in rows] == ["a", "d", "c", "e"]
