"""Measures a masked language model on text: perplexity and memory usage.

python training/evaluate_mlm.py --model runs/books --text held-out.txt
"""

import dataclasses
import json
import logging
import pathlib
import sys
import tempfile

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import tyro
from tqdm import tqdm

from keras_pkm.metrics import format_memory_usage
from keras_pkm.runs.user_error import UserError
from keras_pkm.runs.whole_files import write_whole
from training.batches.masked_lm import held_out_batches
from training.batches.masking import Masking
from training.commands.recipe_checks import check_at_least
from training.commands.recipe_checks import check_between_0_and_1
from training.commands.recipe_checks import out_of_range
from training.loading.pretrained_model import load_masked_lm
from training.measuring.perplexity import evaluate_masked_lm
from training.measuring.perplexity import one_by_one
from training.reports.paper import format_paper_perplexities
from training.text.corpus import open_corpus
from training.text.packed_text import tokenize_and_pack


@dataclasses.dataclass(frozen=True)
class EvaluationRecipe:
    """Measure a masked language model on text.

    Prints its perplexity with a standard error, and how much of each memory the
    text uses, from the same pass.
    """

    # The directory of a pretraining run, whose best model it is; a preset; or a
    # local directory of transformers.
    model: str
    # Text files or globs separated by commas, tfds:NAME, or python-docs.
    text: str
    # Directory of prepared tfds data. With it nothing is downloaded.
    data_dir: str | None = None
    # Tokens of an input. Default: as many as the model takes, at most 512.
    sequence_length: int | None = None
    # Share of the tokens to predict; of them 80% are masked, 10% replaced, 10%
    # kept.
    mask_rate: float = 0.15
    # Of the masks: two models with the same vocabulary see the same.
    seed: int = 0
    # Mask each token alone instead (pseudo-perplexity), which takes as many
    # passes as an input has tokens.
    pseudo: bool = False
    # Use only so many inputs, the first ones.
    limit: int | None = None
    # Inputs in a batch.
    batch_size: int = 64
    # File to write the figures to, as JSON.
    output: pathlib.Path | None = None


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    logging.basicConfig(format="%(message)s")
    try:
        evaluate(tyro.cli(EvaluationRecipe, args=args))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def evaluate(recipe: EvaluationRecipe) -> dict:
    """Measures as the recipe says, prints and returns the figures.

    Raises:
        UserError: the recipe cannot be carried out.
    """
    check_at_least(recipe, sequence_length=8, batch_size=1, limit=1)
    check_between_0_and_1(recipe, "mask_rate")
    corpus = open_corpus(recipe.text, recipe.data_dir)
    corpus.check()
    task, _, tokenizer = load_masked_lm(recipe.model)
    longest = task.backbone.max_sequence_length
    length = recipe.sequence_length or min(512, longest)
    if length > longest:
        raise out_of_range(
            recipe, "sequence_length", f"at most the model's {longest}"
        )
    masking = Masking.from_tokenizer(tokenizer, length, recipe.mask_rate)
    with tempfile.TemporaryDirectory() as folder:
        packed = tokenize_and_pack(
            corpus,
            tokenizer,
            length,
            str(pathlib.Path(folder) / "packed"),
            progress_label=corpus.name,
        )[: recipe.limit]
        if recipe.pseudo:
            batches = one_by_one(packed, masking, recipe.batch_size)
        else:
            batches = held_out_batches(
                packed,
                batch_size=recipe.batch_size,
                seed=recipe.seed,
                masking=masking,
            )
        evaluation = evaluate_masked_lm(
            task,
            batches,
            lambda batches: tqdm(batches, "Evaluation", disable=None),
        )
    results = {
        "model": recipe.model,
        "text": recipe.text,
        "kind": "pseudo-perplexity" if recipe.pseudo else "perplexity",
        "perplexity": evaluation.perplexity,
        "standard_error": evaluation.standard_error,
        "predicted_tokens": int(evaluation.tokens.sum()),
        "sequences": len(packed),
        "sequence_length": length,
        "seed": recipe.seed,
        "num_slots": evaluation.num_slots,
        "memory_usage": evaluation.memory_usage,
    }
    print(format_results(results))
    if recipe.output is not None:
        recipe.output.parent.mkdir(parents=True, exist_ok=True)
        write_whole(recipe.output, json.dumps(results, indent=2) + "\n")
    return results


def format_results(results: dict) -> str:
    """Returns the figures as Markdown."""
    lines = [
        f"| text | {results['kind']} | standard error | predicted tokens |",
        "|---|---:|---:|---:|",
        f"| {results['text']} | {results['perplexity']:.2f} | "
        f"{results['standard_error']:.2f} | "
        f"{results['predicted_tokens']:,} |",
    ]
    lines += format_memory_usage(results["memory_usage"], results["num_slots"])
    if results["kind"] == "perplexity":
        lines += format_paper_perplexities()
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
