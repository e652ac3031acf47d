"""What teaching a run consists of, as data.

The command line has one flag for each field, whose help is the comment above.
"""

import dataclasses
import pathlib

from keras_pkm.runs.outputs import check_output_directory
from keras_pkm.runs.user_error import UserError
from training.commands.recipe_checks import check_above_0
from training.commands.recipe_checks import check_between_0_and_1
from training.commands.recipe_checks import check_numbers
from training.facts.text_facts import TEMPLATE
from training.teaching.methods import Method
from training.teaching.methods import Rule

# The best ones of `--compare`.
_RATES = {"all": 3e-4, "replay": 3e-4, "head": 1e-3, "ffn": 1e-4, "lora": 3e-4}
_MEMORY_RATES = {
    ("values", "adam"): 1e-2,
    ("values", "sgd"): 20.0,
    ("slots", "adam"): 3e-2,
    ("slots", "sgd"): 100.0,
}
_SOURCES = ("facts", "text", "apply", "revert")


@dataclasses.dataclass(frozen=True)
class TeachingRecipe:
    """Teach a trained language model, and show what it forgets.

    Writes new facts, or a text, into the memory of a model; all other weights
    stay as they are. The result is a run, and a patch that other copies of the
    model take with --apply, and give back with --revert.

    --compare measures what all methods learn and forget; see --compare --help.
    --verbose shows the messages of TensorFlow, too.
    """

    # The directory of a run, whose best model it is; or a preset. An encoder
    # must have its masked-LM head.
    model: str
    # Directory to write; new or empty.
    out: pathlib.Path

    # --- What it learns: one of these ---

    # A TSV file with the columns subject, relation and value.
    facts: pathlib.Path | None = None
    # Text files or globs separated by commas, tfds:NAME, or python-docs.
    text: str | None = None
    # A patch that another copy of the model was taught.
    apply: pathlib.Path | None = None
    # A patch that the model was taught, to undo.
    revert: pathlib.Path | None = None

    # --- What it is to keep ---

    # Facts (a .tsv file) or text, on which the model is measured before and
    # after.
    keep: str | None = None

    # --- How ---

    # What is trained: the memory's values that matter most to what is new and
    # least to other text (slots), or all that it reads (values); all weights,
    # the head, the feed-forward networks, LoRA; or all weights with --keep
    # replayed.
    method: Method = "slots"
    # How values are updated: by Adam, or by gradient descent.
    rule: Rule = "adam"
    # Learning rate. Default: that of the method.
    learning_rate: float | None = None
    # Slots of each memory that a batch may change, with --method slots.
    slots: int = 500
    # Text that the model was trained on, which tells important slots from those
    # that all text reads. Default: that of the run.
    background: str | None = None
    # The most steps; fewer are taken if all is learned before. Default: 200
    # passes over the facts, or over the text.
    steps: int | None = None
    # Teach so many facts until they are known, then as many others. --steps are
    # then those of each group. Default: all facts together, which keeps the
    # first from being overwritten by the last.
    group_size: int | None = None
    # The text of a fact.
    template: str = TEMPLATE
    # A text counts as learned when its perplexity has fallen to this share.
    fall: float = 0.5

    # --- Text ---

    # Tokens of an input. Default: as many as the model takes, at most 512.
    sequence_length: int | None = None
    # Share of the tokens to predict.
    mask_rate: float = 0.15
    # Facts, or sequences of text, in a batch.
    batch_size: int = 32
    # Directory of prepared tfds data. With it nothing is downloaded.
    data_dir: str | None = None
    # Seed of the order and the masks.
    seed: int = 0

    @property
    def rate(self) -> float:
        """The learning rate."""
        if self.learning_rate is not None:
            return self.learning_rate
        if self.method in _RATES:
            return _RATES[self.method]
        return _MEMORY_RATES[self.method, self.rule]

    def check(self) -> None:
        """Checks the flags.

        Raises:
            UserError: one of them is out of range, or they do not fit together.
        """
        check_numbers(
            self,
            slots=1,
            steps=1,
            group_size=1,
            sequence_length=8,
            batch_size=1,
        )
        check_above_0(self, "learning_rate")
        check_between_0_and_1(self, "mask_rate", "fall")
        given = [name for name in _SOURCES if getattr(self, name) is not None]
        if len(given) != 1:
            received = " and ".join(f"--{name}" for name in given) or "none"
            raise UserError(
                "one of --facts, --text, --apply and --revert must be given, "
                f"received {received}"
            )
        if self.method == "replay" and self.keep is None:
            raise UserError(
                "--method replay needs what is replayed: pass --keep, or "
                "another --method"
            )
        check_output_directory(self.out, "--out")
