"""Every benchmark at toy size."""

import ast
import functools
import importlib
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import tyro

from benchmarks import training
from benchmarks.timing import in_turn

ROOT = pathlib.Path(__file__).parents[1]
LAYER = (
    "--sizes.num-sub-keys 8 --sizes.width 8 --sizes.top-k 4 --sizes.key-dim 8"
)
BERT = (
    "--{0}.num-layers 1 --{0}.hidden-dim 8 --{0}.num-heads 2 "
    "--{0}.intermediate-dim 8 --{0}.memory-layers 1 --{0}.num-sub-keys 8 "
    "--{0}.top-k 4 --{0}.vocabulary-size 20"
)
TORCH = all(
    importlib.util.find_spec(name) for name in ("torch", "product_key_memory")
)


def run_in_processes(script, arguments, output, rounds="--rounds 1"):
    """Returns what the script wrote as JSON, and printed, run as it is used."""
    command = [sys.executable, str(ROOT / "benchmarks" / script)]
    command += f"{arguments} {rounds} --out {output}".split()
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return written(script, output, done.stdout)


def written(script, output, printed):
    name = pathlib.Path(script).stem
    assert (output / f"{name}.md").read_text() in printed
    return json.loads((output / f"{name}.json").read_text())


class _Here(in_turn.Runner):
    """Stands for a contender's process, which would import TensorFlow."""

    def __init__(self, contender, built):
        name = contender.build, contender.args
        # Equal contenders share what takes seconds to trace.
        if name not in built:
            self._facts = self.build(contender)
            built[name] = vars(self)
        vars(self).update(built[name])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def ask(self, question, task):
        return getattr(self, question)(task)

    def result(self):
        return self._facts


@pytest.fixture
def run(monkeypatch, capsys):
    """Does the same in this process."""
    here = functools.partial(_Here, built={})
    monkeypatch.setattr(in_turn, "_Process", here)

    def run(script, arguments, output, rounds="--rounds 1"):
        module = importlib.import_module(f"benchmarks.{script[:-3]}")
        arguments = f"{arguments} {rounds} --out {output}".split()
        tyro.cli(module.main, args=arguments)
        return written(script, output, capsys.readouterr().out)

    return run


@pytest.mark.slow
def test_layer(run, tmp_path):
    report = run("layer.py", f"{LAYER} --tokens 16", tmp_path)
    assert report["threads"] > 0 and "tensorflow" in report["versions"]
    against = {row["against"] for row in report["rows"]}
    assert "plain Keras, Adam" in against
    if not TORCH:
        pytest.skip("the torch side needs torch and product-key-memory")
    assert len(report["rows"]) == 11
    assert any("SparseAdam" in name for name in against)


@pytest.mark.slow
def test_inference(tmp_path):
    sizes = f"{BERT.format('base')} {BERT.format('large')}"
    models = ["BASE+ResM"]
    arguments = f"{sizes} --batches 1 --length 8 --models {' '.join(models)}"
    report = run_in_processes("inference.py", arguments, tmp_path)
    assert [row["model"] for row in report["rows"]] == models


@pytest.mark.slow
def test_training(run, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "PAIRS", training.PAIRS[1::2])
    sizes = BERT.format("sizes")
    report = run("training.py", f"{sizes} --batch 2 --length 8", tmp_path)
    assert len(report["rows"]) == 2


@pytest.mark.slow
def test_monitoring(run, tmp_path):
    # With one step, both of its timings have the same contenders.
    sizes = f"{BERT.format('sizes')} --batch 2 --length 8 --steps 1"
    report = run("monitoring.py", f"{sizes} --held-out 5", tmp_path)
    assert report["rows"][0]["times slower"]


@pytest.mark.slow
def test_scaling(run, tmp_path):
    arguments = (
        f"{LAYER.replace('--sizes.num-sub-keys 8', '')} {BERT.format('bert')} "
        "--num-sub-keys 4 8 --flat-up-to 4 --reference 4 --tokens 8"
    )
    report = run("scaling.py", arguments, tmp_path)
    assert len(report["rows"]) == 5
    assert (tmp_path / "scaling.png").stat().st_size > 1000


