"""The perplexity of a model without the contents of its memories."""

import contextlib
from typing import Literal

from tqdm import tqdm

from training.analysis.read_model import is_served
from training.analysis.read_model import masked_batches
from training.analysis.recipe import AnalysisRecipe
from training.loading.pretrained_model import load_masked_lm
from training.measuring.ablation import Ablation
from training.measuring.ablation import ablated_memory
from training.measuring.perplexity import LanguageModelEvaluator
from training.runs.user_error import UserError
from training.text.corpus import Corpus


def measure_ablations(
    recipe: AnalysisRecipe, corpus: Corpus
) -> dict[str, dict[str, float]]:
    """Measures the trained model and the ablations of `--ablate-memory`."""
    if not recipe.ablate_memory:
        return {}
    if is_served(recipe.model):
        raise UserError(
            "--ablate-memory needs a model that was not exported: pass the "
            "run that it was exported from"
        )
    task, family, tokenizer = load_masked_lm(recipe.model)
    evaluator = LanguageModelEvaluator(task)
    found: dict[str, dict[str, float]] = {}
    ways: tuple[Literal["trained"] | Ablation, ...] = (
        "trained",
        *recipe.ablate_memory,
    )
    with masked_batches(
        recipe, task.backbone, family, tokenizer, corpus
    ) as batches:
        for how in ways:
            ablation = (
                contextlib.nullcontext()
                if how == "trained"
                else ablated_memory(task, how)
            )
            with ablation:
                evaluation = evaluator.evaluate(
                    batches, lambda some: tqdm(some, "Ablation", disable=None)
                )
            found[how] = {
                "perplexity": evaluation.perplexity,
                "standard_error": evaluation.standard_error,
            }
    return found
