"""The settings of a fine-tuning run.

The command line has one flag for each field; the comment above is its help.
"""

import dataclasses
from typing import TYPE_CHECKING
from typing import Any
from typing import Literal

from training.commands.fields import Count
from training.commands.fields import Length
from training.commands.fields import Rate
from training.commands.fields import Seed
from training.commands.fields import Share
from training.commands.fields import check_data_dir
from training.commands.fields import check_fields
from training.commands.fields import check_unused
from training.commands.fields import out_of_range
from training.commands.recipe_groups import Machine
from training.commands.recipe_groups import MemorySizes
from training.commands.recipe_groups import Run
from training.commands.recipe_groups import Schedule
from training.commands.recipe_groups import recipe
from training.loading.pretrained_model import PretrainedModel
from training.runs.user_error import UserError
from training.tasks.glue import GLUE
from training.tasks.glue import GlueTask

SQUAD = "squad"
if TYPE_CHECKING:
    TaskName = str
else:
    TaskName = Literal[(*GLUE, SQUAD)]


@recipe
class FinetuningRecipe(MemorySizes, Schedule, Machine, Run):
    """Fine-tune a pretrained model on one of the paper's tasks.

    $ python training/finetune.py --task sst2 --model runs/books
    $ python training/finetune.py --task sst2 --model runs/books --seeds 5
    $ python training/finetune.py --task squad --model runs/books --squad SQuAD

    Prints the figures on the dev sets, over one or more seeds, beside the
    paper's. Section and table numbers refer to Kim and Jung, "Large Product
    Key Memory for Pretrained Language Models" (2020).

    --verbose also shows the messages of TensorFlow.
    """

    # The task to fine-tune on.
    task: TaskName
    # The model to fine-tune: the directory of a pretraining run, a local preset
    # or one of KerasHub, or a local directory of transformers.
    model: str
    # Use the model's sizes and vocabulary, but random initial weights, as a
    # baseline without pretraining.
    from_scratch: bool = False

    # --- Data ---

    # Directory of GLUE's TSV files, or tfds.
    glue: str = "tfds"
    # Directory of SQuAD's JSON files, or tfds.
    squad: str = "tfds"
    # Directory of prepared tfds data. With it nothing is downloaded.
    data_dir: str | None = None
    # Skip rows that cannot be used and list them, instead of stopping with an
    # error.
    skip_bad_rows: bool = False
    # Number of tokens of an input. Default: 128 for GLUE, 384 for SQuAD, but no
    # more than the model takes.
    sequence_length: Length | None = None
    # Number of tokens between the starts of two windows of a paragraph (SQuAD).
    stride: Count = 128
    # Maximum number of tokens of an answer (SQuAD).
    answer_length: Count = 30
    # Use only this number of training examples, from the beginning.
    limit: Count | None = None

    # --- Memory ---

    # Memory to add to a plain model: resm adds it beside the feed-forward
    # network, pkm replaces the network (section 3.2).
    memory_block: Literal["resm", "pkm"] | None = None
    # The layers to add memory to, counted from 1 (section 4.1).
    memory_layers: tuple[int, ...] = ()
    # Parts of all memories to freeze (table 5).
    freeze: tuple[Literal["values", "keys", "queries"], ...] = ()

    # --- Schedule ---

    # Number of passes over the training set. Default: 10 for GLUE, 3 for SQuAD.
    epochs: Count | None = None
    # Put examples of similar length into the same batch. There is less padding,
    # which is much faster if lengths vary, but the batches are different.
    group_by_length: bool = False
    # Peak learning rate. Default: 2e-5 for GLUE, 5e-5 for SQuAD.
    learning_rate: Share | None = None
    # Peak learning rate of the memory values, which the paper does not give.
    # Default: ten times --learning-rate.
    memory_learning_rate: Share | None = None
    # Decoupled weight decay; excludes memory values, biases and norms.
    # Default: 0.1 for GLUE, 0.01 for SQuAD.
    weight_decay: Rate | None = None
    # Dropout of the encoder.
    dropout: Rate = 0.1
    # Number of seeds to fine-tune with. The seed decides on the head's initial
    # weights, dropout and the order of the examples. The paper has five.
    seeds: Count = 1
    # The first seed.
    seed: Seed = 0

    # --- Machine and run ---

    strategy: Literal["default", "mirrored"] = "default"

    @property
    def is_squad(self) -> bool:
        """Whether the task is question answering."""
        return self.task == SQUAD

    @property
    def glue_task(self) -> GlueTask:
        """The GLUE task."""
        return GLUE[self.task]

    def with_defaults(self, longest: int) -> "FinetuningRecipe":
        """Returns the recipe with the paper's settings for unset fields."""
        length, epochs, rate, decay = (
            (384, 3, 5e-5, 0.01) if self.is_squad else (128, 10, 2e-5, 0.1)
        )
        if self.learning_rate is not None:
            rate = self.learning_rate
        defaults = {
            "sequence_length": min(length, longest),
            "epochs": epochs,
            "learning_rate": rate,
            "memory_learning_rate": 10 * rate,
            "weight_decay": decay,
        }
        missing: dict[str, Any] = {
            name: value
            for name, value in defaults.items()
            if getattr(self, name) is None
        }
        return dataclasses.replace(self, **missing)

    def added_memory(self) -> dict | None:
        """Returns the arguments for adding memory, or `None` for no memory."""
        if not self.memory_layers:
            return None
        return {
            "memory_layers": self.memory_layers,
            "memory_block": self.memory_block or "resm",
            "memory": self.memory_config(),
        }


def check_recipe(recipe: FinetuningRecipe, pretrained: PretrainedModel) -> None:
    """Checks the numbers of a recipe, and that its flags fit the model."""
    check_fields(recipe)
    longest = pretrained.backbone.max_sequence_length
    if recipe.sequence_length > longest:
        raise out_of_range(
            recipe, "sequence_length", f"at most the model's {longest}"
        )
    if recipe.devices and recipe.batch_size % recipe.devices:
        raise out_of_range(
            recipe, "batch_size", f"a multiple of the {recipe.devices} devices"
        )
    if not recipe.memory_layers:
        of_memory = (
            *("memory_block", "num_sub_keys", "memory_heads"),
            *("memory_top_k", "memory_key_dim"),
        )
        reason = "only the layers of --memory-layers, such as 4 8, get a memory"
        check_unused(recipe, of_memory, reason)
    if recipe.freeze and not pretrained.backbone.memory_outputs:
        raise UserError(
            f"--freeze {' '.join(recipe.freeze)} needs a model with memory, "
            f"but '{recipe.model}' has none: leave the flag out"
        )


def check_flags(recipe: FinetuningRecipe) -> None:
    """Checks that a new run has no flags that do nothing."""
    added = recipe.added_memory()
    if added and added["memory_block"] == "resm" and "values" in recipe.freeze:
        raise UserError(
            "--freeze must not name values with --memory-layers: the values of "
            "a memory that is added beside a network are zero, and would stay "
            "so. Leave one of them out"
        )
    of_squad = ("squad", "stride", "answer_length")
    unused = ("glue",) if recipe.is_squad else of_squad
    check_unused(recipe, unused, f"--task {recipe.task} has no use for it")
    check_data_dir(recipe, recipe.squad if recipe.is_squad else recipe.glue)
