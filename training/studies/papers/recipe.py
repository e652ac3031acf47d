"""The settings of a paper's comparison."""

import dataclasses
import os
import pathlib
from typing import TYPE_CHECKING
from typing import Literal

from training.commands.fields import Count
from training.commands.fields import check_fields
from training.commands.fields import out_of_range
from training.commands.fields import reads_tfds
from training.commands.recipe_groups import Comparison
from training.commands.recipe_groups import recipe
from training.runs.run_directory import RunDirectory
from training.runs.user_error import UserError
from training.studies.papers.papers import PAPERS
from training.studies.papers.papers import Candidate
from training.studies.papers.papers import Paper
from training.studies.papers.papers import Scale
from training.tasks.glue import GLUE

if TYPE_CHECKING:
    TaskName = str
else:
    TaskName = Literal[(*GLUE, "squad", "none")]


@recipe
class ReproductionRecipe(Comparison):
    """Repeat a paper's comparison: train and measure its models.

    $ python training/reproduce.py --out comparison --tasks none
    $ python training/reproduce.py --out comparison --glue GLUE --seeds 3
    $ python training/reproduce.py --out depths --paper lample

    By default, this trains the models of Kim and Jung (2020): a BERT, the same
    BERT trained twice as long, and BERTs with a memory in place of (PKM) or
    beside (ResM) the feed-forward networks, from fresh weights and from the
    BERT's (+Init). It measures and fine-tunes them and writes a report.

    With --paper lample, it trains the models of table 2 of Lample et al.
    (2019): a GPT-2, the same with a memory in one, two and three layers, and a
    deeper and a wider GPT-2.

    The same command skips what is finished and resumes what was interrupted.
    --verbose also shows the messages of TensorFlow.
    """

    # Whose comparison to repeat.
    paper: Literal["kim-jung", "lample"] = "kim-jung"
    # Size of the models: laptop takes an hour and a half on two cores, paper
    # takes days on many GPUs.
    scale: Literal["laptop", "paper"] = "laptop"
    # Run all commands with a tiny model and a few steps, to see that they work.
    # The figures mean nothing.
    quick: bool = False
    # Text to train on: files or globs separated by commas, tfds:NAME[@SPLIT],
    # or python-docs.
    text: str = "python-docs"
    # Held-out text, likewise. Default: a twentieth of the corpus's documents.
    validation: str | None = None
    # Text of another kind, on which the models are measured, too.
    out_of_domain: str | None = None
    # Steps of each stage. Default: those of the scale.
    steps: Count | None = None
    # Models to train with all of the seeds, by their letters; the others are
    # trained with the first seed only. Default: all models.
    repeat: tuple[Literal["a", "b", "c", "d", "e", "f", "g"], ...] | None = None
    # GLUE's directory of TSV files, or tfds.
    glue: str = "tfds"
    # Directory of SQuAD's JSON files, or tfds.
    squad: str = "tfds"
    # Tasks to fine-tune on, or none. Default: those of the scale.
    tasks: tuple[TaskName, ...] | None = None
    # Number of seeds to fine-tune each model with.
    fine_tuning_seeds: Count = 1
    # Directory of prepared tfds data. With it nothing is downloaded.
    data_dir: str | None = None

    @property
    def at_once(self) -> int:
        """How many commands run at the same time."""
        if self.processes is not None:
            return self.processes
        return 1 if self.scale == "paper" else min(2, os.cpu_count() or 1)

    def seeds_of(self, key: str) -> range:
        """Returns the seeds that a model is trained with."""
        repeated = self.models if self.repeat is None else self.repeat
        return range(self.seeds if key in repeated else 1)

    def pretraining(self, seed: int, key: str) -> RunDirectory:
        """Returns the directory of a pretraining run."""
        return RunDirectory(self.out / f"seed-{seed}" / key)

    def measured(self, seed: int, key: str) -> pathlib.Path:
        """Returns the file of a model's figures on text of another kind."""
        return self.out / f"seed-{seed}" / f"{key}-out-of-domain.json"

    def fine_tuning(self, key: str, task: str, kind: str) -> RunDirectory:
        """Returns the directory of a fine-tuning run."""
        return RunDirectory(self.out / "fine-tuned" / f"{key}-{task}-{kind}")

    def data_dir_for(self, *sources: str | None) -> dict[str, str | None]:
        """Returns --data-dir for a command, if it reads tfds at all."""
        return {"data_dir": self.data_dir} if reads_tfds(*sources) else {}

    @property
    def compared(self) -> Paper:
        """The paper's comparison."""
        return PAPERS[self.paper]

    @property
    def models(self) -> dict[str, Candidate]:
        """The paper's models, by their letters."""
        return self.compared.models

    def check(self) -> None:
        """Checks that the flags suit each other."""
        check_fields(self)
        scales = self.compared.scales
        if self.scale not in scales:
            listed = " or ".join(scales)
            raise out_of_range(
                self, "scale", f"{listed} with --paper {self.paper}"
            )
        if self.repeat is not None and not {*self.repeat} <= {*self.models}:
            raise out_of_range(
                self,
                "repeat",
                f"some of {' '.join(self.models)} with --paper {self.paper}",
            )
        if self.size.tasks and self.paper != "kim-jung":
            raise UserError(
                f"--tasks must be none with --paper {self.paper}, which "
                "fine-tunes no model"
            )

    @property
    def size(self) -> Scale:
        """The size with the recipe's own changes."""
        paper = self.compared
        scale = paper.quick if self.quick else paper.scales[self.scale]
        return dataclasses.replace(
            scale,
            steps=self.steps or scale.steps,
            tasks=(
                scale.tasks
                if self.tasks is None
                else tuple(task for task in self.tasks if task != "none")
            ),
        )
