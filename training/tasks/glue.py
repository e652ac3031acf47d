"""The GLUE tasks of the paper: their files, columns, labels and metrics.

They are read from GLUE's own directory of TSV files or from TensorFlow
Datasets, with the same result.
"""

import dataclasses
import pathlib
from typing import TYPE_CHECKING
from typing import Literal

import numpy as np

from training.corpora.tab_separated import are_all_quoted
from training.corpora.tab_separated import find_broken_cell
from training.corpora.tab_separated import has_spreadsheet_quotes
from training.corpora.tab_separated import is_quoted
from training.corpora.tab_separated import split_lines
from training.corpora.tab_separated import unquote
from training.corpora.tab_separated import why_columns
from training.runs.user_error import UserError
from training.tasks.bad_rows import BadRows


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """A task and how GLUE stores it."""

    # Its name in tables, and the directory of its TSV files.
    title: str
    # Its name in TensorFlow Datasets.
    tfds: str
    # The columns of texts, in the order in which a model reads them.
    columns: tuple[str, ...]
    # The names of the classes.
    classes: tuple[str, ...]
    # The columns of texts in TensorFlow Datasets, if they have other names.
    tfds_columns: tuple[str, ...] = ()
    # The column of the label.
    label: str = "label"
    # The values of the label, in the order of the class numbers.
    labels: tuple[str, ...] = ("0", "1")
    # The names of the dev sets, as suffixes of files and splits.
    dev: tuple[str, ...] = ("",)
    # `"accuracy"` or `"matthews_correlation"`.
    metric: str = "accuracy"
    # The columns, if the files have no header.
    header: tuple[str, ...] | None = None
    # Whether GLUE's own files have cells in quotes, with doubled quotes within
    # them. These are part of the text there, as in TensorFlow Datasets.
    has_own_quotes: bool = False


GLUE = {
    "sst2": GlueTask(
        title="SST-2",
        tfds="glue/sst2",
        columns=("sentence",),
        classes=("negative", "positive"),
    ),
    "cola": GlueTask(
        title="CoLA",
        tfds="glue/cola",
        columns=("sentence",),
        classes=("unacceptable", "acceptable"),
        metric="matthews_correlation",
        header=("source", "label", "original judgement", "sentence"),
    ),
    "mnli": GlueTask(
        title="MNLI",
        tfds="glue/mnli",
        columns=("sentence1", "sentence2"),
        classes=("entailment", "neutral", "contradiction"),
        tfds_columns=("premise", "hypothesis"),
        label="gold_label",
        labels=("entailment", "neutral", "contradiction"),
        dev=("_matched", "_mismatched"),
    ),
    "qqp": GlueTask(
        title="QQP",
        tfds="glue/qqp",
        columns=("question1", "question2"),
        classes=("not_duplicate", "duplicate"),
        label="is_duplicate",
        has_own_quotes=True,
    ),
    "qnli": GlueTask(
        title="QNLI",
        tfds="glue/qnli",
        columns=("question", "sentence"),
        classes=("entailment", "not_entailment"),
        labels=("entailment", "not_entailment"),
    ),
}

if TYPE_CHECKING:
    GlueName = str
else:
    GlueName = Literal[tuple(GLUE)]


@dataclasses.dataclass(frozen=True)
class GlueExamples:
    """Some examples of a task."""

    # Tuple of lists of str, one list for each column.
    texts: tuple[list[str], ...]
    # Int32 array, the class numbers.
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def first(self, count: int) -> "GlueExamples":
        """Returns the first `count` examples."""
        return GlueExamples(
            tuple(column[:count] for column in self.texts), self.labels[:count]
        )

    @property
    def majority_share(self) -> float:
        """The share of the most frequent class."""
        return np.bincount(self.labels).max() / len(self.labels)


def load_glue(
    task: GlueTask, source: str, data_dir: str | None, bad_rows: BadRows
) -> dict[str, GlueExamples]:
    """Loads the training set and all dev sets of a task."""
    if source == "tfds":
        return _load_tfds(task, data_dir, bad_rows)
    root = pathlib.Path(source)
    if (root / task.title).is_dir():
        root = root / task.title
    splits = ["train", *(f"dev{suffix}" for suffix in task.dev)]
    return {
        split: read_tsv(root / f"{split}.tsv", task, bad_rows)
        for split in splits
    }


