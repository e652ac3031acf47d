"""Teaches a run, or applies a patch to it, and writes a new run."""

import dataclasses
import shutil
from typing import Any

import keras_hub

from keras_pkm.files.presets import save_preset
from keras_pkm.files.whole_files import new_directory
from keras_pkm.teaching.memory_patch import MemoryPatch
from keras_pkm.teaching.memory_teacher import MemoryTeacher
from keras_pkm.teaching.slot_importance import SlotImportance
from keras_pkm.teaching.teaching_step import NothingLearnedError
from training.commands.fields import check_unused
from training.loading.pretrained_model import LanguageModel
from training.loading.pretrained_model import load_language_model
from training.runs.outputs import writing_results
from training.runs.run_directory import RunDirectory
from training.runs.user_error import UserError
from training.teaching.background import choose_method
from training.teaching.background import find_importance
from training.teaching.finished_model import OF_FACTS
from training.teaching.finished_model import OF_NEW_MEMORY
from training.teaching.finished_model import OF_TEACHING
from training.teaching.finished_model import change_finished
from training.teaching.finished_model import is_finished
from training.teaching.finished_model import teach_finished
from training.teaching.material import FACTS
from training.teaching.material import open_material
from training.teaching.methods import OF_MEMORIES
from training.teaching.methods import Method
from training.teaching.methods import check_memory
from training.teaching.methods import make_teacher
from training.teaching.patch_list import describe_patch
from training.teaching.patch_list import without
from training.teaching.recipe import TeachingRecipe
from training.teaching.results import format_results
from training.teaching.teach import teach


@dataclasses.dataclass
class TaughtModel:
    """A taught task."""

    task: keras_hub.models.Task
    # The changes of its memories, or `None` if other weights have changed, too.
    patch: MemoryPatch | None
    # The figures of what it learned and forgot.
    figures: dict = dataclasses.field(default_factory=dict)
    # The importance of its slots, if it was needed.
    importance: SlotImportance | None = None


def make_taught_run(recipe: TeachingRecipe) -> str:
    """Carries out a recipe, and returns its results as Markdown."""
    recipe.check()
    finished = is_finished(recipe.model)
    is_change = bool(recipe.apply or recipe.revert)
    if is_change:
        reason = f"'{recipe.model}' is taught nothing new"
        check_unused(recipe, OF_TEACHING, reason)
    if finished and recipe.method is None and not is_change:
        return _write(recipe, TaughtModel(*teach_finished(recipe)))
    check_unused(
        recipe,
        (*OF_FACTS, *OF_NEW_MEMORY),
        f"'{recipe.model}' gets no new facts as a finished model does",
    )
    if finished and recipe.method is None:
        return _write(recipe, _change(recipe, None))
    model = load_language_model(recipe.model)
    if not is_change:
        taught = _teach(recipe, model)
    else:
        taught = _change(recipe, model.task)
    return _write(recipe, taught)


def _teach(recipe: TeachingRecipe, model: LanguageModel) -> TaughtModel:
    task, method = model.task, recipe.method or "slots"
    check_memory(task, method)
    _check_flags(recipe, method)
    with open_material(recipe, model) as (new, old):
        importance = None
        if method == "slots":
            importance = find_importance(
                recipe.model,
                model,
                background=recipe.background,
                data_dir=recipe.data_dir,
                batch_size=recipe.batch_size,
            )
            if recipe.method is None:
                method = choose_method(importance, recipe.slots)
        replayed = None
        if method == "replay" and old is not None:
            replayed = old.samples(recipe.batch_size, recipe.seed)
        teacher = make_teacher(
            task,
            method,
            learning_rate=recipe.rate(method),
            rule=recipe.rule,
            slots=recipe.slots,
            importance=importance,
            replayed=replayed,
        )
        try:
            figures = teach(task, teacher, new=new, old=old, steps=recipe.steps)
        except NothingLearnedError as error:
            raise _nothing_learned(method, error) from error
    patch = None
    if isinstance(teacher, MemoryTeacher):
        patch = teacher.make_patch()
    return TaughtModel(task, patch, {"method": method, **figures}, importance)


def _check_flags(recipe: TeachingRecipe, method: Method) -> None:
    """Checks that no flags are given that do nothing."""
    if method not in OF_MEMORIES:
        reason = f"--method {method} trains with Adam"
        check_unused(recipe, ("rule",), reason)
    if method != "slots":
        reason = f"--method {method} chooses no slots"
        check_unused(recipe, ("slots", "background"), reason)
    keeps_facts = recipe.keep is not None and recipe.keep.endswith(FACTS)
    if recipe.facts is None:
        check_unused(recipe, ("group_size",), "no facts are taught")
        if not keeps_facts:
            check_unused(recipe, ("template",), "there are no facts")
    else:
        check_unused(recipe, ("fall",), "no text is taught")
        if recipe.keep is None or keeps_facts:
            of_text = ("sequence_length", "mask_rate")
            check_unused(recipe, of_text, "there is no text")


def _nothing_learned(method: str, error: NothingLearnedError) -> UserError:
    if method != "slots":
        return UserError(f"--method {method} learned nothing: {error}")
    return UserError(
        "--method slots found no slot to write into: all slots that the new "
        "facts or text read are read by every batch of the background, too, or "
        "the memory's output is zero; pass --method values, or a more varied "
        "--background"
    )


def _change(
    recipe: TeachingRecipe, task: keras_hub.models.Task | None
) -> TaughtModel:
    """Applies or undoes a patch; a finished model is loaded to suit it."""
    flag = "--apply" if recipe.apply else "--revert"
    path: Any = recipe.apply or recipe.revert
    try:
        patch = MemoryPatch.load(path)
        if task is None:
            task = change_finished(recipe.model, patch)
        change = patch.apply if recipe.apply else patch.revert
        change(task)
    except ValueError as error:
        raise UserError(f"{flag}: {error}") from error
    done = "applied" if recipe.apply else "reverted"
    return TaughtModel(task, patch, {done: patch.num_rows})


def _write(recipe: TeachingRecipe, taught: TaughtModel) -> str:
    """Writes the run, whole or not at all."""
    source = RunDirectory(recipe.model)
    around = RunDirectory(source.root.parent)
    # How often slots are read is counted with the last model.
    has_counts = source.root != around.best
    if source.root in (around.best, around.last):
        # The preset of a run.
        source = around
    with (
        writing_results(recipe.out),
        new_directory(recipe.out) as partial,
    ):
        run = RunDirectory(partial)
        run.create(recipe)
        save_preset(taught.task, taught.task.preprocessor, run.last)
        if taught.importance is not None:
            taught.importance.save(run.document_frequencies)
        elif (
            taught.patch is not None
            and has_counts
            and source.document_frequencies.exists()
        ):
            # Only where queries are as they were, slots are read as often.
            shutil.copyfile(
                source.document_frequencies, run.document_frequencies
            )
        results = {"best_model": run.name_of(run.last), **taught.figures}
        # Where other weights have changed, no patch can be undone.
        patches = []
        if taught.patch is not None:
            patches = source.read_results().get("patches", [])
            taught.patch.save(run.patch)
            name = recipe.apply or RunDirectory(recipe.out).patch
            described = describe_patch(taught.patch, run.patch, name)
            if recipe.revert:
                run.patch.unlink()
                patches = without(patches, described)
            else:
                results["patch"] = described
                patches = [*patches, described]
        results["patches"] = patches
        table = format_results(results)
        run.write_results(results, table)
    return table
