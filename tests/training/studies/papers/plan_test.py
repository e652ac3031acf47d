import pathlib

import pytest

from training.pretraining.recipe import parse_recipe
from training.studies.papers.papers import PAPERS
from training.studies.papers.recipe import ReproductionRecipe
from training.studies.papers.study import PaperStudy


@pytest.mark.parametrize("scale", ["laptop", "paper"])
def test_every_command_has_what_it_needs(scale):
    recipe = ReproductionRecipe(
        out=pathlib.Path("out"), scale=scale, seeds=2, out_of_domain="books.txt"
    )
    made, names = set(), set()
    for job in PaperStudy(recipe).jobs():
        flags = dict(zip(job.args, job.args[1:]))
        for flag in ("--init-from", "--model", "--data-from"):
            assert flag not in flags or flags[flag] in made
        assert str(job.result) not in made and job.name not in names
        names.add(job.name)
        made |= {str(job.result), str(job.result.parent)}
    # Seven models with two seeds.
    assert sum(path.endswith("out-of-domain.json") for path in made) == 14


@pytest.mark.parametrize("paper", PAPERS)
def test_every_model_can_be_asked_for(paper):
    """Not all of them are trained by tests."""
    recipe = ReproductionRecipe(
        out=pathlib.Path("out"), paper=paper, quick=True, tasks=()
    )
    jobs = PaperStudy(recipe).jobs()
    asked = [
        parse_recipe(list(job.args))
        for job in jobs
        if job.script == "pretrain.py"
    ]
    assert len(asked) == len(PAPERS[paper].models)


def test_budgets_are_equal():
    recipe = ReproductionRecipe(out=pathlib.Path("out"), seeds=1)
    pretraining = [
        dict(zip(job.args, job.args[1:]))
        for job in PaperStudy(recipe).jobs()
        if job.script == "pretrain.py"
    ]
    assert len(pretraining) == len(PAPERS["kim-jung"].models) == 7
    for name in ("--steps", "--seed", "--text", "--learning-rate"):
        assert len({flags[name] for flags in pretraining}) == 1
    # One vocabulary, and the same rows.
    assert [flags.get("--data-from") for flags in pretraining] == [
        None,
        *["out/seed-0/a"] * 6,
    ]
    starts = [flags.get("--init-from") for flags in pretraining]
    assert starts == [None, "out/seed-0/a", None, None] + 3 * ["out/seed-0/a"]


def test_seeds_of_some_models_only():
    recipe = ReproductionRecipe(
        out=pathlib.Path("out"), seeds=3, repeat=("c", "f"), tasks=()
    )
    jobs = PaperStudy(recipe).jobs()
    runs = [
        str(job.result.parent) for job in jobs if job.script == "pretrain.py"
    ]
    assert runs == [f"out/seed-0/{key}" for key in recipe.models] + [
        f"out/seed-{seed}/{key}" for seed in (1, 2) for key in "cf"
    ]
    last = dict(zip(jobs[-1].args, jobs[-1].args[1:]))
    assert last["--init-from"] == "out/seed-0/a" and last["--seed"] == "4"


def test_memories_are_frozen_where_there_are_any():
    recipe = ReproductionRecipe(out=pathlib.Path("out"), tasks=("cola",))
    found = [
        (pathlib.Path(job.result).parent.name, "--freeze" in job.args)
        for job in PaperStudy(recipe).jobs()
        if job.script == "finetune.py"
    ]
    frozen = [name for name, is_frozen in found if is_frozen]
    assert frozen == [f"{key}-cola-frozen" for key in "cdef"]
    assert len(found) == 6 + 4
