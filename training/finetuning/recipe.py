"""What a fine-tuning run consists of, as data.

The command line has one flag for each field, whose help is the comment above.
"""

import dataclasses
from typing import Literal

from training.tasks.glue import GLUE
from training.tasks.glue import GlueTask

SQUAD = "squad"


@dataclasses.dataclass(frozen=True)
class FinetuningRecipe:
    """Fine-tune a pretrained model on a task of the paper.

    Prints the dev sets' figures, over some seeds, beside the paper's. Sections
    and tables are those of Kim and Jung, "Large Product Key Memory for
    Pretrained Language Models" (2020).

    --verbose shows the messages of TensorFlow, too.
    """

    # The task.
    task: Literal["sst2", "cola", "mnli", "qqp", "qnli", "squad"]
    # What to fine-tune: the directory of a pretraining run, a preset, local or
    # KerasHub's, or a local directory of transformers.
    model: str
    # Take the model's sizes and tokens, but fresh weights: what pretraining is
    # to be compared with.
    from_scratch: bool = False

    # --- Data ---

    # GLUE's directory of TSV files, that of SQuAD's JSON files, or tfds.
    data: str = "tfds"
    # Directory of prepared tfds data. With it nothing is downloaded.
    data_dir: str | None = None
    # Leave out rows that cannot be used, and list them, instead of ending.
    skip_bad_rows: bool = False
    # Tokens of an input. Default: 128 for GLUE, 384 for SQuAD, and at most what
    # the model can take.
    sequence_length: int | None = None
    # Tokens from one window of a paragraph to the next (SQuAD).
    stride: int = 128
    # The most tokens of an answer (SQuAD).
    answer_length: int = 30
    # Use only so many training examples, the first ones.
    limit: int | None = None

    # --- Memory ---

    # Memory to add to a plain model: resm beside the feed-forward networks, pkm
    # in their place (section 3.2).
    memory_block: Literal["resm", "pkm"] | None = None
    # The layers to add it to, counted from 1 (section 4.1).
    memory_layers: tuple[int, ...] = ()
    # Sub-keys of each half of an added memory, which has the square in slots.
    num_sub_keys: int = 512
    # Heads of an added memory.
    memory_heads: int = 4
    # Slots that a head of an added memory reads.
    memory_top_k: int = 32
    # Width of a query of an added memory.
    memory_key_dim: int = 256
    # Parts of all memories that stay as they are (table 5).
    freeze: tuple[Literal["values", "keys", "queries"], ...] = ()

    # --- Schedule ---

    # Passes over the training set. Default: 10 for GLUE, 3 for SQuAD.
    epochs: int | None = None
    # Examples in a batch, over all devices. (The paper does not say.)
    batch_size: int = 32
    # Put examples of about the same length into a batch: less padding, so much
    # faster where lengths differ, but other batches.
    group_by_length: bool = False
    # Peak learning rate. Default: 2e-5 for GLUE, 5e-5 for SQuAD.
    learning_rate: float | None = None
    # Peak learning rate of the memory values. Default: ten times the other.
    # (The paper does not say.)
    memory_learning_rate: float | None = None
    # Share of the steps in which the rates rise; then they fall to zero.
    warmup_ratio: float = 0.06
    # Decoupled weight decay; not of memory values, biases and norms. Default:
    # 0.1 for GLUE, 0.01 for SQuAD.
    weight_decay: float | None = None
    # Dropout of the encoder.
    dropout: float = 0.1
    # Clip the norm of all gradients together.
    clip_norm: float | None = 1.0
    # Runs that differ by their seed alone: of the head's first weights, dropout
    # and the examples' order. The paper has five.
    seeds: int = 1
    # The first of them.
    seed: int = 0

    # --- Machine and run ---

    # default: one device. mirrored: all GPUs; without a GPU, logical CPU
    # devices.
    strategy: Literal["default", "mirrored"] = "default"
    # Devices of the mirrored strategy. Default: all GPUs, or two logical CPU
    # devices.
    devices: int | None = None
    precision: Literal["float32", "mixed_float16", "mixed_bfloat16"] | None = (
        None
    )
    """Dtype policy. Default: float32; with mirrored mixed_bfloat16, or
    mixed_float16 on GPUs without it."""
    # Directory to write: new, empty, or that of an unfinished run. Default:
    # runs/TASK-TIME.
    run_dir: str | None = None
    # Go on where --run-dir holds an unfinished run of the same recipe.
    resume: bool = True
    # Steps between checkpoints. There is also one after each epoch.
    checkpoint_every: int = 1000
    # So many steps in a row whose loss or gradient is not finite end the run.
    max_skipped_steps: int = 3
    # Make all ops deterministic, at some cost on GPUs.
    deterministic: bool = False

    @property
    def is_squad(self) -> bool:
        """Whether the task is question answering."""
        return self.task == SQUAD

    @property
    def glue(self) -> GlueTask:
        """The GLUE task."""
        return GLUE[self.task]

    def with_defaults(self, longest: int) -> "FinetuningRecipe":
        """Returns the recipe with the paper's settings where none is given.

        Args:
            longest: The most tokens that the model takes.
        """
        length, epochs, rate, decay = (
            (384, 3, 5e-5, 0.01) if self.is_squad else (128, 10, 2e-5, 0.1)
        )
        defaults = {
            "sequence_length": min(length, longest),
            "epochs": epochs,
            "learning_rate": rate,
            "weight_decay": decay,
        }
        missing = {
            name: value
            for name, value in defaults.items()
            if getattr(self, name) is None
        }
        recipe = dataclasses.replace(self, **missing)
        if recipe.memory_learning_rate is None:
            recipe = dataclasses.replace(
                recipe, memory_learning_rate=10 * recipe.learning_rate
            )
        return recipe

    def added_memory(self) -> dict | None:
        """Returns the arguments that give a plain model memory, if asked."""
        if not self.memory_layers:
            return None
        return {
            "memory_layers": self.memory_layers,
            "memory_block": self.memory_block or "resm",
            "memory": {
                "num_sub_keys": self.num_sub_keys,
                "num_heads": self.memory_heads,
                "top_k": self.memory_top_k,
                "key_dim": self.memory_key_dim,
            },
        }
