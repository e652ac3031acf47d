"""The settings of an export.

The command line has one flag for each field; the comment above is its help.
"""

import dataclasses
import pathlib

from export.commands.flag_errors import naming_flags
from keras_pkm.export.arguments import check_options
from training.runs.outputs import check_output_directory


@dataclasses.dataclass(frozen=True)
class ExportRecipe:
    """Export a trained model as a SavedModel that loads without keras_pkm.

    $ python export/saved_model.py --what mlm --model runs/books --out served
    $ python export/saved_model.py --what classifier --model runs/sst2 --out C
    $ python export/saved_model.py --what encoder --model M --out encoder

    --verbose also shows the messages of TensorFlow.
    """

    # The model: the directory of a run, whose last model is used, or its best
    # one after fine-tuning; or the directory of a preset.
    model: str
    # What to export: encoder or preprocessor (both with TF Hub's API for text),
    # mlm (predicts masked tokens), classifier (predicts the class of a text) or
    # qa (answers a question from its context).
    what: str
    # Directory to write; new or empty.
    out: str

    # --- Text ---

    # Number of tokens of an input. Default: as in training.
    sequence_length: int | None = None
    # Names of a classifier's classes. Default: those of the task, or numbers.
    labels: tuple[str, ...] = ()
    # Number of texts of a classifier's input: 1, or 2 for pairs. Default: that
    # of the task, or 1.
    texts: int | None = None
    # Number of tokens between the starts of two windows of a context. Default:
    # as in training.
    stride: int | None = None
    # Maximum number of tokens of an answer. Default: as in training.
    answer_length: int | None = None

    # --- Size ---

    # Format of the stored memory values: float32, bfloat16, or int8 with a
    # scale for each row.
    values_dtype: str = "float32"
    # Text files. Only memory rows that these texts read are kept; all others
    # are replaced by a single row of zeros. Masked language models also keep
    # the rows that are read where one of the tokens is masked.
    prune_unused: tuple[str, ...] = ()
    # With --prune-unused, keep only the smallest set of rows that has this
    # percentage of the weights of all reads.
    keep_top: float = 100.0
    # Text files on which the exported model is compared with the trained one.
    # Default: a tenth of --prune-unused, which is then not used to choose rows.
    compare: tuple[str, ...] = ()

    def check(self) -> None:
        """Finds what is impossible before anything is loaded."""
        with naming_flags(self):
            check_options(
                self.what,
                self.values_dtype,
                self.sequence_length,
                self.stride,
                self.answer_length,
                self.labels,
                self.texts,
                self.keep_top,
                self.prune_unused,
                self.compare,
            )
        check_output_directory(pathlib.Path(self.out), "--out")
