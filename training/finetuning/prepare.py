"""Reads the data of a task, before anything is written."""

from training.finetuning.glue import GlueFinetuning
from training.finetuning.kind import FinetuningKind
from training.finetuning.recipe import FinetuningRecipe
from training.finetuning.squad import SquadFinetuning
from training.loading.pretrained_model import PretrainedModel
from training.tasks.bad_rows import BadRows


def open_task(
    recipe: FinetuningRecipe, pretrained: PretrainedModel
) -> FinetuningKind:
    """Reads a task's data, and reports the rows that are skipped."""
    bad_rows = BadRows(recipe.skip_bad_rows)
    kind = SquadFinetuning if recipe.is_squad else GlueFinetuning
    task = kind(recipe, pretrained, bad_rows)
    if bad_rows.rows:
        print(bad_rows.report())
    return task
