"""Reads once what the commands of a comparison will need, before any begins."""

from training.reproduction.comparison_directory import ComparisonDirectory
from training.reproduction.plan import plan_jobs
from training.reproduction.recipe import ReproductionRecipe
from training.tasks.bad_rows import BadRows
from training.tasks.glue import GLUE
from training.tasks.glue import load_glue
from training.tasks.squad import load_squad
from training.text.corpus import open_corpus


def check_inputs(recipe: ReproductionRecipe) -> None:
    """Checks the data of all commands that have not yet ended."""
    left = {job.name for job in plan_jobs(recipe) if not job.is_done}
    first = ComparisonDirectory(recipe.out).pretraining(0, "a")
    if not first.has_data:
        for text in filter(None, (recipe.corpus, recipe.validation)):
            open_corpus(text, recipe.data_dir).check()
    if any(name.startswith("measuring-") for name in left):
        open_corpus(recipe.out_of_domain, recipe.data_dir).check()
    for task in recipe.size.tasks:
        if not any(f"-{task}-" in name for name in left):
            continue
        if task == "squad":
            load_squad(recipe.squad, recipe.data_dir, BadRows())
        else:
            load_glue(GLUE[task], recipe.glue, recipe.data_dir, BadRows())
