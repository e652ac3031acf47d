"""The shell blocks of the README and the guides run, at a tiny size."""

import importlib
import json
import pathlib
import random
import shlex
import shutil

import keras
import pytest

from tests.docs.pages import ROOT
from tests.docs.pages import blocks
from training.corpora.packed_text import open_packed
from training.loading.pretrained_model import load_language_model
from training.measuring.perplexity import LanguageModelEvaluator
from training.pretraining.data import HELD_OUT_SEED
from training.pretraining.recipe import parse_recipe
from training.runs.run_directory import RunDirectory

# In an order in which what a page needs was made by those before it.
PAGES = (
    "README.md",
    "docs/guides/pretraining.md",
    "docs/guides/several-machines.md",
    "docs/guides/fine-tuning.md",
    "docs/guides/seeing-the-memory.md",
    "docs/guides/serving.md",
    "docs/guides/teaching.md",
    "docs/guides/your-own-data.md",
)
_SIZES = (
    "--num-layers 1 --memory-layers 1 --hidden-dim 16 --num-heads 2 "
    "--intermediate-dim 16 --num-sub-keys 4 --memory-top-k 2 "
    "--memory-key-dim 8"
)
_SHORT = "--steps 2 --plain-steps 0 --batch-size 4"
# What is added to the arguments of each command.
SMALL = {
    "training/pretrain.py": f"{_SIZES} {_SHORT} --vocabulary-size 300",
    "training/finetune.py": (
        "--epochs 1 --batch-size 8 --sequence-length 32 --seeds 1"
    ),
    "training/evaluate_mlm.py": "--batch-size 4",
    "training/analyze_memory.py": "--batch-size 4",
    "training/teach.py": "--steps 2 --method values",
}
# Its model is not on every machine; tests/training/teach_finished_test.py runs
# the command.
NOT_HERE = {"docs/guides/finished-models.md"}
# What other slow tests run at a tiny size, because of its many jobs.
ELSEWHERE = ("teach.py --compare", "recall.py", "--task squad")
# Pretraining of a causal model, from a run, and on several files: other slow
# tests train so, and here the flags are parsed.
PARSED = ("--out runs/gpt2", "--out runs/longer", "--vocabulary-size 8000")
WORDS = [f"w{letter}rd" for letter in "abcdefghijklmnopqrstuvwxyz"]


def sentences(number, seed):
    """Random text."""
    rng = random.Random(seed)
    return [
        " ".join(rng.choices(WORDS, k=8)).capitalize() + "."
        for _ in range(number)
    ]


@pytest.fixture
def folder(tmp_path):
    """A folder with the data that the pages name."""
    root = tmp_path / "data"
    for name in ("books", "GLUE/SST-2", "SQuAD"):
        (root / name).mkdir(parents=True)
    documents = sentences(400, seed=0)
    (root / "books" / "one.txt").write_text("\n\n".join(documents))
    for seed, name in enumerate(
        (
            *("letters.txt", "held-out.txt", "new.txt", "train.txt"),
            *("dev.txt", "my.txt"),
        ),
        1,
    ):
        text = "\n\n".join(sentences(60, seed=seed))
        (root / name).write_text(text)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "."]
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = [f"##{letter}" for letter in letters]
    tokens = [*special, *letters, *pieces, *WORDS]
    (root / "vocab.txt").write_text("\n".join(tokens))
    facts = [f"{a} {b}\tmeans\t{a}\n" for a, b in zip(WORDS, WORDS[3:])]
    (root / "facts.tsv").write_text("".join(facts))
    for split, seed in (("train", 6), ("dev", 7)):
        rows = [
            f"{text}\t{number % 2}"
            for number, text in enumerate(sentences(24, seed))
        ]
        path = root / "GLUE" / "SST-2" / f"{split}.tsv"
        path.write_text("\n".join(["sentence\tlabel", *rows, ""]))
        paragraphs = [
            {
                "context": text,
                "qas": [
                    {
                        "id": f"{split}{number}",
                        "question": "Which?",
                        "answers": [{"text": text[:4], "answer_start": 0}],
                    }
                ],
            }
            for number, text in enumerate(sentences(8, seed))
        ]
        data = {"version": "1.1", "data": [{"paragraphs": paragraphs}]}
        path = root / "SQuAD" / f"{split}-v1.1.json"
        path.write_text(json.dumps(data))
    return root


