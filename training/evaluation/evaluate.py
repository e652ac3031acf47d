"""Measures a masked language model on text, as a recipe says."""

import contextlib

from tqdm import tqdm

from training.batches.masked_lm import held_out_batches
from training.batches.one_by_one import one_by_one
from training.evaluation.recipe import EvaluationRecipe
from training.loading.pretrained_model import load_masked_lm
from training.measuring.ablation import ablated_memory
from training.measuring.perplexity import MaskedLMEvaluator
from training.measuring.text_batches import input_length
from training.measuring.text_batches import pack_text
from training.text.corpus import open_corpus


def evaluate(recipe: EvaluationRecipe) -> dict:
    """Measures as the recipe says, and returns the figures.

    Raises:
        UserError: the recipe cannot be carried out.
    """
    recipe.check()
    corpus = open_corpus(recipe.text, recipe.data_dir)
    corpus.check()
    task, _, tokenizer = load_masked_lm(recipe.model)
    ablation = contextlib.nullcontext()
    if recipe.ablate_memory is not None:
        ablation = ablated_memory(task, recipe.ablate_memory)
    length = input_length(recipe, task.backbone.max_sequence_length)
    with (
        ablation,
        pack_text(
            corpus,
            tokenizer,
            sequence_length=length,
            mask_rate=recipe.mask_rate,
            limit=recipe.limit,
        ) as text,
    ):
        if recipe.pseudo:
            batches = one_by_one(text.rows, text.masking, recipe.batch_size)
        else:
            batches = held_out_batches(
                text.rows,
                batch_size=recipe.batch_size,
                seed=recipe.seed,
                masking=text.masking,
            )
        evaluation = MaskedLMEvaluator(task).evaluate(
            batches, lambda batches: tqdm(batches, "Evaluation", disable=None)
        )
        sequences = len(text.rows)
    return {
        "model": recipe.model,
        "text": recipe.text,
        "kind": "pseudo-perplexity" if recipe.pseudo else "perplexity",
        "perplexity": evaluation.perplexity,
        "standard_error": evaluation.standard_error,
        "predicted_tokens": int(evaluation.tokens.sum()),
        "sequences": sequences,
        "sequence_length": length,
        "seed": recipe.seed,
        "ablated_memory": recipe.ablate_memory,
        "num_slots": evaluation.num_slots,
        "memory_usage": evaluation.memory_usage,
    }
