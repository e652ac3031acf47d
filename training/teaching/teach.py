"""Teaches a language model, and measures what it learned and forgot."""

from collections.abc import Callable

import keras
from tqdm import tqdm

from training.measuring.perplexity import LanguageModelEvaluator
from training.teaching.material import Group
from training.teaching.material import Material
from training.teaching.methods import Teacher

# Maximum number of passes, if the number of steps is not given.
_PASSES = 200
# The least such maximum: a handful of facts has only a step a pass.
_STEPS = 1000


def teach(
    task: keras.Model,
    teacher: Teacher,
    *,
    new: Material,
    old: Material | None,
    steps: int | None,
) -> dict:
    """Teaches a task group by group, each until it is known."""
    evaluator = LanguageModelEvaluator(task)
    asked = {"new": new} if old is None else {"new": new, "old": old}
    before = {name: each.ask(evaluator) for name, each in asked.items()}
    groups = new.groups(before["new"])
    most = [
        steps or max(_STEPS, _PASSES * group.pass_steps) for group in groups
    ]
    taken, then = [], []
    with tqdm(
        total=sum(most), desc="Steps", leave=False, disable=None
    ) as progress:
        for group, at_most in zip(groups, most, strict=True):
            until = _until_learned(group, evaluator, progress)
            taken.append(teacher.teach(group.batches, at_most, until))
            then.append(group.share_learned(evaluator))
            # Steps that were not needed count as done.
            progress.update(sum(most[: len(taken)]) - progress.n)
    figures = {
        name: each.figures(before[name], each.ask(evaluator))
        for name, each in asked.items()
    }
    return {"steps": taken, "learned_then": then, **figures}


def _until_learned(
    group: Group, evaluator: LanguageModelEvaluator, progress: tqdm
) -> Callable[[], bool]:
    """Returns a function that checks, at some calls, if all is learned."""
    calls = 0

    def until() -> bool:
        nonlocal calls
        calls += 1
        if calls > 1:
            progress.update()
        if (calls - 1) % group.check_every:
            return False
        return group.share_learned(evaluator) >= 1

    return until
