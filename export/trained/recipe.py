"""What an export consists of, as data.

The command line has one flag for each field, whose help is the comment above.
"""

import dataclasses
import pathlib

from export.graph.value_tables import DTYPES
from keras_pkm.runs.outputs import check_output_directory
from keras_pkm.runs.user_error import UserError

KINDS = ("encoder", "preprocessor", "mlm", "classifier", "qa")


@dataclasses.dataclass(frozen=True)
class ExportRecipe:
    """Export a trained model as a SavedModel, which needs none of our code.

    --verbose shows the messages of TensorFlow, too.
    """

    # The model: the directory of a run, whose best model it is, or of a preset.
    model: str
    # encoder or preprocessor (TF Hub's API for text), mlm (text with gaps to
    # tokens), classifier (text to classes) or qa (a question and its context to
    # an answer).
    what: str
    # Directory to write; new or empty.
    out: str

    # --- Text ---

    # Tokens of the inputs that text becomes. Default: as it was trained.
    sequence_length: int | None = None
    # Names of a classifier's classes. Default: the task's, or numbers.
    labels: tuple[str, ...] = ()
    # Texts of a classifier's example: 2 for pairs. Default: the task's, or 1.
    texts: int | None = None
    # Tokens from one window of a context to the next. Default: as trained.
    stride: int | None = None
    # The most tokens of an answer. Default: as trained.
    answer_length: int | None = None

    # --- Size ---

    # How memory values are stored: float32, bfloat16, or int8 with a scale for
    # each row.
    values_dtype: str = "float32"
    # Text files. Only the memory rows that they read are kept; all others share
    # a row of zeros.
    prune_unused: tuple[str, ...] = ()
    # Keep the fewest rows that have so many percent of all weight in the reads
    # of --prune-unused.
    keep_top: float = 100.0
    # Text files on which the exported model is compared with the trained one.
    # Default: a tenth of --prune-unused, which then has no part in the choice.
    compare: tuple[str, ...] = ()

    def check(self) -> None:
        """Finds what is impossible before anything is loaded.

        Raises:
            UserError: a flag has a value that it cannot have.
        """
        for flag, known in (("what", KINDS), ("values_dtype", DTYPES)):
            if getattr(self, flag) not in known:
                raise self._wrong(flag, f"one of {', '.join(known)}")
        for flag in ("sequence_length", "stride", "answer_length"):
            least = 8 if flag == "sequence_length" else 1
            if getattr(self, flag) is not None and getattr(self, flag) < least:
                raise self._wrong(flag, f"at least {least}")
        if self.texts not in (None, 1, 2):
            raise self._wrong("texts", "1 or 2")
        if not 0 < self.keep_top <= 100:
            raise self._wrong("keep_top", "above 0 and at most 100")
        if self.keep_top < 100 and not self.prune_unused:
            raise UserError(
                "--keep-top needs text whose reads are counted: pass "
                "--prune-unused FILE"
            )
        check_output_directory(pathlib.Path(self.out), "--out")

    def _wrong(self, field, rule):
        flag = field.replace("_", "-")
        return UserError(
            f"--{flag} must be {rule}, received {getattr(self, field)}"
        )