@pytest.mark.slow
def test_formulations(run, tmp_path):
    report = run("formulations.py", f"{LAYER} --tokens 16", tmp_path)
    first = {}
    for row in report["rows"]:
        first.setdefault(row["part"], row["times slower"])
    assert len(first) == 7
    assert set(first.values()) == {"1 (1-1)"}


def test_contenders_are_there():
    """Scripts name them as text, which processes of their own look up."""
    names = set()
    for path in (ROOT / "benchmarks").glob("*.py"):
        names |= set(re.findall(r'"(\w+_contenders)\.(\w+)"', path.read_text()))
    assert len(names) > 5
    for module, name in names:
        path = ROOT / "benchmarks" / "contenders" / f"{module}.py"
        tree = ast.parse(path.read_text())
        assert name in {getattr(node, "name", None) for node in tree.body}


def test_a_contender_that_fails_names_itself():
    from benchmarks.timing.in_turn import Contender
    from benchmarks.timing.in_turn import time_in_turn

    # Its module does without TensorFlow, which takes seconds to import.
    broken = Contender("broken", "sizes.batch", ("no sizes", 8))
    with pytest.raises(RuntimeError, match="broken failed:(.|\n)*'width'"):
        time_in_turn([broken], ["forward"], 1)


@pytest.mark.slow
# `os.wait4` has waited for it.
@pytest.mark.filterwarnings("ignore:subprocess .* is still running")
def test_export_size(run, tmp_path, monkeypatch):
    """Only the export itself is a process of its own here."""
    monkeypatch.setattr(
        "benchmarks.export_size.ProcessPoolExecutor",
        lambda *_, **__: ThreadPoolExecutor(1),
    )
    sizes = f"{BERT.format('base')} --length 8 --dtypes int8"
    report = run("export_size.py", sizes, tmp_path, rounds="")
    (row,) = report["rows"]
    # Alone, its outputs are compared with themselves.
    assert row["values"] == "int8"
    assert row["disk MB"] > row["variables MB"] > 0 and row["peak GB"] > 0


@pytest.mark.slow
def test_export_accuracy(run, tmp_path):
    """A classifier that knows one word."""
    import tensorflow as tf

    class Classifier(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec((None,), "string", "text")])
        def serve(self, text):
            good = tf.strings.regex_full_match(text, '.*".*good.*')
            return {"scores": tf.one_hot(tf.cast(good, "int32"), 2)}

    module = Classifier()
    tf.saved_model.save(module, str(tmp_path / "model"), module.serve)
    data = tmp_path / "dev.tsv"
    data.write_text('sentence\tlabel\nso "good\t1\nbad\t0\nfine\t1\nno\t0\n')
    arguments = f"--models {tmp_path / 'model'} --examples {data}"
    report = run("export_accuracy.py", arguments, tmp_path, rounds="")
    assert report["rows"][0]["accuracy %"] == 75
    assert report["rows"][0]["examples"] == 4


@pytest.mark.parametrize("second_moment", ["entry", "row"])
def test_arithmetic_counts_what_training_takes(second_moment):
    import keras
    import numpy as np

    import keras_pkm
    from benchmarks.arithmetic import count_bytes

    layer = keras_pkm.layers.ProductKeyMemory(8, top_k=4, key_dim=8)
    model = keras.Sequential([keras.Input((6,)), layer])
    optimizer = keras_pkm.optimizers.PKMAdam(second_moment=second_moment)
    table = layer.table.values
    optimizer.build([table])
    moments = [
        each
        for each in optimizer.variables
        if len(each.shape) and each.shape[0] == 64
    ]
    found = count_bytes(64, 6, 1000)
    assert model.built
    assert found["values"] == np.asarray(table).nbytes
    names = {"entry": "Adam's moments", "row": "with one second moment a row"}
    expected = sum(np.asarray(each).nbytes for each in moments)
    assert found[names[second_moment]] == expected
    assert found["gradient of a step, at most"] == 64 * 7 * 4
