"""The command: what it writes, and what it refuses."""

import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from export.saved_model import main
from keras_pkm.ops.value_tables import is_table

ROOT = pathlib.Path(__file__).parents[2]


def run(args, capsys):
    code = main(args.split())
    return code, capsys.readouterr()


@pytest.mark.parametrize(
    "flags, message",
    [
        (
            "--what decoder",
            "--what must be one of encoder, preproc.* decoder",
        ),
        ("--what encoder --values-dtype int4", "--values-dtype must be one of"),
        (
            "--what classifier",
            "needs a model with that head.*MemoryBertMaskedLM",
        ),
        ("--what qa", "needs a model with that head"),
        ("--what mlm --sequence-length 21", "at most the model's 20, received"),
        ("--what qa --sequence-length 3", "at least 8, received 3"),
        ("--what encoder --keep-top 50", "pass --prune-unused"),
        ("--what encoder --keep-top 0", "above 0 and at most 100"),
        ("--what encoder --prune-unused no.txt", "'no.txt' is not .No such"),
        ("--what qa --texts 3", "--texts must be 1 or 2, received 3"),
    ],
)
def test_refused(presets, tmp_path, capsys, flags, message):
    out = tmp_path / "out"
    args = f"--model {presets / 'mlm'} --out {out} {flags}"
    code, printed = run(args, capsys)
    assert code == 2
    lines = printed.err.splitlines()
    assert lines[-1].startswith("error: ")
    assert re.search(message, lines[-1]), lines[-1]
    assert not list(tmp_path.iterdir())


def test_other_models(presets, tmp_path, capsys):
    labels = f"--model {presets / 'classifier'} --what classifier --labels a b"
    plain = (
        f"--model {presets / 'plain'} --what encoder --prune-unused {__file__}"
    )
    for args, message in (
        (labels, "--labels must name the model's 3 classes, received 2: a b"),
        (plain, "need a model with memory"),
        ("--model nothing --what encoder", "'nothing' has no config.json"),
    ):
        code, printed = run(f"{args} --out {tmp_path / 'out'}", capsys)
        assert code == 2
        assert message in printed.err
    assert not list(tmp_path.iterdir())


