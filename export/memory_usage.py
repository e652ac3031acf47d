"""Measures how an exported model uses its memories, on text.

    python export/memory_usage.py --model served --text held-out.txt

asks the model's signature `memory_access`, as any client of it could.
"""

import dataclasses
import json
import sys

import tensorflow as tf

# Has operations of models that take text.
import tensorflow_text  # noqa: F401
import tyro
from tqdm import tqdm

from export.plain_text import read_lines
from export.user_error import UserError
from keras_pkm.metrics import MemoryUsage
from keras_pkm.metrics import format_memory_usage
from keras_pkm.models.memory_probe import usage_figures


@dataclasses.dataclass(frozen=True)
class UsageRecipe:
    """Measure how an exported model uses its memories, on text.

    Each line is an input of its own, a question answerer's context, or a
    pair's first text. What is longer than the model's inputs is cut, but for
    contexts.
    """

    # Directory of an exported model with memory.
    model: str
    # Text files.
    text: tuple[str, ...]
    # Directory of an exported preprocessor: encoders take no text.
    preprocessor: str | None = None
    # Lines in a batch.
    batch_size: int = 32
    # Print JSON instead of a table.
    json: bool = False


def main(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    recipe = tyro.cli(UsageRecipe, args=args)
    try:
        usage, num_slots = measure_usage(recipe)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if recipe.json:
        print(json.dumps(usage, indent=2))
    else:
        print("\n".join(format_memory_usage(usage, num_slots)[1:]))
    return 0


def measure_usage(recipe: UsageRecipe) -> tuple[dict, int]:
    """Returns the figures of each memory, by its layer, and their slots.

    Raises:
        UserError: a model cannot be loaded or asked, or there is no text.
    """
    lines = read_lines(recipe.text)
    if recipe.batch_size < 1:
        raise UserError(
            f"--batch-size must be at least 1, received {recipe.batch_size}"
        )
    model = _load(recipe.model, "--model")
    if "memory_access" not in model.signatures:
        raise UserError(
            f"--model must have a signature memory_access, but "
            f"'{recipe.model}' has {', '.join(model.signatures)}: export a "
            "model with memory"
        )
    access = model.signatures["memory_access"]
    names = set(access.structured_input_signature[1])
    preprocessor = None
    if "input_word_ids" in names:
        if recipe.preprocessor is None:
            raise UserError(
                f"--preprocessor is needed, because '{recipe.model}' takes no "
                "text: pass the directory of an exported preprocessor"
            )
        preprocessor = _load(recipe.preprocessor, "--preprocessor")
    metrics = {}
    for first in tqdm(
        range(0, len(lines), recipe.batch_size), "Usage", disable=None
    ):
        batch = tf.constant(lines[first : first + recipe.batch_size])
        if preprocessor:
            inputs = dict(preprocessor(batch))
        else:
            empty = tf.fill(tf.shape(batch), "")
            inputs = dict.fromkeys(names, empty)
            inputs[_of_a_line(names)] = batch
        found = access(**inputs)
        for name, slots in found.items():
            if not name.startswith("slots_"):
                continue
            number = int(name.removeprefix("slots_"))
            if number not in metrics:
                num_slots = int(found[f"num_slots_{number}"])
                metrics[number] = MemoryUsage(num_slots)
            weights = found[f"weights_{number}"]
            # The weights are 0 at padding, and sum to 1 elsewhere.
            mask = tf.reduce_sum(weights, [-2, -1]) > 0
            metrics[number].update_state(slots, weights, padding_mask=mask)
    return usage_figures(dict(sorted(metrics.items()))), num_slots


def _of_a_line(names):
    """The input that a line of text is given as."""
    return next(
        name for name in ("sentences", "text", "context") if name in names
    )


def _load(path, flag):
    try:
        return tf.saved_model.load(path)
    except (OSError, ValueError, tf.errors.OpError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{flag} must be the directory of an exported model, received "
            f"'{path}': {reason}"
        ) from error


if __name__ == "__main__":
    sys.exit(main())
