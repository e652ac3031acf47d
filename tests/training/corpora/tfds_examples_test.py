"""The same rows from their own files and from TensorFlow Datasets."""

import json

import numpy as np
import pytest
import tensorflow as tf

from training.runs.user_error import UserError
from training.tasks.bad_rows import BadRows
from training.tasks.glue import GLUE
from training.tasks.glue import load_glue
from training.tasks.squad import load_squad

tfds = pytest.importorskip("tensorflow_datasets")

TEXTS = ['It\'s "so".', "Ärger im Büro", "one\ttab less"]


def store(folder, name, config, version, features, splits):
    """Writes a data set; lists are ragged, so that each row is a tensor."""
    tfds.dataset_builders.store_as_tfds_dataset(
        name=name,
        config=config,
        version=version,
        features=tfds.features.FeaturesDict(features),
        split_datasets={
            split: tf.data.Dataset.from_tensor_slices(columns(rows))
            for split, rows in splits.items()
        },
        data_dir=str(folder),
        disable_shuffling=True,
    )


def columns(rows):
    if isinstance(rows[0], dict):
        return {name: columns([row[name] for row in rows]) for name in rows[0]}
    if isinstance(rows[0], list):
        return tf.ragged.constant(rows)
    return tf.constant(rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cola", "mnli"])
def test_glue(name, tmp_path):
    task = GLUE[name]
    columns = task.tfds_columns or task.columns
    rng = np.random.default_rng(0)
    splits = {}
    for split in ("train", *(f"validation{s}" for s in task.dev)):
        splits[split] = [
            {
                **{
                    column: f"{text.replace(chr(9), ' ')} {split} {column}"
                    for column in columns
                },
                "label": int(rng.integers(len(task.labels))),
                "idx": number,
            }
            for number, text in enumerate(TEXTS)
        ]
    features = {
        **{column: tfds.features.Text() for column in columns},
        "label": tfds.features.ClassLabel(names=list(task.classes)),
        "idx": tf.int32,
    }
    store(tmp_path / "tfds", "glue", name, "2.0.0", features, splits)

    header = task.header or ("index", *task.columns, task.label)
    for split, rows in splits.items():
        lines = [] if task.header else ["\t".join(header)]
        for row in rows:
            cells = {
                **dict(zip(task.columns, map(row.get, columns))),
                task.label: task.labels[row["label"]],
            }
            lines.append("\t".join(cells.get(column, "-") for column in header))
        folder = tmp_path / "GLUE" / task.title
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{split.replace('validation', 'dev')}.tsv"
        file.write_text("\n".join(lines) + "\n")

    ours = load_glue(task, str(tmp_path / "GLUE"), None, BadRows())
    theirs = load_glue(task, "tfds", str(tmp_path / "tfds"), BadRows())
    assert ours.keys() == theirs.keys()
    assert len(ours) == 1 + len(task.dev)
    for split, examples in ours.items():
        assert examples.texts == theirs[split].texts
        assert len(examples) == len(TEXTS)
        np.testing.assert_array_equal(examples.labels, theirs[split].labels)
        assert examples.labels.dtype == theirs[split].labels.dtype


@pytest.mark.slow
def test_squad(tmp_path):
    context = "Ärger: Ann met Bob."
    rows = [
        {
            "id": f"q{number}",
            "title": "",
            "context": context,
            "question": f"Who is {number}?",
            "answers": {
                "text": answers,
                "answer_start": [context.index(answer) for answer in answers],
            },
        }
        for number, answers in enumerate((["Ann"], ["Bob", "met Bob"]))
    ]
    features = {
        "id": tf.string,
        "title": tfds.features.Text(),
        "context": tfds.features.Text(),
        "question": tfds.features.Text(),
        "answers": tfds.features.Sequence(
            {"text": tfds.features.Text(), "answer_start": tf.int32}
        ),
    }
    splits = {"train": rows, "validation": rows[:1]}
    store(tmp_path / "tfds", "squad", "v1.1", "3.0.0", features, splits)
    for name, part in (("train", rows), ("dev", rows[:1])):
        entries = [
            {
                "id": row["id"],
                "question": row["question"],
                "answers": [
                    {"text": text, "answer_start": start}
                    for text, start in zip(*row["answers"].values())
                ],
            }
            for row in part
        ]
        data = [{"paragraphs": [{"context": context, "qas": entries}]}]
        (tmp_path / f"{name}-v1.1.json").write_text(json.dumps({"data": data}))
    ours = load_squad(str(tmp_path), None, BadRows())
    theirs = load_squad("tfds", str(tmp_path / "tfds"), BadRows())
    assert ours == theirs
    assert len(ours["train"]) == 2
    # Their types, too.
    assert repr(ours) == repr(theirs)


def test_a_data_set_that_is_not_there(tmp_path):
    with pytest.raises(
        UserError, match="'glue/sst2' must be a data set.*tfds b"
    ):
        load_glue(GLUE["sst2"], "tfds", str(tmp_path), BadRows())