def read_tsv(
    path: pathlib.Path, task: GlueTask, bad_rows: BadRows
) -> GlueExamples:
    """Reads a file of GLUE: columns are separated by tabs, without quoting.

    A spreadsheet that saves such a file puts cells in quotes, which are taken
    off. `has_spreadsheet_quotes` tells from the whole file whether quotes are a
    spreadsheet's or part of the text. QQP's own files cannot be told from a
    spreadsheet's by their cells. Their quotes are taken for text, unless all
    cells but numbers, those of the header too, are in quotes.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"{path} must be GLUE's {task.title} file, but cannot be read "
            f"({error.strerror}): pass GLUE's own directory"
        ) from error
    lines = split_lines(data, path)
    first = 1
    names: tuple[str, ...] = ()
    header = task.header
    if header is None:
        line = lines[0].decode(errors="replace")
        names = tuple(line.split("\t"))
        header = tuple(map(unquote, names))
        lines, first = lines[1:], 2
    if missing := [
        name for name in (*task.columns, task.label) if name not in header
    ]:
        cause = ""
        if len(header) == 1:
            cause = f" ({why_columns(header[0], 2)})"
        raise UserError(
            f"{path}, line 1: the header must name {' '.join(missing)}, "
            f"received {' '.join(header)}{cause}: pass GLUE's own {task.title} "
            "files"
        )
    places = [header.index(name) for name in task.columns]
    label_place = header.index(task.label)
    has_quotes = _has_spreadsheet_quotes(path, task, names, len(header), lines)
    texts: tuple[list[str], ...] = tuple([] for _ in places)
    labels: list[int] = []
    for number, row in enumerate(lines, first):
        if not row and number == first + len(lines) - 1:
            continue  # what follows the last newline
        try:
            line = row.decode()
        except UnicodeDecodeError as error:
            bad_rows.add(
                path, f"line {number}", f"a row must be UTF-8: {error}"
            )
            continue
        cells = line.split("\t")
        if has_quotes:
            cells = [unquote(cell) for cell in cells]
        reason = None
        # GLUE's training sets have columns that its dev sets lack.
        if len(cells) != len(header):
            reason = (
                f"a row must have {len(header)} columns, "
                f"{why_columns(line, len(header))}"
            )
        elif cells[label_place] not in task.labels:
            reason = (
                f"{task.label} must be one of {' '.join(task.labels)}, "
                f"received {cells[label_place]!r}"
            )
        elif not all(cells[place].strip() for place in places):
            reason = f"{' and '.join(task.columns)} must not be empty"
        if reason:
            bad_rows.add(path, f"line {number}", reason)
            continue
        for column, place in zip(texts, places):
            column.append(cells[place])
        labels.append(task.labels.index(cells[label_place]))
    return _examples(path, texts, labels, bad_rows)


def _has_spreadsheet_quotes(
    path: pathlib.Path,
    task: GlueTask,
    names: tuple[str, ...],
    columns: int,
    lines: list[bytes],
) -> bool:
    """Whether a spreadsheet put cells in quotes."""
    texts = [line.decode(errors="replace") for line in lines]
    if texts and not texts[-1]:
        texts = texts[:-1]  # what follows the last newline
    broken = find_broken_cell(texts, columns)
    if broken is not None:
        number = broken + (2 if names else 1)
        raise UserError(
            f"{path}, line {number}: a row must be one line, and its cells "
            "must not contain tabs or line ends, not even in quotes, received "
            "a spreadsheet's cell in quotes with such: replace them by spaces"
        )
    rows = [line.split("\t") for line in texts]
    whole = [row for row in rows if len(row) == columns]
    if task.has_own_quotes:
        return are_all_quoted([names, *whole])
    found = has_spreadsheet_quotes(names, whole)
    if found is None:
        raise UserError(
            f"{path}: it cannot be told whether cells in quotes, such as "
            f"{_first_quoted(whole)}, were put in quotes by a spreadsheet or "
            "have quotes in their text. If a spreadsheet did it, save the file "
            "without quotes; if they are text, save it in a spreadsheet's way, "
            "with cells in quotes and the quotes within them doubled"
        )
    return found


def _first_quoted(rows: list[list[str]]) -> str:
    return next(cell for row in rows for cell in row if is_quoted(cell))


def _load_tfds(
    task: GlueTask, data_dir: str | None, bad_rows: BadRows
) -> dict[str, GlueExamples]:
    from training.corpora.tfds_examples import read_tfds_examples

    examples = {}
    for suffix, split in (
        (None, "train"),
        *((suffix, f"validation{suffix}") for suffix in task.dev),
    ):
        rows = read_tfds_examples(task.tfds, split, data_dir)
        texts: tuple[list[str], ...] = tuple([] for _ in task.columns)
        labels: list[int] = []
        for number, row in enumerate(rows):
            if not 0 <= row["label"] < len(task.labels):
                bad_rows.add(
                    f"{task.tfds}, {split}",
                    f"example {number}",
                    f"label must be from 0 to {len(task.labels) - 1}, "
                    f"received {row['label']}",
                )
                continue
            for column, name in zip(texts, task.tfds_columns or task.columns):
                column.append(row[name].decode("utf-8"))
            labels.append(row["label"])
        name = "train" if suffix is None else f"dev{suffix}"
        examples[name] = _examples(
            f"{task.tfds}, {split}", texts, labels, bad_rows
        )
    return examples


def _examples(
    path: pathlib.Path | str,
    texts: tuple[list[str], ...],
    labels: list[int],
    bad_rows: BadRows,
) -> GlueExamples:
    if not labels:
        raise bad_rows.nothing_left(path, "examples")
    return GlueExamples(texts, np.array(labels, "int32"))
