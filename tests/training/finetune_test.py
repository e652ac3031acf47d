"""The command, on tiny models and data that say plainly what is what."""

import json
import types

import keras
import keras_hub
import numpy as np
import pytest

from keras_pkm import models
from keras_pkm.runs.presets import save_preset
from tests.models.tiny import MEMORY
from tests.models.tiny import SIZES
from training import finetune
from training.commands.strategy import create_strategy
from training.finetune import main
from training.finetuning import seed as finetuning_seed
from training.finetuning.evaluated import Evaluated
from training.tasks.squad_score import squad_score

WORDS = "good bad fine poor great awful film play story end".split()
MEMORY_FLAGS = (
    "--num-sub-keys 8 --memory-heads 2 --memory-top-k 4 --memory-key-dim 8"
)


@pytest.fixture(scope="module")
def tokenizer():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*special, *WORDS, *(f"w{i}" for i in range(85))]
    return keras_hub.models.BertTokenizer(words, lowercase=True)


@pytest.fixture(scope="module")
def presets(tmp_path_factory, tokenizer):
    """A plain BERT and one with memory, as masked-LM presets."""
    root = tmp_path_factory.mktemp("presets")
    for name, memory_layers in (("plain", ()), ("resm", (2,))):
        keras.utils.set_random_seed(0)
        task = models.PKMBertMaskedLM(
            models.PKMBertBackbone(
                **SIZES, memory_layers=memory_layers, memory=MEMORY
            )
        )
        preprocessor = keras_hub.models.BertMaskedLMPreprocessor(
            tokenizer, sequence_length=12
        )
        save_preset(task, preprocessor, root / name)
    return root


@pytest.fixture(scope="module")
def glue(tmp_path_factory):
    """A word decides each task."""
    root = tmp_path_factory.mktemp("GLUE")
    rng = np.random.default_rng(0)
    good, bad = WORDS[0:6:2], WORDS[1:6:2]

    def sentence(label):
        words = list(rng.choice(WORDS[6:], 3))
        words.insert(rng.integers(4), str(rng.choice(good if label else bad)))
        return " ".join(words)

    for name, files, header, row in (
        (
            "SST-2",
            ("train", "dev"),
            "sentence\tlabel\n",
            lambda label: f"{sentence(label)}\t{label}\n",
        ),
        (
            "CoLA",
            ("train", "dev"),
            "",
            lambda label: f"x\t{label}\t\t{sentence(label)}\n",
        ),
        (
            "MNLI",
            ("train", "dev_matched", "dev_mismatched"),
            "index\tsentence1\tsentence2\tgold_label\n",
            lambda label: (
                f"0\t{sentence(label)}\t{sentence(1)}\t"
                f"{['neutral', 'entailment'][label]}\n"
            ),
        ),
    ):
        (root / name).mkdir()
        for file in files:
            rows = [row(int(label)) for label in rng.integers(0, 2, 64)]
            (root / name / f"{file}.tsv").write_text(header + "".join(rows))
    return root


def run(glue, model, tmp_path, flags="", task="sst2", code=0):
    args = (
        f"--task {task} --model {model} --data {glue} --run-dir {tmp_path}/run "
        f"--batch-size 16 --epochs 2 --learning-rate 5e-3 --dropout 0 {flags}"
    )
    assert main(args.split()) == code
    if code == 0:
        return json.loads((tmp_path / "run" / "results.json").read_text())
    return None


def test_learns_and_reports(presets, glue, tmp_path, capsys):
    results = run(glue, presets / "resm", tmp_path, "--seeds 2 --epochs 25")
    accuracy = results["summary"]["dev accuracy"]
    assert accuracy["max"] > 0.9
    assert accuracy["min"] <= accuracy["median"] <= accuracy["max"]
    assert set(results["seeds"]) == {"0", "1"}
    assert len(results["seeds"]["0"]["epochs"]) == 25
    assert results["seeds"]["0"] != results["seeds"]["1"]
    text = (tmp_path / "run" / "results.md").read_text()
    assert text in capsys.readouterr().out
    assert "| the paper's +Init+ResM | 94.0 |" in text
    assert "| the most frequent class |" in text
    best = keras_hub.models.TextClassifier.from_preset(
        str(tmp_path / "run" / "seed-0" / "best")
    )
    assert isinstance(best, models.PKMBertTextClassifier)
    logits = best.predict(["good film", "bad film"], verbose=0)
    assert list(logits.argmax(-1)) == [1, 0]