def lines(page):
    """The commands of a page that are to run, each as one line."""
    return [
        " ".join(line.split())
        for block in blocks(page, "shell")
        if block.reason is None
        for line in block.text.replace("\\\n", " ").splitlines()
        if line.startswith("python ")
        and not any(each in line for each in ELSEWHERE)
    ]


def is_parsed(line):
    return any(each in line for each in PARSED)


def made_small(line):
    """A command at a tiny size."""
    _, script, *args = shlex.split(line)
    small = SMALL.get(script, "")
    if "--vocabulary" in args:
        small = small.replace(" --vocabulary-size 300", "")
    if script == "training/teach.py" and {"--apply", "--revert"} & {*args}:
        small = ""
    if "mirrored" in args:
        # One of the runs has both stages.
        small += " --plain-steps 2"
    if script == "training/pretrain.py" and "--text" not in args:
        small += " --text 'books/*.txt'"
    return f"{line} {small}"


def perplexity_on_one_device(run):
    """That of the saved model on the run's held-out text."""
    recipe = run.read_recipe()
    keras.config.set_dtype_policy(recipe["precision"])
    try:
        task, family, tokenizer = load_language_model(str(run.last))
    finally:
        keras.config.set_dtype_policy("float32")
    length = recipe["sequence_length"]
    objective = family.make_objective(tokenizer, length, recipe["mask_rate"])
    rows = open_packed(run.packed_held_out, length, tokenizer.vocabulary_size())
    batches = objective.held_out_batches(
        rows, batch_size=recipe["batch_size"], seed=HELD_OUT_SEED
    )
    return LanguageModelEvaluator(task).evaluate(batches).perplexity


@pytest.mark.slow
def test_the_commands_run_page_by_page(folder, tmp_path, monkeypatch, capsys):
    """Each page begins with the runs of those before it."""
    runs = {}
    for page in PAGES:
        where = tmp_path / pathlib.Path(page).stem
        shutil.copytree(folder, where)
        (where / "runs").mkdir()
        monkeypatch.chdir(where)
        commands = lines(page)
        assert commands
        for name, path in runs.items():
            if not any(
                f"--out runs/{name}" in line and not is_parsed(line)
                for line in commands
            ):
                shutil.copytree(path, where / "runs" / name)
        for line in commands:
            if page == "README.md" and "runs/sst2" in line:
                continue  # served in docs/guides/serving.md, after training
            if "--strategy mirrored" in line and page != "README.md":
                continue  # three pages begin with the same run
            if is_parsed(line):
                parse_recipe(shlex.split(line)[2:])
                continue
            _, script, *args = shlex.split(made_small(line))
            name = script.removesuffix(".py").replace("/", ".")
            code = importlib.import_module(name).main(args)
            assert not code, (
                f"{page}: {line}\n{capsys.readouterr().err[-2000:]}"
            )
            if "mirrored" in args:
                (run,) = map(RunDirectory, (where / "runs").iterdir())
                trained = run.read_results()["stages"][-1]
                # In bfloat16, as the run.
                assert trained["perplexity"] == pytest.approx(
                    perplexity_on_one_device(run), rel=1e-3
                )
        for path in (where / "runs").iterdir():
            runs.setdefault(path.name, path)


def test_all_guides_are_there():
    guides = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "docs" / "guides").glob("*.md")
    }
    with_commands = {page for page in guides if lines(page)}
    here = {page for page in PAGES if page != "README.md"}
    assert with_commands == here | NOT_HERE
