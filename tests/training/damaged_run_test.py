"""What commands say of a run whose files a disk or a hand has damaged."""

import shutil

import pytest

from export import saved_model
from tests.training.tiny_run import TINY
from training import analyze_memory
from training import evaluate_mlm
from training import finetune
from training import pretrain

# Commands, and the files of a run that each reads.
READ = {
    "evaluate_mlm": (
        "recipe.json",
        "results.json",
        "last/config.json",
        "last/task.json",
        "last/tokenizer.json",
        "last/model.weights.h5",
        "last/assets/tokenizer/vocabulary.txt",
    ),
    "analyze_memory": (
        "recipe.json",
        "last/model.weights.h5",
        "logs/plain.csv",
        "logs/resm.csv",
        "logs/resm-perplexity.csv",
        "logs/resm-slots/step-6.npz",
    ),
    "saved_model": (
        "recipe.json",
        "results.json",
        "results.md",
        "last/model.weights.h5",
    ),
    "finetune": ("recipe.json", "last/model.weights.h5"),
    "pretrain": (
        "recipe.json",
        "tokenizer/assets/tokenizer/vocabulary.txt",
        "data/train.int32",
        "data/held_out.int32",
    ),
}


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 4
    path.write_bytes(content)


def empty(path):
    path.write_bytes(b"")


def other_type(path):
    path.write_text('["of", 3, "things"]')


@pytest.fixture
def run(tiny_run, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(tiny_run.path, path)
    return path


@pytest.fixture
def call(run, tiny_run, tmp_path, capsys):
    """Calls a command on the run, and returns its exit code and its errors."""
    text, out = str(tiny_run.corpus), str(tmp_path / "out")
    calls = {
        "evaluate_mlm": (evaluate_mlm, f"--model {run} --text {text}"),
        "analyze_memory": (
            analyze_memory,
            f"--model {run} --text {text} --out {out}",
        ),
        "saved_model": (
            saved_model,
            f"--model {run} --what preprocessor --out {out}",
        ),
        "finetune": (
            finetune,
            f"--task sst2 --model {run} --glue {tiny_run.glue} "
            f"--sequence-length 16 --out {out}",
        ),
        "pretrain": (
            pretrain,
            f"--data-from {run} --text {text} --out {out} " + " ".join(TINY),
        ),
    }

    def call(name):
        command, args = calls[name]
        code = command.main(args.split())
        return code, capsys.readouterr().err

    return call


@pytest.mark.parametrize("damage", [cut, flip, empty, other_type])
@pytest.mark.parametrize(
    "command, name",
    [
        # Found last, when the model has been read.
        pytest.param(command, name, marks=[pytest.mark.slow] * ("npz" in name))
        for command, names in READ.items()
        for name in names
    ],
)
def test_a_damaged_file_is_named(command, name, damage, run, call, tmp_path):
    damage(run / name)
    code, error = call(command)
    (line,) = [line for line in error.splitlines() if "error: " in line]
    assert code == 2
    assert name.split("/")[-1] in line and "put back a copy" in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("damage", [empty, other_type])
@pytest.mark.parametrize(
    "command, name",
    [
        ("evaluate_mlm", "recipe.json"),
        ("evaluate_mlm", "last/config.json"),
        ("evaluate_mlm", "last/model.weights.h5"),
        ("evaluate_mlm", "last/tokenizer.json"),
        ("analyze_memory", "logs/resm.csv"),
        pytest.param(
            "analyze_memory",
            "logs/resm-slots/step-6.npz",
            marks=pytest.mark.slow,
        ),
        ("saved_model", "results.json"),
        ("saved_model", "last/tokenizer.json"),
        ("pretrain", "data/train.int32"),
    ],
)
def test_a_run_of_an_earlier_version(command, name, damage, run, call):
    """It has no checksums: its files are read as they are."""
    for path in run.rglob("checksums.json"):
        path.unlink()
    damage(run / name)
    code, error = call(command)
    (line,) = [line for line in error.splitlines() if "error: " in line]
    assert code == 2
    assert str(run) in line


@pytest.mark.parametrize("sealed", [True, False])
def test_a_table_of_figures_that_is_no_text(sealed, run, call):
    (run / "results.md").write_bytes(b"\xff\xfe")
    if not sealed:
        (run / "checksums.json").unlink()
    code, error = call("saved_model")
    assert code == 2 and str(run) in error and "results.md" in error


@pytest.mark.slow
def test_a_missing_measurement_is_named(run, call):
    """What is counted over all of them would be another figure."""
    (run / "logs" / "resm-slots" / "step-6.npz").unlink()
    code, error = call("analyze_memory")
    assert code == 2
    assert "logs/resm-slots/step-6.npz is missing" in error


@pytest.mark.slow
def test_a_wanted_change(run, call):
    """The error names the file to remove, and then it is read."""
    (run / "last" / "model.weights.h5").touch()
    with open(run / "recipe.json", "a") as file:
        file.write("\n")
    code, error = call("saved_model")
    assert code == 2 and f"remove '{run / 'checksums.json'}'" in error
    (run / "checksums.json").unlink()
    code, error = call("saved_model")
    assert code == 0, error
