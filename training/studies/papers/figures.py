"""What the runs of a paper's comparison have found, as data."""

import math
import pathlib

import numpy as np

from keras_pkm.files.array_files import read_arrays
from training.measuring.paired_bootstrap import Difference
from training.measuring.paired_bootstrap import paired_difference
from training.pretraining.logs import read_staleness
from training.runs.files import check_unchanged
from training.runs.files import read_json
from training.runs.user_error import UserError
from training.studies.papers.recipe import ReproductionRecipe


def collect_figures(recipe: ReproductionRecipe) -> dict:
    """Reads what all commands have left."""
    paper = recipe.compared
    models = {
        key: {
            "title": model.title,
            "in_table": model.in_table,
            "steps": recipe.size.steps * (2 if model.goes_on else 1),
            "seeds": [
                _measured(recipe, seed, key) for seed in recipe.seeds_of(key)
            ],
        }
        for key, model in recipe.models.items()
    }
    return {
        "recipe": {
            "paper": paper.title,
            "scale": "quick" if recipe.quick else recipe.scale,
            "steps": recipe.size.steps,
            "corpus": recipe.text,
            "validation": recipe.validation,
            "out_of_domain": recipe.out_of_domain,
        },
        "models": models,
        "orderings": [
            *(
                _perplexity_ordering(recipe, *pair)
                for pair in paper.perplexity_order
            ),
            *(
                order_models("use", "top-1 use, lower layer", models, *pair)
                for pair in paper.usage_order
            ),
            *(
                order_models("first", "first perplexity", models, *pair)
                for pair in paper.first_order
            ),
        ],
        "fine_tuning": {
            task: {
                key: {
                    kind: recipe.fine_tuning(key, task, kind).read_results()[
                        "summary"
                    ]
                    for kind in model.fine_tunings
                }
                for key, model in recipe.models.items()
                if model.in_table
            }
            for task in recipe.size.tasks
        },
    }


def _measured(recipe: ReproductionRecipe, seed: int, key: str) -> dict:
    run = recipe.pretraining(seed, key)
    results = run.read_results()
    stage = results["stages"][-1]
    found = {
        "perplexity_before": stage["perplexity_before"],
        "perplexity": stage["perplexity"],
        "standard_error": stage["standard_error"],
        "bits_per_byte": stage.get("bits_per_byte"),
        "predicted_tokens": stage["predicted_tokens"],
        "num_slots": results["num_slots"],
        "memory_usage": stage.get("memory_usage", {}),
        "stale": _stale(run.root) if recipe.models[key].has_memory else {},
        "unigram_perplexity": results["unigram_perplexity"],
        "tokens_per_second": stage["tokens_per_second"],
    }
    if recipe.out_of_domain is not None:
        other = read_json(recipe.measured(seed, key))
        found["out_of_domain_perplexity"] = other["perplexity"]
        found["out_of_domain_standard_error"] = other["standard_error"]
    return found


def _stale(run: pathlib.Path) -> dict[str, float]:
    """Returns by layer the share of slots not read in training's last half."""
    shares = {}
    for number, by_step in read_staleness(str(run)).items():
        end = max(by_step)
        shares[str(number)] = sum(
            share for last, share in by_step[end].items() if 2 * last <= end
        )
    return shares


def _perplexity_ordering(
    recipe: ReproductionRecipe, lower: str, higher: str
) -> dict:
    differences = [
        paired_difference(
            _losses(recipe, seed, lower), _losses(recipe, seed, higher)
        )
        for seed in recipe.seeds_of(lower)
        if seed in recipe.seeds_of(higher)
    ]
    return {
        "kind": "perplexity",
        "what": f"perplexity {lower} < {higher}",
        "differences": [
            [found.mean, found.low, found.high] for found in differences
        ],
        "verdict": judge_order(differences),
    }


def judge_order(differences: list[Difference]) -> str:
    """Says whether an order of perplexities was seen, with every seed."""
    seen = [found.low > 0 for found in differences]
    reversed_ = [found.high < 0 for found in differences]
    if all(seen):
        return "seen"
    if all(reversed_):
        return "the other way round"
    if any(seen) and any(reversed_):
        return "the seeds disagree"
    return "not told apart"


def order_models(
    kind: str, name: str, models: dict, higher: str, lower: str
) -> dict:
    """Returns by how much one model's figure is higher than another's."""
    differences = [
        _COMPARED[kind](first) - _COMPARED[kind](second)
        for first, second in zip(
            models[higher]["seeds"], models[lower]["seeds"]
        )
    ]
    return {
        "kind": kind,
        "what": f"{name} {higher} >= {lower}",
        "differences": differences,
        "verdict": "seen" if min(differences) >= 0 else "not seen",
    }


def _lower_layer(found: dict) -> dict[str, float]:
    usage = found["memory_usage"]
    return usage[min(usage, key=int)]


_COMPARED = {
    "use": lambda found: _lower_layer(found)["top1_mu"],
    "first": lambda found: math.log(found["perplexity_before"]),
}


def _losses(
    recipe: ReproductionRecipe, seed: int, key: str
) -> tuple[np.ndarray, np.ndarray]:
    run = recipe.pretraining(seed, key)
    check_unchanged(run.held_out_losses, "--out")
    try:
        losses = read_arrays(run.held_out_losses)
    except ValueError as error:
        raise UserError(str(error)) from error
    return losses["nll"], losses["tokens"]