def test_a_directory_that_is_not_empty(presets, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    args = f"--model {presets / 'mlm'} --what preprocessor --out {tmp_path}"
    code, printed = run(args, capsys)
    assert code == 2
    assert "--out must be new or empty" in printed.err
    assert (tmp_path / "file").read_text() == "mine"
    code, printed = run(f"{args}/file", capsys)
    assert code == 2
    assert "--out must be a directory" in printed.err


@pytest.mark.slow
def test_runs(presets, tmp_path, capsys):
    """A fine-tuning run's best seed, with the task's classes and figures."""
    run_directory = tmp_path / "run"
    shutil.copytree(presets / "classifier", run_directory / "seed-3" / "best")
    recipe = {
        "task": "mnli",
        "epochs": 7,
        "out": str(tmp_path / "run"),
        "text": f"{tmp_path}/mail/*.txt,notes.txt",
        "validation": "tfds:some/corpus",
        "template": "{subject} and/or {value}",
        "model": f"{tmp_path}/mine",
    }
    (run_directory / "recipe.json").write_text(json.dumps(recipe))
    args = f"--model {run_directory} --what classifier --out {tmp_path / 'out'}"
    code, printed = run(args, capsys)
    assert code == 2
    assert "a fine-tuning run that has ended" in printed.err
    classes = ["entailment", "neutral", "contradiction"]
    patch = {"file": f"{tmp_path}/mine/p.safetensors"}
    results = {"best_model": "seed-3/best", "classes": classes, "texts": 2}
    results["patches"] = [patch]
    (run_directory / "results.json").write_text(json.dumps(results))
    (run_directory / "results.md").write_text(
        f"| dev accuracy |\n{tmp_path}/mine has {patch['file']}"
    )
    code, printed = run(args, capsys)
    assert code == 0
    card = (tmp_path / "out" / "README.md").read_text()
    for part in (
        "# A text classifier",
        "Licence: (to be filled in)",
        "| input | `text_pair` | string | (?) |",
        "| output | `scores` | float32 | (?, 3) |",
        "| output | `slots_3` | int32 | (?, 16, 2, 4) |",
        "| 1 | 121 | 121 | 16 | float32 |",
        '"epochs": 7',
        '"out": "run"',
        '"text": "*.txt,notes.txt"',
        '"validation": "tfds:some/corpus"',
        '"template": "{subject} and/or {value}"',
        "| dev accuracy |",
        "\nmine has p.safetensors",
        'model({"text": ["A sentence."]',
    ):
        assert part in card, part
    assert str(tmp_path) not in card
    model = tf.saved_model.load(str(tmp_path / "out"))
    found = model.signatures["serving_default"](
        text=tf.constant(["ann"]), text_pair=tf.constant(["met bob"])
    )
    assert found["classes"][0].numpy().tolist() == [c.encode() for c in classes]


@pytest.mark.slow
def test_the_vocabulary_is_an_asset(exports, tokenizer):
    for kind in ("encoder", "preprocessor", "mlm", "classifier", "qa"):
        words = (exports / kind / "assets" / "vocabulary.txt").read_text()
        assert words.splitlines() == tokenizer.get_vocabulary()
    asset = tf.saved_model.load(str(exports / "encoder")).vocabulary.asset_path
    assert asset.numpy().decode().endswith("assets/vocabulary.txt")


@pytest.mark.slow
def test_each_variable_is_stored_once(exports):
    model = tf.saved_model.load(str(exports / "encoder"))
    stored = tf.train.load_checkpoint(
        str(exports / "encoder" / "variables" / "variables")
    ).get_variable_to_shape_map()
    weights = sorted(tuple(v.shape) for v in model.mlm.variables)
    for shape in {shape for shape in weights if len(shape) > 1}:
        count = sum(tuple(each) == shape for each in stored.values())
        assert count == weights.count(shape), shape


def rounded(values, dtype):
    """A table as float32, after it was stored with another dtype."""
    if dtype == "bfloat16":
        return values.astype(tf.bfloat16.as_numpy_dtype).astype("float32")
    scales = np.abs(values).max(axis=1, keepdims=True) / 127
    return np.round(values / scales) * scales


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
@pytest.mark.slow
def test_small_tables(exports, presets, tmp_path, capsys, dtype):
    """They answer as the model does whose values are rounded likewise.

    The whole tables' answers may be far: a little less in one memory's output
    can make the next one read another slot.
    """
    text = tmp_path / "text.txt"
    text.write_text("the quick brown fox\nann met bob\n")
    args = f"--model {presets / 'mlm'} --what encoder --values-dtype {dtype}"
    args = f"{args} --compare {text} --out {tmp_path / 'out'}"
    assert main(args.split()) == 0
    card = (tmp_path / "out" / "README.md").read_text()
    for line in capsys.readouterr().out.splitlines()[:8]:
        assert line in card
    assert "| perplexity of masked tokens |" in card
    x = {
        "input_word_ids": tf.constant([[2, 7, 8, 9, 3]]),
        "input_mask": tf.ones((1, 5), "int32"),
        "input_type_ids": tf.zeros((1, 5), "int32"),
    }
    small, whole = (
        tf.saved_model.load(str(path))
        for path in (tmp_path / "out", exports / "encoder")
    )
    dtypes = {v.dtype for v in small.variables if v.shape == (121, 16)}
    assert dtypes == {tf.as_dtype(dtype)}
    backbone = keras_hub.models.MaskedLM.from_preset(
        str(presets / "mlm")
    ).backbone
    tables = [w for w in backbone.weights if is_table(w)]
    assert len(tables) == 2
    for table in tables:
        table.assign(rounded(np.array(table), dtype))
    expected = backbone(
        {
            "token_ids": x["input_word_ids"],
            "padding_mask": x["input_mask"],
            "segment_ids": x["input_type_ids"],
        }
    )["sequence_output"]
    found = small(x)["sequence_output"]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(found - whole(x)["sequence_output"]).max() > 1e-4


@pytest.mark.slow
def test_pruned(exports, presets, tmp_path, capsys):
    """Nothing changes where all reads were kept."""
    text = tmp_path / "text.txt"
    lines = ["the quick brown fox", "ann met bob in paris ."] * 9
    text.write_text("\n".join(lines))
    args = f"--model {presets / 'mlm'} --what encoder --prune-unused {text}"
    assert main([*args.split(), "--out", str(tmp_path / "all")]) == 0
    printed = capsys.readouterr().out
    for part in (
        "rows of the memory in layer 1 | 121",
        "perplexity",
        "outputs",
    ):
        assert part in printed
    assert printed.splitlines()[0] in (tmp_path / "all/README.md").read_text()
    few = [*args.split(), *f"--keep-top 20 --out {tmp_path / 'few'}".split()]
    assert main(few) == 0
    whole, every, some = (
        tf.saved_model.load(str(path))
        for path in (exports / "encoder", tmp_path / "all", tmp_path / "few")
    )
    preprocessor = tf.saved_model.load(str(exports / "preprocessor"))
    x = preprocessor(tf.constant(lines[:2]))
    expected = whole(x)["sequence_output"].numpy()
    np.testing.assert_allclose(every(x)["sequence_output"], expected, atol=1e-5)
    assert np.abs(some(x)["sequence_output"] - expected).max() > 0.01
    # Slots keep their numbers.
    for name, slots in whole.signatures["memory_access"](**x).items():
        np.testing.assert_allclose(
            every.signatures["memory_access"](**x)[name], slots, atol=1e-5
        )
    rows = [
        sorted(v.shape[0] for v in model.variables if v.shape[1:] == (16,))
        for model in (whole, every, some)
    ]
    assert sum(rows[0]) > sum(rows[1]) > sum(rows[2])


@pytest.mark.slow
def test_a_kill_leaves_nothing_under_the_name(presets, tmp_path):
    out = tmp_path / "out"
    process = subprocess.Popen(
        [
            *(sys.executable, ROOT / "export" / "saved_model.py"),
            *("--model", presets / "mlm", "--what", "encoder", "--out", out),
        ],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not list(tmp_path.glob(".out.*.partial")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not out.exists()
    args = f"--model {presets / 'mlm'} --what preprocessor --out {out}"
    assert main(args.split()) == 0
    assert out.exists()
