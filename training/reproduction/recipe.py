"""What the paper compares, and at which size to do so."""

import dataclasses
import os
import pathlib
from typing import Literal


@dataclasses.dataclass(frozen=True)
class ComparedModel:
    """One of the paper's models.

    Attributes:
        title: What tables call it.
        block: Its layers with memory, `"ffn"` without any.
        goes_on: Whether it starts from the plain model ("+Init"), and so sees
            as much text once more.
        fresh_feed_forward: Whether the feed-forward networks beside the
            memories start anew.
        in_table: Its title in the paper's tables, if it is in them.
    """

    title: str
    block: Literal["ffn", "pkm", "resm"]
    goes_on: bool
    fresh_feed_forward: bool = False
    in_table: str | None = None

    @property
    def has_memory(self) -> bool:
        """Whether it has a memory."""
        return self.block != "ffn"


# Tables 2, 4 and 5, and ResM' of figure 3.
MODELS = {
    "a": ComparedModel("BERT", "ffn", False, in_table="BERT-BASE"),
    "b": ComparedModel(
        "BERT, as many steps longer",
        "ffn",
        True,
        in_table="BERT-BASE, 500k steps more",
    ),
    "c": ComparedModel("+PKM", "pkm", False, in_table="+PKM"),
    "d": ComparedModel("+ResM", "resm", False, in_table="+ResM"),
    "e": ComparedModel("+Init+PKM", "pkm", True, in_table="+Init+PKM"),
    "f": ComparedModel("+Init+ResM", "resm", True, in_table="+Init+ResM"),
    "g": ComparedModel("+Init+ResM'", "resm", True, fresh_feed_forward=True),
}


@dataclasses.dataclass(frozen=True)
class Scale:
    """A size at which to repeat the comparison.

    Attributes:
        pretraining: Flags of `training/pretrain.py`.
        steps: Of one stage.
        measuring: Flags of `training/evaluate_mlm.py`.
        fine_tuning: Flags of `training/finetune.py`.
        tasks: To fine-tune on.
        limits: The most training examples of a task, by its name.
    """

    pretraining: str
    steps: int
    fine_tuning: str
    tasks: tuple[str, ...]
    measuring: str = ""
    limits: dict[str, int] = dataclasses.field(default_factory=dict)


SCALES = {
    "laptop": Scale(
        pretraining=(
            "--recipe laptop --vocabulary-size 8000 --sequence-length 32 "
            "--num-layers 4 --memory-layers 2 3 --num-sub-keys 128 "
            "--memory-heads 4 --memory-top-k 16 --memory-schedule linear "
            "--learning-rate 1.5e-3 --memory-learning-rate 5e-3"
        ),
        steps=3000,
        fine_tuning=(
            "--sequence-length 32 --group-by-length --epochs 2 "
            "--learning-rate 1e-3 --memory-learning-rate 1e-3"
        ),
        tasks=("cola", "sst2"),
        limits={"sst2": 8000},
    ),
    "paper": Scale(
        pretraining="--recipe paper-base --strategy mirrored",
        steps=500_000,
        fine_tuning="--strategy mirrored",
        tasks=("squad", "mnli", "qqp", "qnli", "sst2", "cola"),
    ),
}
# All of the laptop's way in minutes: what it finds means nothing.
QUICK = Scale(
    pretraining=(
        "--recipe laptop --vocabulary-size 300 --sequence-length 32 "
        "--num-layers 1 --hidden-dim 16 --num-heads 2 --intermediate-dim 16 "
        "--memory-layers 1 --num-sub-keys 8 --memory-top-k 4 "
        "--memory-key-dim 8 --batch-size 128 --evaluate-every 2"
    ),
    steps=4,
    measuring="--limit 128",
    fine_tuning="--sequence-length 32 --epochs 1",
    tasks=("sst2",),
    limits={"sst2": 64},
)


@dataclasses.dataclass(frozen=True)
class ReproductionRecipe:
    """Repeat the paper's comparison: train, measure and fine-tune its models.

    Trains a BERT, one that trains as many steps longer, and those with a memory
    in place of (PKM) or beside (ResM) the feed-forward networks, from fresh
    weights and from the BERT's (+Init). Then measures and fine-tunes them and
    writes a report. What is finished is skipped, what was begun goes on.

    --verbose shows the messages of TensorFlow, too.
    """

    # Directory of the runs and the report.
    out: pathlib.Path
    # The size: minutes to hours on two cores, or days on many GPUs.
    scale: Literal["laptop", "paper"] = "laptop"
    # A tiny model and a few steps instead: all of the way, without a meaning.
    quick: bool = False
    # Text to train on: files or globs separated by commas, tfds:NAME, or
    # python-docs.
    corpus: str = "python-docs"
    # Held-out text, likewise. Default: a twentieth of the corpus's documents.
    validation: str | None = None
    # Text of another kind, to measure on too.
    out_of_domain: str | None = None
    # Steps of a stage. Default: those of the scale.
    steps: int | None = None
    # Seeds to train models with. More can be asked for later.
    seeds: int = 1
    # Models to train with all of the seeds, by their letters; the others are
    # trained with the first one only.
    repeat: tuple[Literal["a", "b", "c", "d", "e", "f", "g"], ...] = tuple(
        MODELS
    )
    # GLUE's directory of TSV files, or tfds.
    glue: str = "tfds"
    # Directory of SQuAD's JSON files, or tfds.
    squad: str = "tfds"
    # Tasks to fine-tune on, or none. Default: those of the scale.
    tasks: (
        tuple[
            Literal["sst2", "cola", "mnli", "qqp", "qnli", "squad", "none"], ...
        ]
        | None
    ) = None
    # Seeds to fine-tune each model with.
    fine_tuning_seeds: int = 1
    # Directory of prepared tfds data. With it nothing is downloaded.
    data_dir: str | None = None
    # Commands to run at the same time. Default: two at laptop scale, if there
    # are two cores, and one at the paper's, which uses all GPUs.
    processes: int | None = None

    @property
    def at_once(self) -> int:
        """How many commands run at the same time."""
        if self.processes is not None:
            return self.processes
        return 1 if self.scale == "paper" else min(2, os.cpu_count() or 1)

    def seeds_of(self, key: str) -> range:
        """Returns the seeds that a model is trained with."""
        return range(self.seeds if key in self.repeat else 1)

    @property
    def size(self) -> Scale:
        """The size with the recipe's own changes."""
        scale = QUICK if self.quick else SCALES[self.scale]
        return dataclasses.replace(
            scale,
            steps=self.steps or scale.steps,
            tasks=(
                scale.tasks
                if self.tasks is None
                else tuple(task for task in self.tasks if task != "none")
            ),
        )
