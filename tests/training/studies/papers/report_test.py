"""The report, of runs that were never trained."""

import json

import numpy as np
import pytest

from tests.training.studies.papers.canned_comparison import write_comparison
from training.studies.papers.recipe import ReproductionRecipe
from training.studies.papers.study import PaperStudy


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    recipe = ReproductionRecipe(
        out=tmp_path_factory.mktemp("comparison"),
        quick=True,
        out_of_domain="book.txt",
        seeds=2,
        repeat=("a", "f"),
    )
    write_comparison(recipe)
    return recipe


@pytest.fixture(scope="module")
def report(recipe):
    study = PaperStudy(recipe)
    study.write_report(study.collect())
    return json.loads((recipe.out / "report.json").read_text())


def test_all_jobs_are_done(recipe):
    assert all(job.is_done for job in PaperStudy(recipe).jobs())


def test_models(report):
    assert list(report["models"]) == list("abcdefg")
    seeds = {key: len(m["seeds"]) for key, m in report["models"].items()}
    assert seeds == {**dict.fromkeys("bcdeg", 1), "a": 2, "f": 2}
    for place, (key, model) in enumerate(report["models"].items()):
        found = model["seeds"][0]
        assert bool(found["memory_usage"]) == (key in "cdefg")
        # Of 16 slots ten were read at step 2, and four at step 4: twelve have
        # not been read in the last half of four steps.
        assert found["stale"] == ({"1": 0.75} if key in "cdefg" else {})
        assert found["out_of_domain_perplexity"] == 90 + place


def test_orders(report):
    rows = {row["what"]: row for row in report["orderings"]}
    assert len(rows) == 7 + 3 + 2
    ((mean, low, high),) = rows["perplexity e < c"]["differences"]
    # Two places of a tenth of a nat; the noise is the same.
    np.testing.assert_allclose([mean, low, high], 0.2, rtol=1e-9)
    assert rows["perplexity e < c"]["verdict"] == "seen"
    assert len(rows["perplexity f < e"]["differences"]) == 1
    found = rows["top-1 use, lower layer f >= e"]
    assert found["differences"] == pytest.approx([0.05])


def test_pages(recipe, report):
    text = (recipe.out / "report.md").read_text()
    assert "Seeds: 2 of a f, 1 of b c d e g" in text
    assert "the paper's" in text
    assert "A quick run shows that all works, and nothing else." in text
    ran = [line for line in text.splitlines() if line.startswith("python ")]
    assert len(ran) == len(PaperStudy(recipe).jobs())
    names = {path.stem for path in recipe.out.glob("*.svg")}
    assert names == {"curves"} | {f"staleness-{key}" for key in "cdefg"}
    page = (recipe.out / "report.html").read_text()
    assert page.count("<img ") == len(names) and "<script" not in page
