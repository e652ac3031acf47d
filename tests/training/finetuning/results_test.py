import pytest

from tests.markdown import squeezed
from training.finetuning.results import format_results
from training.finetuning.results import summarize
from training.reports.paper import paper_figures

SEEDS = {
    0: {"epochs": [{"dev accuracy": 0.5, "dev loss": 1.0}], "best": 1},
    1: {
        "epochs": [
            {"dev accuracy": 0.7, "dev loss": 1.0},
            {"dev accuracy": 0.6, "dev loss": 0.1},
        ],
        "best": 1,
    },
    2: {"epochs": [{"dev accuracy": 0.6, "dev loss": 1.0}], "best": 1},
}


def results(**kwargs):
    return {
        "model": "runs/books",
        "from_scratch": False,
        "baseline": {"dev accuracy": 0.51},
        "seeds": SEEDS,
        "summary": summarize(SEEDS),
        "paper": paper_figures("sst2", "bert", False),
        **kwargs,
    }


def test_median_and_range_of_the_best_epochs():
    assert summarize(SEEDS) == {
        "dev accuracy": {"median": 0.6, "min": 0.5, "max": 0.7}
    }


def test_table():
    text = squeezed(format_results(results()))
    assert "| runs/books | 60.0 (50.0-70.0) |" in text
    assert "| the most frequent class | 51.0 |" in text
    assert "| the paper's BERT-LARGE | 93.8 |" in text
    assert "of 3 seeds" in text and "(table 4)" in text
    one = {"dev accuracy": {"median": 0.6, "min": 0.6, "max": 0.6}}
    text = squeezed(format_results(results(summary=one)))
    assert "| runs/books | 60.0 |" in text
    text = squeezed(format_results(results(from_scratch=True, paper={})))
    assert "| runs/books, fresh weights | 60.0" in text
    assert "The paper has no figures of this." in text


@pytest.mark.parametrize(
    ("task", "family", "frozen", "model", "table", "figures"),
    [
        ("squad", "bert", False, "+PKM", 4, [81.9, 89.1]),
        ("mnli", "roberta", False, "BERT-LARGE", 4, [86.2, 86.1]),
        ("cola", "bert", True, "+ResM, memory frozen", 5, [59.9]),
        ("mnli", "bert", True, "+PKM, memory frozen", 5, [84.1]),
        ("sst2", "distilbert", False, "DistilBERT", 7, [91.6]),
    ],
)
def test_paper(task, family, frozen, model, table, figures):
    row = paper_figures(task, family, frozen)[model]
    assert row["table"] == table
    assert list(row["figures"].values()) == figures


def test_paper_has_no_frozen_or_distilled_figures_of_some_tasks():
    assert not paper_figures("cola", "distilbert", False)
    tables = {
        row["table"] for row in paper_figures("qqp", "bert", True).values()
    }
    assert tables == {4}
