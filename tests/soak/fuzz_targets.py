"""What is fuzzed: runs, patches and exports, and what reads them."""

import dataclasses
import hashlib
import json
import pathlib
import shutil
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from export import memory_usage
from export import patch
from export import saved_model
from tests.soak.kill_and_resume import figures_of
from tests.soak.kill_and_resume import md5_of_variables
from tests.soak.stopped_run import stopped_after
from tests.training.tiny_run import SHORT
from tests.training.tiny_run import TINY
from tests.training.tiny_run import md5_of_model
from tests.training.tiny_run import write_corpus
from tests.training.tiny_run import write_glue
from training import analyze_memory
from training import evaluate_mlm
from training import finetune
from training import pretrain
from training import teach

PARTS = [*TINY, *"--plain-steps 2 --checkpoint-every 1".split()]
TUNING = (
    "--task sst2 --epochs 1 --sequence-length 16 --batch-size 4 --limit 16 "
    "--checkpoint-every 1"
).split()


@dataclasses.dataclass(frozen=True)
class Target:
    """A command, and the directory that it reads.

    Attributes:
        folder: The directory, in that of `prepare`.
        command: Its module.
        args: Its arguments, from the root and the directory of the case.
        result: What it leaves, from the directory of the case.
    """

    folder: str
    command: object
    args: Callable[[pathlib.Path, pathlib.Path], list]
    result: Callable[[pathlib.Path], object]


def read_json(path):
    return json.loads(path.read_text())


def tuned(path):
    return read_json(path / "results.json")["seeds"]


def exported(path):
    """The sums of all floats; states of seeds are others in each export."""
    reader = tf.train.load_checkpoint(str(path / "variables" / "variables"))
    return sorted(
        hashlib.md5(np.asarray(reader.get_tensor(name)).tobytes()).hexdigest()
        for name in reader.get_variable_to_shape_map()
        if name.endswith("VARIABLE_VALUE")
        and reader.get_tensor(name).dtype == "float32"
    )


TARGETS = {
    "evaluate_mlm": Target(
        "run",
        evaluate_mlm,
        lambda root, case: [
            *("--model", case / "run", "--text", root / "corpus.txt"),
            *("--limit", 8, "--out", case / "figures.json"),
        ],
        lambda case: read_json(case / "figures.json")["perplexity"],
    ),
    "analyze_memory": Target(
        "run",
        analyze_memory,
        lambda root, case: [
            *("--model", case / "run", "--text", root / "corpus.txt"),
            *("--limit", 8, "--out", case / "report"),
        ],
        lambda case: [
            read_json(case / "report" / "report.json")[name]
            for name in ("curves", "staleness")
        ],
    ),
    "saved_model": Target(
        "run",
        saved_model,
        lambda root, case: [
            *("--model", case / "run", "--what", "encoder"),
            *("--out", case / "exported"),
        ],
        lambda case: exported(case / "exported"),
    ),
    "saved_model of a fine-tuning run": Target(
        "tuned",
        saved_model,
        lambda root, case: [
            *("--model", case / "tuned", "--what", "classifier"),
            *("--out", case / "exported"),
        ],
        lambda case: exported(case / "exported"),
    ),
    "finetune": Target(
        "run",
        finetune,
        lambda root, case: [
            *TUNING,
            *("--model", case / "run", "--glue", root / "glue"),
            *("--out", case / "new"),
        ],
        lambda case: tuned(case / "new"),
    ),
    "finetune, going on": Target(
        "tuned-parts",
        finetune,
        lambda root, case: [
            *TUNING,
            *("--model", root / "run", "--glue", root / "glue"),
            *("--out", case / "tuned-parts"),
        ],
        lambda case: tuned(case / "tuned-parts"),
    ),
    "pretrain, going on": Target(
        "parts",
        pretrain,
        lambda root, case: [
            *PARTS,
            *("--text", root / "corpus.txt", "--out", case / "parts"),
        ],
        lambda case: [
            md5_of_variables(case / "parts"),
            figures_of(case / "parts"),
        ],
    ),
    "pretrain --data-from": Target(
        "run",
        pretrain,
        lambda root, case: [
            *SHORT,
            *("--text", root / "corpus.txt", "--data-from", case / "run"),
            *("--out", case / "new"),
        ],
        lambda case: figures_of(case / "new"),
    ),
    "pretrain --init-from": Target(
        "run",
        pretrain,
        lambda root, case: [
            *SHORT,
            *("--text", root / "corpus.txt", "--init-from", case / "run"),
            *("--out", case / "new"),
        ],
        lambda case: figures_of(case / "new"),
    ),
    "teach": Target(
        "run",
        teach,
        lambda root, case: [
            *("--model", case / "run", "--text", root / "lines.txt"),
            # Whether enough slots are important stands in a file of the run.
            *("--steps", 2, "--out", case / "new"),
        ],
        lambda case: md5_of_model(case / "new"),
    ),
    "teach --apply": Target(
        "patch",
        teach,
        lambda root, case: [
            *("--model", root / "run", "--out", case / "new"),
            *("--apply", case / "patch" / "patch.safetensors"),
        ],
        lambda case: md5_of_model(case / "new"),
    ),
    "teach --revert": Target(
        "taught",
        teach,
        lambda root, case: [
            *("--model", case / "taught", "--out", case / "new"),
            *("--revert", root / "taught" / "patch.safetensors"),
        ],
        lambda case: md5_of_model(case / "new"),
    ),
    "patch": Target(
        "mlm",
        patch,
        lambda root, case: [
            *("--model", case / "mlm", "--out", case / "newer"),
            *("--apply", root / "taught" / "patch.safetensors"),
        ],
        lambda case: exported(case / "newer"),
    ),
    "memory_usage": Target(
        "mlm",
        memory_usage,
        lambda root, case: [
            *("--model", case / "mlm", "--text", root / "lines.txt", "--json"),
        ],
        lambda case: None,
    ),
}


def prepare(root: pathlib.Path):
    """Makes runs, finished and not, a patch and an export."""
    corpus = write_corpus(root / "corpus.txt")
    glue = write_glue(root / "glue")
    (root / "lines.txt").write_text("bat hould\nden cing\n")

    def end(command, expected, *args):
        code = command.main([str(arg) for arg in args])
        if code != expected:
            raise RuntimeError(f"{command.__name__} {args}: exit code {code}")

    run, text = root / "run", ("--text", corpus)
    end(pretrain, 0, *TINY, *text, "--out", run)
    tuning = (*TUNING, "--model", run, "--glue", glue, "--out")
    end(finetune, 0, *tuning, root / "tuned")
    with stopped_after(3):
        end(pretrain, 143, *PARTS, *text, "--out", root / "parts")
        end(finetune, 143, *tuning, root / "tuned-parts")
    teaching = ("--text", root / "lines.txt", "--method", "values")
    teaching += ("--steps", 2)
    end(teach, 0, "--model", run, *teaching, "--out", root / "taught")
    # By itself, as it is given to others.
    (root / "patch").mkdir()
    shutil.copy(root / "taught" / "patch.safetensors", root / "patch")
    what = ("--what", "mlm", "--out", root / "mlm")
    end(saved_model, 0, "--model", run, *what)
