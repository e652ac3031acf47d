"""What the logs of a pretraining run tell."""

import csv
import dataclasses
import json
import pathlib
from collections.abc import Iterable

import numpy as np

from keras_pkm.callbacks.slot_counts import list_slot_counts
from keras_pkm.callbacks.slot_counts import read_slot_counts
from keras_pkm.runs.run_directory import RunDirectory
from keras_pkm.runs.user_error import UserError
from training.pretraining.recipe import PretrainingRecipe
from training.pretraining.stage import default_evaluate_every
from training.pretraining.stage import plan_stages

# Instead of a step, for slots that were never read.
NEVER = -1


def read_curves(path: str) -> dict[str, dict[str, list]]:
    """Returns the perplexities of each stage of a run while it trained.

    Args:
        path: of the run's directory.

    Returns:
        By the stage's name `"training"` and `"held_out"`, lists of pairs of a
        step and a perplexity.

    Raises:
        UserError: it is not a pretraining run.
    """
    run, recipe = _open_run(path)
    curves = {}
    for stage in plan_stages(recipe):
        every = recipe.evaluate_every or default_evaluate_every(stage.steps)
        logs = run.logs / stage.label
        held_out = [
            ((int(row["epoch"]) + 1) * every, float(row["val_perplexity"]))
            for row in _rows(logs.with_suffix(".csv"))
        ]
        training = [
            (int(row["step"]), float(row["perplexity"]))
            for row in _rows(logs.with_name(f"{stage.label}-perplexity.csv"))
        ]
        if held_out:
            curves[stage.name] = {"training": training, "held_out": held_out}
    return curves


def read_curves_of_runs(paths: Iterable[str]) -> dict[str, dict[str, list]]:
    """Returns the curves of all stages of several runs, by names.

    A run is named by its directory, or by its whole path, if two directories
    have the same name. Each is read once.

    Raises:
        UserError: one is not a pretraining run.
    """
    paths = list(dict.fromkeys(paths))
    names = [pathlib.Path(path).name for path in paths]
    if len(set(names)) < len(names):
        names = paths
    return {
        f"{name}, {stage}": lines
        for name, path in zip(names, paths)
        for stage, lines in read_curves(path).items()
    }


def read_staleness(path: str) -> dict[int, dict[int, dict[int, float]]]:
    """Returns when slots were read for the last time, in a run with memory.

    Args:
        path: of the run's directory.

    Returns:
        By the number of the layer and the step of a checkpoint, the shares of
        the slots by the last step, up to that one, at which they were the best
        of a head; `NEVER` stands for those that have not been.

    Raises:
        UserError: it is not a pretraining run.
    """
    run, recipe = _open_run(path)
    directory = run.logs / f"{plan_stages(recipe)[-1].label}-slots"
    last, histograms = {}, {}
    for step in list_slot_counts(directory):
        for number, counts in read_slot_counts(directory, step).items():
            before = last.get(number, NEVER)
            last[number] = np.where(counts["top1"] > 0, step, before)
            steps, slots = np.unique(last[number], return_counts=True)
            histograms.setdefault(number, {})[step] = dict(
                zip(steps.tolist(), (slots / len(last[number])).tolist())
            )
    return histograms


def is_pretraining_run(path: str) -> bool:
    """Whether a path is the directory of a pretraining run."""
    recipe = pathlib.Path(path) / "recipe.json"
    return recipe.exists() and "corpus" in json.loads(
        recipe.read_text(encoding="utf-8")
    )


def _open_run(path):
    if not is_pretraining_run(path):
        raise UserError(
            f"--runs must be directories of pretraining runs, but '{path}' has "
            "no recipe.json of one: pass those that training/pretrain.py wrote"
        )
    run = RunDirectory(path)
    fields = json.loads(run.recipe.read_text(encoding="utf-8"))
    # As JSON has tuples.
    fields["memory_layers"] = tuple(fields["memory_layers"] or ())
    known = {field.name for field in dataclasses.fields(PretrainingRecipe)}
    if unknown := sorted(set(fields) - known):
        raise UserError(
            f"--runs must be runs of this version or an earlier one, but the "
            f"recipe of '{path}' has {', '.join(unknown)}: update keras_pkm"
        )
    return run, PretrainingRecipe(**fields)


def _rows(path):
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
