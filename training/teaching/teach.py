"""Teaches a masked-LM task something, and asks what it knows and forgot."""

from collections.abc import Callable

import keras
from tqdm import tqdm

from training.batches.model_inputs import keep_inputs
from training.measuring.perplexity import LanguageModelEvaluator
from training.teaching.material import Group
from training.teaching.material import Material
from training.teaching.methods import Teacher

# Where the number of steps is not limited otherwise.
_PASSES = 200


def teach(
    task: keras.Model,
    teacher: Teacher,
    *,
    new: Material,
    old: Material | None,
    steps: int | None,
) -> dict:
    """Teaches a task group by group, each until it is known.

    Args:
        task: The task.
        teacher: What teaches it.
        new: What it is to learn.
        old: What it is to keep, which is measured alone.
        steps: The most steps of a group; `None` for 200 passes over it.

    Returns:
        A dict of `"steps"`, those of each group; `"new"`, and `"old"` if there
        is any: the figures of the material.
    """
    evaluator = LanguageModelEvaluator(task)
    asked = {"new": new} if old is None else {"new": new, "old": old}
    before = {name: each.ask(evaluator) for name, each in asked.items()}
    groups = new.groups(before["new"])
    most = [steps or _PASSES * group.pass_steps for group in groups]
    taken = []
    with tqdm(
        total=sum(most), desc="Steps", leave=False, disable=None
    ) as progress:
        for group, at_most in zip(groups, most, strict=True):
            until = _until_learned(group, evaluator, progress)
            batches = keep_inputs(task.input, group.batches)
            taken.append(teacher.teach(batches, at_most, until))
            # What was not needed counts as done.
            progress.update(sum(most[: len(taken)]) - progress.n)
    figures = {
        name: each.figures(before[name], each.ask(evaluator))
        for name, each in asked.items()
    }
    return {"steps": taken, **figures}


def _until_learned(
    group: Group, evaluator: LanguageModelEvaluator, progress: tqdm
) -> Callable[[], bool]:
    """Returns a function that asks, at some of its calls, if all is known."""
    calls = 0

    def until():
        nonlocal calls
        calls += 1
        if calls > 1:
            progress.update()
        if (calls - 1) % group.check_every:
            return False
        return group.is_learned(evaluator)

    return until