@pytest.mark.parametrize("task", ["cola", "mnli"])
def test_other_metrics_and_dev_sets(presets, glue, tmp_path, task):
    results = run(
        glue,
        presets / "plain",
        tmp_path,
        f"--memory-layers 1 3 --memory-block pkm {MEMORY_FLAGS}",
        task,
    )
    assert (
        list(results["summary"])
        == {
            "cola": ["dev matthews_correlation"],
            "mnli": ["dev_matched accuracy", "dev_mismatched accuracy"],
        }[task]
    )
    assert results["memory_layers"] == [1, 3]
    assert results["memory_block"] == "pkm"
    assert all(0 <= share < 1 for share in results["baseline"].values())


@pytest.fixture(scope="module")
def squad(tmp_path_factory):
    """The answer follows the word "film"."""
    root = tmp_path_factory.mktemp("squad")
    rng = np.random.default_rng(0)
    for split in ("train", "dev"):
        paragraphs = []
        for number in range(48):
            words = list(rng.choice(WORDS[:6], 5))
            answer = str(rng.choice([f"w{i}" for i in range(20)]))
            place = rng.integers(6)
            words[place:place] = ["film", answer]
            context = " ".join(words)
            start = context.index(f"film {answer}") + 5
            paragraphs.append(
                {
                    "context": context,
                    "qas": [
                        {
                            "id": f"{split}{number}",
                            "question": "film",
                            "answers": [
                                {"text": answer, "answer_start": start}
                            ],
                        }
                    ],
                }
            )
        data = {"version": "1.1", "data": [{"paragraphs": paragraphs}]}
        (root / f"{split}-v1.1.json").write_text(json.dumps(data))
    return root


def test_squad(presets, squad, tmp_path):
    results = run(
        squad,
        presets / "resm",
        tmp_path,
        "--epochs 40 --stride 4 --answer-length 3",
        "squad",
    )
    summary = results["summary"]
    assert summary["dev F1"]["median"] > 0.8
    assert list(summary) == ["dev exact match", "dev F1"]
    text = (tmp_path / "run" / "results.md").read_text()
    assert "| the paper's +Init+ResM | 83.9 | 90.8 |" in text
    seed = tmp_path / "run" / "seed-0"
    predictions = json.loads((seed / "predictions.json").read_text())
    assert len(predictions) == 48
    gold = json.loads((squad / "dev-v1.1.json").read_text())["data"][0]
    answers = {
        qas["id"]: [answer["text"] for answer in qas["answers"]]
        for paragraph in gold["paragraphs"]
        for qas in paragraph["qas"]
    }
    score = squad_score(predictions, answers)
    assert score["f1"] / 100 == summary["dev F1"]["median"]
    best = json.loads((seed / "nbest_predictions.json").read_text())
    assert best["dev0"][0]["text"] == predictions["dev0"]
    task = models.QuestionAnswerer.from_preset(str(seed / "best"))
    assert isinstance(task, models.PKMBertQuestionAnswerer)


