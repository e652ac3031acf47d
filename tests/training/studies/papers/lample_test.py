"""The comparison of Lample et al.: memories against depth and width."""

import json
import pathlib

import pytest

from tests.training.studies.papers.canned_comparison import write_comparison
from training import reproduce
from training.studies.papers.recipe import ReproductionRecipe
from training.studies.papers.study import PaperStudy


def test_models_differ_by_their_flags_alone():
    recipe = ReproductionRecipe(out=pathlib.Path("out"), paper="lample")
    jobs = PaperStudy(recipe).jobs()
    assert {job.script for job in jobs} == {"pretrain.py"}
    # Of a flag that is there twice, the last one counts.
    flags = [dict(zip(job.args, job.args[1:])) for job in jobs]
    assert [each["--num-layers"] for each in flags] == [*"44448", "4"]
    assert [each["--memory-block"] for each in flags] == [
        *("ffn", "resm", "resm", "resm", "ffn", "ffn"),
    ]
    assert {each["--backbone"] for each in flags} == {"gpt2"}
    for name in ("--steps", "--seed", "--learning-rate"):
        assert len({each[name] for each in flags}) == 1
    assert [each.get("--data-from") for each in flags] == [
        None,
        *["out/seed-0/a"] * 5,
    ]


def test_report(tmp_path):
    recipe = ReproductionRecipe(out=tmp_path, paper="lample", quick=True)
    write_comparison(recipe)
    study = PaperStudy(recipe)
    study.write_report(study.collect())
    text = (tmp_path / "report.md").read_text()
    assert "Lample et al., 2019" in text and "bits/byte" in text
    assert "(paper)" not in text
    report = json.loads((tmp_path / "report.json").read_text())
    verdicts = {row["what"]: row["verdict"] for row in report["orderings"]}
    # The canned models are better and better by their letters.
    assert verdicts["perplexity c < b"] == "seen"
    assert verdicts["perplexity b < e"] == "the other way round"
    assert not report["fine_tuning"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--scale paper", "--scale must be laptop with --paper lample"),
        ("--repeat a g", "--repeat must be some of a b c d e f with"),
        ("--tasks sst2", "--tasks must be none with --paper lample"),
    ],
)
def test_mistakes(flags, message, tmp_path, capsys):
    out = tmp_path / "out"
    args = ["--out", str(out), "--paper", "lample", *flags.split()]
    assert reproduce.main(args) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()
