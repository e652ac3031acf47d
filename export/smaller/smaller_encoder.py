"""An encoder with smaller value tables, compared with the original."""

from collections.abc import Sequence

import numpy as np

from export.graph.encoder import Encoder
from export.smaller.change import measure_change
from export.smaller.pruning import kept_slots
from export.smaller.pruning import read_mass
from export.smaller.text_inputs import inputs_of_lines
from export.smaller.text_inputs import read_lines
from export.trained.recipe import ExportRecipe
from export.trained.trained_model import TrainedModel
from training.runs.user_error import UserError

# Without --compare, one of this number of inputs is used for the comparison.
_MEASURED = 10


def make_encoder(
    model: TrainedModel, recipe: ExportRecipe
) -> tuple[Encoder | None, str]:
    """Returns the encoder to export, if any, and a table of its changes.

    The table is Markdown; it is empty if there is no text to compare on.
    """
    if model.backbone is None:
        return None, ""
    before = Encoder(model.backbone)
    if not before.tables and (recipe.prune_unused or recipe.compare):
        raise UserError(
            "--prune-unused and --compare need a model with memory, but "
            f"'{model.source.name}' has none: leave the flags out"
        )
    if not recipe.prune_unused:
        after = Encoder(model.backbone, recipe.values_dtype)
        if not recipe.compare:
            return after, ""
        return after, _compare(
            before, after, model, _inputs(model, recipe.compare)
        )
    chosen = _inputs(model, recipe.prune_unused)
    if recipe.compare:
        measured = _inputs(model, recipe.compare)
    else:
        is_measured = np.arange(len(chosen["input_mask"])) % _MEASURED == 0
        if is_measured.all():
            raise UserError(
                "--prune-unused needs text of two inputs at least, received "
                f"one of {model.sequence_length} tokens: pass more text"
            )
        measured = _rows(chosen, is_measured)
        chosen = _rows(chosen, ~is_measured)
    kept = {
        number: kept_slots(mass, recipe.keep_top)
        for number, mass in read_mass(before, chosen).items()
    }
    after = Encoder(model.backbone, recipe.values_dtype, kept)
    change = _compare(before, after, model, measured)
    count = len(chosen["input_mask"])
    return after, f"{change} Rows were chosen by {count:,} others."


def _inputs(model: TrainedModel, paths: Sequence[str]) -> dict[str, np.ndarray]:
    return inputs_of_lines(
        read_lines(paths), model.tokenizer, model.special, model.sequence_length
    )


def _compare(
    before: Encoder,
    after: Encoder,
    model: TrainedModel,
    inputs: dict[str, np.ndarray],
) -> str:
    """Measures the changes, and returns a table of them."""
    figures = measure_change(before, after, model.task, inputs, model.special)
    lines = ["| | trained | exported |", "|---|---:|---:|"]
    for number, table in before.tables.items():
        smaller = after.tables[number]
        lines += [
            f"| rows of the memory in layer {number} | {table.num_rows:,} | "
            f"{smaller.num_rows:,} |",
            f"| their size, MB | {table.size / 1e6:,.2f} | "
            f"{smaller.size / 1e6:,.2f} |",
        ]
    if "perplexity after" in figures:
        lines.append(
            f"| perplexity of masked tokens | "
            f"{figures['perplexity before']:.2f} | "
            f"{figures['perplexity after']:.2f} |"
        )
    lines.append(
        f"| change of the encoder's outputs | - | {figures['outputs']:.2%} |"
    )
    if "same label" in figures:
        lines.append(f"| same label | - | {figures['same label']:.2%} |")
    count = len(inputs["input_mask"])
    measured = f"Measured on {count:,} inputs, each a line or a part of one."
    if "perplexity after" in figures:
        measured += (
            " 15 % of their tokens were masked, none replaced or left: their "
            "perplexity is higher than that of training."
        )
    return "\n".join([*lines, "", measured])


def _rows(
    inputs: dict[str, np.ndarray], chosen: np.ndarray
) -> dict[str, np.ndarray]:
    return {name: rows[chosen] for name, rows in inputs.items()}
