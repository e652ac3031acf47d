"""The settings of a fine-tuning run.

The command line has one flag for each field; the comment above is its help.
"""

import dataclasses
from typing import Annotated
from typing import Any
from typing import Literal

from pydantic import Field

from training.commands.fields import Count
from training.commands.fields import Length
from training.commands.fields import Positive
from training.commands.fields import Rate
from training.commands.fields import Seed
from training.commands.fields import Share
from training.tasks.glue import GLUE
from training.tasks.glue import GlueTask

SQUAD = "squad"


@dataclasses.dataclass(frozen=True)
class FinetuningRecipe:
    """Fine-tune a pretrained model on one of the paper's tasks.

    $ python training/finetune.py --task sst2 --model runs/books
    $ python training/finetune.py --task sst2 --model runs/books --seeds 5
    $ python training/finetune.py --task squad --model runs/books --data SQuAD

    Prints the figures on the dev sets, over one or more seeds, beside the
    paper's. Section and table numbers refer to Kim and Jung, "Large Product
    Key Memory for Pretrained Language Models" (2020).

    --verbose also shows the messages of TensorFlow.
    """

    # The task to fine-tune on.
    task: Literal["sst2", "cola", "mnli", "qqp", "qnli", "squad"]
    # The model to fine-tune: the directory of a pretraining run, a local preset
    # or one of KerasHub, or a local directory of transformers.
    model: str
    # Use the model's sizes and vocabulary, but random initial weights, as a
    # baseline without pretraining.
    from_scratch: bool = False

    # --- Data ---

    # The directory of GLUE's TSV files, the directory of SQuAD's JSON files, or
    # tfds.
    data: str = "tfds"
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
    # Number of sub-keys for each half of a query of an added memory. The number
    # of slots is its square.
    num_sub_keys: Count = 512
    # Number of heads of an added memory.
    memory_heads: Count = 4
    # Number of slots that each head of an added memory reads.
    memory_top_k: Count = 32
    # Width of a query of an added memory.
    memory_key_dim: Annotated[Count, Field(ge=2)] = 256
    # Parts of all memories to freeze (table 5).
    freeze: tuple[Literal["values", "keys", "queries"], ...] = ()

    # --- Schedule ---

    # Number of passes over the training set. Default: 10 for GLUE, 3 for SQuAD.
    epochs: Count | None = None
    # Number of examples in a batch, over all devices. (The paper does not say.)
    batch_size: Count = 32
    # Put examples of similar length into the same batch. There is less padding,
    # which is much faster if lengths vary, but the batches are different.
    group_by_length: bool = False
    # Peak learning rate. Default: 2e-5 for GLUE, 5e-5 for SQuAD.
    learning_rate: Share | None = None
    # Peak learning rate of the memory values, which the paper does not give.
    # Default: ten times --learning-rate.
    memory_learning_rate: Share | None = None
    # Share of the steps during which the rates rise; after that they fall to
    # zero.
    warmup_ratio: Rate = 0.06
    # Decoupled weight decay, except of memory values, biases and norms.
    # Default: 0.1 for GLUE, 0.01 for SQuAD.
    weight_decay: Rate | None = None
    # Dropout of the encoder.
    dropout: Rate = 0.1
    # Maximum norm of all gradients together.
    clip_norm: Positive | None = 1.0
    # Number of seeds to fine-tune with. The seed decides on the head's initial
    # weights, dropout and the order of the examples. The paper has five.
    seeds: Count = 1
    # The first seed.
    seed: Seed = 0

    # --- Machine and run ---

    # default uses one device; mirrored uses all GPUs or, without a GPU, logical
    # CPU devices.
    strategy: Literal["default", "mirrored"] = "default"
    # Number of devices of the mirrored strategy. Default: all GPUs, or two
    # logical CPU devices.
    devices: Count | None = None
    precision: Literal["float32", "mixed_float16", "mixed_bfloat16"] | None = (
        None
    )
    """Dtype policy. Default: float32 with --strategy default; otherwise
    mixed_bfloat16, or mixed_float16 on GPUs without bfloat16."""
    # Directory to write: new, empty, or with an unfinished run to resume.
    # Default: runs/TASK-TIME.
    run_dir: str | None = None
    # Resume the unfinished run in --run-dir, which must have the same recipe.
    resume: bool = True
    # Number of steps between checkpoints. There is also one after each epoch.
    checkpoint_every: Count = 1000
    # End the run after this number of steps in a row with a loss or gradient
    # that is not finite.
    max_skipped_steps: Count = 3
    # Make all operations deterministic, at some cost on GPUs.
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
            "memory": {
                "num_sub_keys": self.num_sub_keys,
                "num_heads": self.memory_heads,
                "top_k": self.memory_top_k,
                "key_dim": self.memory_key_dim,
            },
        }
