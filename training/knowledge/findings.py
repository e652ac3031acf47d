"""Collects the findings of a comparison of recall."""

import statistics

import numpy as np

from training.knowledge.contenders import CONTENDERS
from training.knowledge.rate_grid import best_rates
from training.knowledge.rate_grid import tried_trials
from training.knowledge.recall_directory import RecallDirectory
from training.knowledge.recipe import RecallRecipe
from training.knowledge.sweep import tried_series
from training.knowledge.trials import main_trials


def collect_findings(recipe: RecallRecipe) -> dict:
    """Reads the figures of all jobs."""
    directory = RecallDirectory(recipe.out)
    times = directory.read_step_times()
    contenders = {}
    for key in recipe.contenders:
        trials = [trial for trial in main_trials(recipe) if trial.key == key]
        seeds = [directory.read_trial(trial) for trial in trials]
        stages = times.stages(recipe, trials[0])
        contenders[key] = {
            "title": CONTENDERS[key].title,
            "width": times.width(recipe, key),
            "milliseconds": [1000 * seconds for _, _, seconds in stages],
            "rates": list(best_rates(recipe, key)),
            "parameters": seeds[0]["parameters"],
            "optimizer_bytes": seeds[0].get("optimizer_bytes"),
            "steps": seeds[0]["steps"],
            "seconds": seeds[0]["seconds"],
            "exposures": seeds[0]["exposures"],
            "recall": _median(seeds, "recall"),
            "bits": _median(seeds, "bits"),
            "curve": _median_curve([seed["curve"] for seed in seeds]),
            "grid": [
                directory.read_trial(trial) | {"rates": trial.rates}
                for trial in tried_trials(recipe, key)
            ],
            "seeds": seeds,
        }
    return {
        "facts": recipe.facts,
        "seconds": recipe.seconds,
        "num_sub_keys": recipe.num_sub_keys,
        "contenders": contenders,
        "sweep": [
            {
                "contender": trial.key,
                "num_sub_keys": trial.num_sub_keys,
                **directory.read_trial(trial),
            }
            for trial in tried_series(recipe)
        ],
    }


def _median(seeds, name):
    if seeds[0][name] is None:
        return None
    return statistics.median(seed[name] for seed in seeds)


def _median_curve(curves):
    return [
        {
            "step": points[0]["step"],
            "seconds": points[0]["seconds"],
            "recall": float(np.median([point["recall"] for point in points])),
        }
        for points in zip(*curves)
    ]
