"""The perplexity of a model without the contents of its memories."""

import contextlib

from tqdm import tqdm

from keras_pkm.runs.user_error import UserError
from training.analysis.read_model import is_served
from training.analysis.recipe import AnalysisRecipe
from training.batches.masked_lm import held_out_batches
from training.loading.pretrained_model import load_masked_lm
from training.measuring.ablation import ablated_memory
from training.measuring.perplexity import MaskedLMEvaluator
from training.measuring.text_batches import input_length
from training.measuring.text_batches import pack_text
from training.text.corpus import Corpus


def measure_ablations(
    recipe: AnalysisRecipe, corpus: Corpus
) -> dict[str, dict[str, float]]:
    """Measures as `--ablate-memory` says, and the model as it is.

    Returns:
        Perplexity and its standard error, by `"trained"`, and by the ablation;
        nothing without the flag.

    Raises:
        UserError: the model was exported, or has no masked-LM head.
    """
    if not recipe.ablate_memory:
        return {}
    if is_served(recipe.model):
        raise UserError(
            "--ablate-memory needs a model that was not exported: pass the "
            "run that it was exported from"
        )
    task, _, tokenizer = load_masked_lm(recipe.model)
    evaluator = MaskedLMEvaluator(task)
    found = {}
    with pack_text(
        corpus,
        tokenizer,
        sequence_length=input_length(recipe, task.backbone.max_sequence_length),
        mask_rate=recipe.mask_rate,
        limit=recipe.limit,
    ) as text:
        batches = held_out_batches(
            text.rows,
            batch_size=recipe.batch_size,
            seed=recipe.seed,
            masking=text.masking,
        )
        for how in ("trained", *recipe.ablate_memory):
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
