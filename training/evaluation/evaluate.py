"""Measures a language model on text."""

import dataclasses

from keras_pkm.metrics import format_memory_usage
from training.batches.objectives import MaskedTokens
from training.batches.one_by_one import one_by_one
from training.commands.fields import NO_MASKS
from training.commands.fields import check_data_dir
from training.commands.fields import check_unused
from training.corpora.corpus import open_corpus
from training.evaluation.recipe import EvaluationRecipe
from training.loading.families import EncoderFamily
from training.loading.pretrained_model import load_language_model
from training.measuring.ablation import ablated_memory
from training.measuring.perplexity import LanguageModelEvaluator
from training.measuring.text_batches import input_length
from training.measuring.text_batches import pack_text
from training.reports.markdown import markdown_table
from training.reports.paper import format_paper_perplexities
from training.runs.user_error import UserError


def evaluate(recipe: EvaluationRecipe) -> dict:
    """Measures what the recipe asks for, and returns the figures."""
    recipe.check()
    check_data_dir(recipe, recipe.text)
    corpus = open_corpus(recipe.text, recipe.data_dir)
    task, family, tokenizer = load_language_model(recipe.model)
    if recipe.pseudo and not isinstance(family, EncoderFamily):
        raise UserError(
            "--pseudo masks tokens, which a causal model cannot read, received "
            f"--model {recipe.model}: leave the flag out"
        )
    if not isinstance(family, EncoderFamily):
        check_unused(recipe, ("mask_rate", "seed"), NO_MASKS)
    length = input_length(recipe, task.backbone.max_sequence_length)
    objective = family.make_objective(tokenizer, length, recipe.mask_rate)
    with (
        ablated_memory(task, recipe.ablate_memory),
        pack_text(corpus, objective, recipe.limit) as text,
    ):
        rows = None
        if recipe.pseudo and isinstance(objective, MaskedTokens):
            batches, rows = one_by_one(
                text.rows, objective.masking, recipe.batch_size
            )
        else:
            batches = objective.held_out_batches(
                text.rows, batch_size=recipe.batch_size, seed=recipe.seed
            )
        evaluator = LanguageModelEvaluator(task)
        evaluation = evaluator.evaluate(batches, "Evaluation")
        if rows is not None:
            evaluation = evaluation.grouped(rows)
        sequences = len(text.rows)
        num_bytes = objective.count_bytes(text.rows)
    evaluation = dataclasses.replace(evaluation, num_bytes=num_bytes)
    return {
        "model": recipe.model,
        "text": recipe.text,
        "kind": "pseudo-perplexity" if recipe.pseudo else "perplexity",
        "perplexity": evaluation.perplexity,
        "standard_error": evaluation.standard_error,
        "bits_per_byte": evaluation.bits_per_byte,
        "predicted_tokens": int(evaluation.tokens.sum()),
        "sequences": sequences,
        "sequence_length": length,
        "seed": recipe.seed,
        "ablated_memory": recipe.ablate_memory,
        "num_slots": evaluation.num_slots,
        "memory_usage": evaluation.memory_usage,
    }


_ABLATIONS = {
    "zero": "All values of the memories were set to zero.",
    "shuffle": "The rows of the memories' tables were shuffled.",
}


def format_results(results: dict) -> str:
    """Returns the figures as Markdown."""
    columns = ["text", results["kind"], "standard error", "predicted tokens"]
    error = results["standard_error"]
    row = [
        results["text"],
        f"{results['perplexity']:.2f}",
        "-" if error is None else f"{error:.2f}",
        f"{results['predicted_tokens']:,}",
    ]
    is_causal = results["bits_per_byte"] is not None
    if is_causal:
        columns.append("bits/byte")
        row.append(f"{results['bits_per_byte']:.3f}")
    table = markdown_table(columns, [row])
    usage = format_memory_usage(results["memory_usage"], results["num_slots"])
    lines = [table, *usage]
    if results["ablated_memory"] is not None:
        lines += ["", _ABLATIONS[results["ablated_memory"]]]
    # The paper has masked language models only.
    if results["kind"] == "perplexity" and not is_causal:
        lines += ["", format_paper_perplexities()]
    return "\n".join(lines)
