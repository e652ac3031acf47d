"""Trains one model on facts, and measures how many it knows."""

import time
from typing import Any

import numpy as np

from keras_pkm.models import copy_matching_weights
from training.facts.fact_batches import Facts
from training.facts.fact_batches import some_facts
from training.facts.fact_batches import training_batches
from training.measuring.ablation import ABLATIONS
from training.measuring.ablation import ablated_memory
from training.measuring.ablation import int8_memory
from training.measuring.perplexity import LanguageModelEvaluator
from training.studies.recall.models import build_model
from training.studies.recall.models import compile_model
from training.studies.recall.recipe import RecallRecipe
from training.studies.recall.step_times import StepTimes
from training.studies.recall.trials import Trial

# During training, recall is measured on this number of facts, at this number of
# points.
_ASKED = 4000
_POINTS = 12
_BATCH = 1000


def learn(
    recipe: RecallRecipe,
    trial: Trial,
    times: StepTimes,
    rates: tuple[float, float],
) -> dict:
    """Trains a model on all facts, and measures how many it knows."""
    facts = recipe.open_facts(trial.num_facts)
    stages = times.stages(recipe, trial)
    model: Any = None
    done, seconds, curve = 0, 0.0, []
    began = time.perf_counter()
    for key, steps, seconds_a_step in stages:
        start = model
        model = build_model(
            recipe,
            facts,
            key,
            seed=trial.seed,
            width=times.width(recipe, key),
            num_sub_keys=trial.num_sub_keys,
            expert_rate=rates[1] / rates[0] if rates[0] else 1.0,
        )
        if start is not None:
            copy_matching_weights(start, model)
        compile_model(model, recipe, key, steps=steps, rates=rates)
        evaluator = LanguageModelEvaluator(model)
        for some in _spread(steps, max(1, _POINTS // len(stages))):
            batches = training_batches(
                facts,
                batch_size=recipe.batch_size,
                seed=trial.seed,
                first_step=done,
                num_steps=some,
            )
            model.fit(batches, shuffle=False, verbose=0)
            done += some
            seconds += some * seconds_a_step
            known = measure(evaluator, facts, at_most=_ASKED)
            known = {name: known[name] for name in ("recall", "bits")}
            curve.append({"step": done, "seconds": seconds, **known})
    found = {
        "candidate": trial.key,
        "seed": trial.seed,
        "facts": facts.num_facts,
        "rates": list(rates),
        "parameters": sum(
            each.numpy().size for each in model.trainable_variables
        ),
        "optimizer_bytes": sum(
            each.numpy().nbytes for each in model.optimizer.variables
        ),
        "steps": done,
        "seconds": seconds,
        "exposures": done * recipe.batch_size / facts.num_facts,
        "seconds_of_training": time.perf_counter() - began,
        **measure(evaluator, facts),
        "curve": curve,
    }
    if trial.candidate.has_memory:
        found["ablated"] = {}
        for how in ABLATIONS:
            with ablated_memory(model, how):
                found["ablated"][how] = measure(evaluator, facts)["recall"]
        with int8_memory(model):
            known = measure(evaluator, facts)
        found["int8"] = {name: known[name] for name in ("recall", "bits")}
    return found


def measure(
    evaluator: LanguageModelEvaluator, facts: Facts, at_most: int | None = None
) -> dict:
    """Measures how many facts a model knows."""
    found = evaluator.evaluate(some_facts(facts, _BATCH, at_most))
    bits = None
    if facts.bits is not None:
        unknown = found.nll.mean() / np.log(2)
        bits = facts.bits - facts.num_facts * float(unknown)
    return {
        "recall": float(found.exact.mean()),
        "bits": bits,
        "memory_usage": found.memory_usage,
    }


def _spread(steps: int, parts: int) -> list[int]:
    """Divides a number of steps into about equal parts, none of them empty."""
    ends = np.linspace(0, steps, min(parts, steps) + 1).round().astype(int)
    return [int(some) for some in np.diff(ends)]