def test_keeps_what_the_best_epoch_said(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(
        finetuning_seed,
        "save_preset",
        lambda model, preprocessor, path: saved.append(path),
    )
    checkpoint = types.SimpleNamespace(state={"epochs": [], "best": 0})
    scores = iter([0.5, 0.7, 0.7, 0.6])

    def evaluate(model):
        score = next(scores)
        return Evaluated({"dev F1": score}, {"predictions.json": str(score)})

    work = types.SimpleNamespace(
        evaluate=evaluate, decides="dev F1", preprocessor=None
    )
    callback = finetuning_seed.EvaluateDevSets(checkpoint, work, tmp_path)
    for epoch in range(4):
        callback.on_epoch_end(epoch)
    assert checkpoint.state["best"] == 2
    assert saved == 2 * [tmp_path / "best"]
    assert (tmp_path / "predictions.json").read_text() == "0.7"


@pytest.mark.parametrize("task", ["sst2", "squad"])
def test_mirrored(presets, glue, squad, tmp_path, task, mirrored, monkeypatch):
    """Two devices: what one gives, but for the order of sums."""
    # One for all tests: those of one process confuse their collective ops.
    monkeypatch.setattr(
        finetune,
        "create_strategy",
        lambda name, _: (
            mirrored if name == "mirrored" else create_strategy(name)
        ),
    )
    data = {"sst2": glue, "squad": squad}[task]
    flags = "--stride 4 --precision float32 --strategy"
    one, two = (
        run(data, presets / "resm", tmp_path / name, f"{flags} {name}", task)
        for name in ("default", "mirrored")
    )
    assert list(one["summary"]) == list(two["summary"])
    for old, new in zip(
        one["seeds"]["0"]["epochs"], two["seeds"]["0"]["epochs"]
    ):
        for name, value in new.items():
            # A row of the 48 or 64 may change sides.
            assert value == pytest.approx(old[name], abs=0.05), name


def test_frozen_memory(presets, glue, tmp_path):
    run(glue, presets / "resm", tmp_path, "--freeze values keys queries")
    before = models.PKMBertBackbone.from_preset(str(presets / "resm"))
    after = models.PKMBertBackbone.from_preset(
        str(tmp_path / "run" / "seed-0" / "best")
    )
    same = {
        old.path: np.array_equal(old, new)
        for old, new in zip(before.weights, after.weights)
    }
    assert all(same[path] for path in same if "product_key_memory" in path)
    assert not same["pooled_dense/kernel"]


def test_goes_on_where_it_was_stopped(presets, glue, tmp_path, monkeypatch):
    whole = run(glue, presets / "resm", tmp_path / "whole", "--seeds 2")

    class Stops(finetuning_seed.StopOnSignal):
        def on_train_batch_end(self, batch, logs=None):
            if self.checkpoint.step == 6:
                self.signals.received = 15
            super().on_train_batch_end(batch, logs)

    with monkeypatch.context() as patched:
        patched.setattr(finetuning_seed, "StopOnSignal", Stops)
        run(glue, presets / "resm", tmp_path / "parts", "--seeds 2", code=143)
    parts = run(glue, presets / "resm", tmp_path / "parts", "--seeds 2")
    assert parts == whole


@pytest.mark.parametrize(
    ("model", "flags", "message"),
    [
        ("resm", "--memory-layers 1", "has one in layers 2: leave the flags"),
        ("plain", "--memory-block resm", "--memory-layers, such as 4 8"),
        ("plain", "--freeze values", "needs a model with memory"),
        ("plain", "--sequence-length 500", "at most the model's 20"),
        ("plain", "--memory-layers 4", "different numbers from 1"),
        ("plain", "--limit 0", "--limit must be at least 1, received 0"),
        ("plain", "--dropout 1", "--dropout must be at least 0 and below 1"),
        ("plain", "--learning-rate 0", "--learning-rate must be above 0"),
        ("nothing", "", "--model must be a run directory, a preset or"),
    ],
)
def test_mistakes(presets, glue, tmp_path, capsys, model, flags, message):
    run(glue, presets / model, tmp_path, flags, code=2)
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_bad_rows(presets, glue, tmp_path, capsys):
    broken = tmp_path / "SST-2"
    broken.mkdir()
    for name in ("train", "dev"):
        text = (glue / "SST-2" / f"{name}.tsv").read_text()
        (broken / f"{name}.tsv").write_text(f"{text}no label\n")
    run(tmp_path, presets / "plain", tmp_path, code=2)
    assert "train.tsv, line 66: a row must" in capsys.readouterr().err
    run(tmp_path, presets / "plain", tmp_path, "--skip-bad-rows")
    assert "2 bad rows were left out" in capsys.readouterr().out
