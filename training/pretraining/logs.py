"""Reads the logs of a pretraining run.

A run that was interrupted resumes at an earlier step, and logs the steps from
there again: the last row of each step counts.
"""

import csv
import pathlib
from collections.abc import Iterable

import numpy as np

from keras_pkm.callbacks.slot_counts import list_slot_counts
from keras_pkm.callbacks.slot_counts import read_slot_counts
from keras_pkm.metrics.memory_staleness import NEVER
from training.pretraining.recipe import PretrainingRecipe
from training.pretraining.stages import plan_stages
from training.runs.files import check_unchanged
from training.runs.recipes import recipe_from_json
from training.runs.run_directory import RunDirectory
from training.runs.user_error import UserError


def read_rows(path: pathlib.Path, *key: str) -> list[dict[str, str]]:
    """Returns the rows of a log in order; of equal rows, only the last."""
    if not path.exists():
        return []
    check_unchanged(path, "--runs")
    rows = {}
    with open(path, newline="", encoding="utf-8", errors="replace") as file:
        reader = csv.DictReader(file)
        try:
            if not set(key) <= set(reader.fieldnames or ()):
                raise ValueError(f"it has no column {' or '.join(key)}")
            for row in reader:
                if None in row.values() or None in row:
                    raise ValueError("it has another number of columns")
                rows[tuple(int(row[name]) for name in key)] = row
        except (ValueError, KeyError, csv.Error) as error:
            raise _damaged(path, reader.line_num, error) from error
    return [rows[place] for place in sorted(rows)]


def _damaged(
    path: pathlib.Path, line: int | str, reason: Exception
) -> UserError:
    return UserError(
        f"--runs must be runs whose logs can be read, but line {line} of "
        f"'{path}' cannot ({reason}): put back a copy of the file"
    )


def _read_points(
    path: pathlib.Path, key: str, column: str
) -> list[tuple[int, float]]:
    """Returns pairs of the number in column `key` and that in `column`."""
    points = []
    for row in read_rows(path, key):
        try:
            points.append((int(row[key]), float(row[column])))
        except (ValueError, KeyError) as error:
            raise _damaged(path, f"{key} {row[key]}", error) from error
    return points


def read_curves(path: str) -> dict[str, dict[str, list]]:
    """Returns the perplexities of each stage of a run while it trained."""
    run, recipe = _open_run(path)
    curves = {}
    for stage in plan_stages(recipe):
        logs = run.stage_logs(stage.label)
        held_out = [
            ((epoch + 1) * stage.evaluate_every, perplexity)
            for epoch, perplexity in _read_points(
                logs.epochs, "epoch", "val_perplexity"
            )
        ]
        training = _read_points(logs.perplexity, "step", "perplexity")
        if held_out:
            curves[stage.name] = {"training": training, "held_out": held_out}
    return curves


def read_curves_of_runs(paths: Iterable[str]) -> dict[str, dict[str, list]]:
    """Returns the curves of all stages of several runs, by name.

    Runs are named by their directories, or by their whole paths if two
    directories have the same name. Each run is read once.
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
    """Returns when slots were last read, in a run with memory."""
    run, recipe = _open_run(path)
    directory = run.stage_logs(plan_stages(recipe)[-1].label).slots
    check_unchanged(directory, "--model")
    last: dict[int, np.ndarray] = {}
    histograms: dict[int, dict[int, dict[int, float]]] = {}
    for step in list_slot_counts(directory):
        for number, counts in _read_counts(directory, step).items():
            before = last.get(number, NEVER)
            last[number] = np.where(counts["top1"] > 0, step, before)
            steps, slots = np.unique(last[number], return_counts=True)
            histograms.setdefault(number, {})[step] = dict(
                zip(steps.tolist(), (slots / len(last[number])).tolist())
            )
    return histograms


def _read_counts(
    directory: pathlib.Path, step: int
) -> dict[int, dict[str, np.ndarray]]:
    try:
        return read_slot_counts(directory, step)
    except ValueError as error:
        raise UserError(f"--model must be a run whose {error}") from error


def _open_run(path: str) -> tuple[RunDirectory, PretrainingRecipe]:
    run = RunDirectory(path)
    if not run.is_pretraining_run:
        raise UserError(
            f"--runs must be directories of pretraining runs, but '{path}' has "
            "no recipe.json of one: pass those that training/pretrain.py wrote"
        )
    stored = run.read_recipe("--runs")
    return run, recipe_from_json(stored, PretrainingRecipe, path, "--runs")
