"""What the runs of a comparison leave, without training."""

import json

import numpy as np

from keras_pkm.callbacks.slot_counts import write_slot_counts
from training.pretraining.recipe import parse_recipe
from training.runs.recipes import recipe_as_json
from training.studies.papers.study import PaperStudy

NUM_SLOTS = 16


def write_comparison(recipe):
    """Writes results, losses and logs of all runs.

    The models' losses are a tenth of a nat apart, in the order of their keys:
    the first is the worst.
    """
    study = PaperStudy(recipe)
    jobs = {job.result: job for job in study.jobs()}
    for seed in range(recipe.seeds):
        for place, key in enumerate(recipe.models):
            if seed not in recipe.seeds_of(key):
                continue
            run = recipe.pretraining(seed, key)
            _write_run(
                run, jobs[run.results].args[:], place, recipe.models[key]
            )
            if recipe.out_of_domain is not None:
                figures = {"perplexity": 90.0 + place, "standard_error": 1.5}
                path = recipe.measured(seed, key)
                path.write_text(json.dumps(figures))
    for job in jobs.values():
        if job.script == "finetune.py":
            job.result.parent.mkdir(parents=True)
            share = 0.7 + 0.01 * len(job.result.parts)
            figures = dict.fromkeys(("median", "min", "max"), share)
            summary = {"dev accuracy": figures}
            job.result.write_text(json.dumps({"summary": summary}))


def _write_run(run, args, place, model):
    recipe = parse_recipe(list(args))
    label = recipe.memory_block
    logs = run.stage_logs(label)
    run.logs.mkdir(parents=True)
    run.recipe.write_text(json.dumps(recipe_as_json(recipe)))
    rng = np.random.default_rng(0)
    tokens = rng.integers(3, 6, 256).astype("float64")
    # The same noise for all models, which a paired comparison takes away.
    nll = tokens * (4.0 - 0.1 * place) + rng.normal(0, 1, 256)
    np.savez(run.held_out_losses, nll=nll, tokens=tokens)
    stage = {
        "name": label,
        "steps": recipe.steps,
        "perplexity_before": 60.0 + place if model.goes_on else None,
        "perplexity": float(np.exp(nll.sum() / tokens.sum())),
        "standard_error": 0.5,
        "predicted_tokens": int(tokens.sum()),
        "tokens_per_second": 1000.0,
    }
    if recipe.backbone == "gpt2":
        stage["bits_per_byte"] = 2.5
    if model.has_memory:
        stage["memory_usage"] = {
            "1": {
                "mu": 0.9,
                "top1_mu": 0.5 + 0.05 * place,
                "kl_u": 0.4,
                "kl_w": 0.3,
                "top1_reads": 100 * NUM_SLOTS,
            }
        }
        for step in (2, 4):
            top1 = np.zeros(NUM_SLOTS, int)
            top1[: NUM_SLOTS - 3 * step] = 1
            counts = {1: {"reads": 4 * top1, "top1": top1}}
            write_slot_counts(logs.slots, step, counts)
    results = {
        "unigram_perplexity": 400.0,
        "num_slots": NUM_SLOTS,
        "stages": [stage],
    }
    run.results.write_text(json.dumps(results))
    logs.epochs.write_text("epoch,val_perplexity\n0,80.0\n1,60.0\n")
    logs.perplexity.write_text("step,perplexity\n1,200.0\n2,90.0\n")
