"""The GLUE tasks of the paper: their files, columns, labels and metrics.

They are read from GLUE's own directory of TSV files or from TensorFlow
Datasets, with the same result.
"""

import codecs
import dataclasses
import pathlib

import numpy as np

from keras_pkm.runs.user_error import UserError
from training.tasks.bad_rows import BadRows


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """A task and how GLUE stores it.

    Attributes:
        title: Its name in tables.
        directory: The directory of its TSV files.
        tfds: Its name in TensorFlow Datasets.
        columns: The columns of texts, in the order in which a model reads them.
        tfds_columns: The same in TensorFlow Datasets.
        label: The column of the label.
        labels: The values of the label, in the order of the class numbers.
        classes: The names of the classes.
        dev: The names of the dev sets, as suffixes of files and splits.
        metric: `"accuracy"` or `"matthews_correlation"`.
        header: The columns, if the files have no header.
    """

    title: str
    directory: str
    tfds: str
    columns: tuple[str, ...]
    tfds_columns: tuple[str, ...]
    label: str
    labels: tuple[str, ...]
    classes: tuple[str, ...]
    dev: tuple[str, ...] = ("",)
    metric: str = "accuracy"
    header: tuple[str, ...] | None = None


GLUE = {
    "sst2": GlueTask(
        title="SST-2",
        directory="SST-2",
        tfds="glue/sst2",
        columns=("sentence",),
        tfds_columns=("sentence",),
        label="label",
        labels=("0", "1"),
        classes=("negative", "positive"),
    ),
    "cola": GlueTask(
        title="CoLA",
        directory="CoLA",
        tfds="glue/cola",
        columns=("sentence",),
        tfds_columns=("sentence",),
        label="label",
        labels=("0", "1"),
        classes=("unacceptable", "acceptable"),
        metric="matthews_correlation",
        header=("source", "label", "original judgement", "sentence"),
    ),
    "mnli": GlueTask(
        title="MNLI",
        directory="MNLI",
        tfds="glue/mnli",
        columns=("sentence1", "sentence2"),
        tfds_columns=("premise", "hypothesis"),
        label="gold_label",
        labels=("entailment", "neutral", "contradiction"),
        classes=("entailment", "neutral", "contradiction"),
        dev=("_matched", "_mismatched"),
    ),
    "qqp": GlueTask(
        title="QQP",
        directory="QQP",
        tfds="glue/qqp",
        columns=("question1", "question2"),
        tfds_columns=("question1", "question2"),
        label="is_duplicate",
        labels=("0", "1"),
        classes=("not_duplicate", "duplicate"),
    ),
    "qnli": GlueTask(
        title="QNLI",
        directory="QNLI",
        tfds="glue/qnli",
        columns=("question", "sentence"),
        tfds_columns=("question", "sentence"),
        label="label",
        labels=("entailment", "not_entailment"),
        classes=("entailment", "not_entailment"),
    ),
}


@dataclasses.dataclass(frozen=True)
class GlueExamples:
    """Some examples of a task.

    Attributes:
        texts: tuple of lists of str, one list for each column.
        labels: int32 array, the class numbers.
    """

    texts: tuple[list[str], ...]
    labels: np.ndarray

    def __len__(self):
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
    """Loads the training set and all dev sets of a task.

    Args:
        task: `GlueTask`.
        source: `"tfds"`, or GLUE's directory, or the directory of the task.
        data_dir: directory of prepared TensorFlow Datasets, or None to
            download.
        bad_rows: `BadRows` that collects rows that cannot be used.

    Returns:
        A dict with `"train"` and, for each dev set, `"dev"` plus its suffix.

    Raises:
        UserError: a file is missing or cannot be used.
    """
    if source == "tfds":
        return _load_tfds(task, data_dir, bad_rows)
    root = pathlib.Path(source)
    if (root / task.directory).is_dir():
        root = root / task.directory
    splits = ["train", *(f"dev{suffix}" for suffix in task.dev)]
    return {
        split: read_tsv(root / f"{split}.tsv", task, bad_rows)
        for split in splits
    }


def read_tsv(
    path: pathlib.Path, task: GlueTask, bad_rows: BadRows
) -> GlueExamples:
    """Reads a file of GLUE: columns are separated by tabs, without quoting.

    Raises:
        UserError: the file cannot be read, or lacks a column or all rows.
    """
    try:
        content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise UserError(
            f"{path} must be GLUE's {task.title} file, but cannot be read "
            f"({error.strerror}): pass GLUE's own directory"
        ) from error
    # Only newlines end a row; a carriage return before one is dropped.
    lines = [line.removesuffix(b"\r") for line in content.split(b"\n")]
    first = 1
    header = task.header
    if header is None:
        header = tuple(lines[0].decode(errors="replace").split("\t"))
        lines, first = lines[1:], 2
    if missing := [
        name for name in (*task.columns, task.label) if name not in header
    ]:
        raise UserError(
            f"{path}, line 1: the header must name {' '.join(missing)}, "
            f"received {' '.join(header)}: pass GLUE's own {task.title} files"
        )
    places = [header.index(name) for name in task.columns]
    label_place = header.index(task.label)
    texts, labels = tuple([] for _ in places), []
    for number, row in enumerate(lines, first):
        if not row and number == first + len(lines) - 1:
            continue  # what follows the last newline
        try:
            cells = row.decode().split("\t")
        except UnicodeDecodeError as error:
            bad_rows.add(
                path, f"line {number}", f"a row must be UTF-8: {error}"
            )
            continue
        reason = None
        # GLUE's training sets have columns that its dev sets lack.
        if len(cells) != len(header):
            reason = (
                f"a row must have {len(header)} columns, received "
                f"{len(cells)} (cells must not contain tabs or line ends, not "
                "even in quotes)"
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


def _load_tfds(task, data_dir, bad_rows):
    from training.text.tfds_examples import read_tfds_examples

    examples = {}
    for suffix, split in (
        (None, "train"),
        *((suffix, f"validation{suffix}") for suffix in task.dev),
    ):
        rows = read_tfds_examples(task.tfds, split, data_dir)
        texts, labels = tuple([] for _ in task.columns), []
        for number, row in enumerate(rows):
            if not 0 <= row["label"] < len(task.labels):
                bad_rows.add(
                    f"{task.tfds}, {split}",
                    f"example {number}",
                    f"label must be from 0 to {len(task.labels) - 1}, "
                    f"received {row['label']}",
                )
                continue
            for column, name in zip(texts, task.tfds_columns):
                column.append(row[name].decode("utf-8"))
            labels.append(row["label"])
        name = "train" if suffix is None else f"dev{suffix}"
        examples[name] = _examples(
            f"{task.tfds}, {split}", texts, labels, bad_rows
        )
    return examples


def _examples(path, texts, labels, bad_rows):
    if not labels:
        raise bad_rows.nothing_left(path, "examples")
    return GlueExamples(texts, np.array(labels, "int32"))
