"""An encoder with smaller value tables, and what that changes."""

import numpy as np

from export.change import measure_change
from export.encoder import Encoder
from export.model import TrainedModel
from export.plain_text import inputs_of_lines
from export.plain_text import read_lines
from export.pruning import kept_slots
from export.pruning import read_mass
from export.recipe import ExportRecipe
from export.user_error import UserError

# One input of so many says how much the model changes.
_MEASURED = 10


def make_encoder(
    model: TrainedModel, recipe: ExportRecipe
) -> tuple[Encoder | None, str]:
    """Returns the encoder to export, if any, and what pruning changed.

    That is a Markdown table, empty without `--prune-unused`.

    Raises:
        UserError: there is nothing to prune, or no text to choose by.
    """
    if model.backbone is None:
        return None, ""
    if not recipe.prune_unused:
        return Encoder(model.backbone, recipe.values_dtype), ""
    before = Encoder(model.backbone)
    if not before.tables:
        raise UserError(
            f"--prune-unused needs a model with memory, but "
            f"'{model.source.name}' has none: leave the flag out"
        )
    inputs = inputs_of_lines(
        read_lines(recipe.prune_unused),
        model.tokenizer,
        model.special,
        model.sequence_length,
    )
    is_measured = np.arange(len(inputs["input_mask"])) % _MEASURED == 0
    if is_measured.all():
        raise UserError(
            "--prune-unused needs text of two inputs at least, received "
            f"one of {model.sequence_length} tokens: pass more text"
        )
    mass = read_mass(before, _rows(inputs, ~is_measured))
    kept = {
        number: kept_slots(reads, recipe.keep_top)
        for number, reads in mass.items()
    }
    after = Encoder(model.backbone, recipe.values_dtype, kept)
    figures = measure_change(
        before, after, model.task, _rows(inputs, is_measured), model.special
    )
    return after, _format(before, after, figures, is_measured)


def _rows(inputs, chosen):
    return {name: rows[chosen] for name, rows in inputs.items()}


def _format(before, after, figures, is_measured):
    lines = ["| | before | after |", "|---|---:|---:|"]
    for number, table in before.tables.items():
        smaller = after.tables[number]
        lines += [
            f"| rows of the memory in layer {number} | {table.num_rows:,} | "
            f"{smaller.num_rows:,} |",
            f"| its size, MB | {table.size / 1e6:,.2f} | "
            f"{smaller.size / 1e6:,.2f} |",
        ]
    if "perplexity after" in figures:
        lines.append(
            f"| perplexity of masked tokens | "
            f"{figures['perplexity before']:.2f} | "
            f"{figures['perplexity after']:.2f} |"
        )
    lines += [
        f"| change of the encoder's outputs | - | {figures['outputs']:.2%} |"
    ]
    if "same label" in figures:
        lines.append(f"| same label | - | {figures['same label']:.2%} |")
    lines += [
        "",
        f"Rows chosen by {np.sum(~is_measured):,} inputs, changes measured on "
        f"{np.sum(is_measured):,} others.",
    ]
    return "\n".join(lines)
