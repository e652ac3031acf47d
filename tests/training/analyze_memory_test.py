"""The report on memories: its numbers, recomputed from raw reads in numpy."""

import csv
import json
import math
import shutil

import keras
import numpy as np
import pytest

from export import saved_model
from tests.browser import look_at_page
from training import analyze_memory
from training import evaluate_mlm
from training.corpora.corpus import open_corpus
from training.corpora.packed_text import tokenize_and_pack
from training.loading.pretrained_model import load_pretrained


@pytest.fixture(scope="module")
def work(tiny_run, tmp_path_factory):
    """That run, its model as if fine-tuned, its text and a task of GLUE."""
    root = tmp_path_factory.mktemp("work")
    for name in ("run", "corpus.txt", "glue"):
        (root / name).symlink_to(tiny_run.root / name)
    tuned = root / "tuned"
    shutil.copytree(tiny_run.files.best, tuned / "seed-0" / "best")
    (tuned / "recipe.json").write_text('{"task": "sst2"}')
    (tuned / "results.json").write_text('{"best_model": "seed-0/best"}')
    return root


@pytest.fixture(scope="module")
def report(work):
    args = f"--model {work / 'run'} --text {work / 'corpus.txt'} "
    args += f"--out {work / 'report'} --limit 37 --batch-size 8 --seed 3 "
    args += f"--task sst2 --glue {work / 'glue'} --fine-tuned {work / 'tuned'} "
    args += "--ablate-memory zero shuffle"
    assert analyze_memory.main(args.split()) == 0
    return json.loads((work / "report" / "report.json").read_text())


def raw_reads(model, batches):
    """Slots and weights of all tokens, one row each, and the ids."""
    backbone = model.backbone
    probe = keras.Model(backbone.inputs, backbone.memory_outputs[2])
    found = []
    for features, *_ in batches:
        inputs = {name: features[name] for name in backbone.input}
        slots, weights = probe(inputs, training=False)
        mask = np.array(features["padding_mask"], bool)
        ids = np.array(features["token_ids"])
        found.append(
            (np.array(slots)[mask], np.array(weights)[mask], ids[mask])
        )
    return tuple(np.concatenate(part) for part in zip(*found))


@pytest.fixture(scope="module")
def reads(work):
    model = load_pretrained(str(work / "run"), None)
    length = model.backbone.max_sequence_length
    packed = tokenize_and_pack(
        open_corpus(str(work / "corpus.txt"), None),
        model.tokenizer,
        length,
        work / "packed",
        progress_label=None,
    )[:37]
    objective = model.family.make_objective(model.tokenizer, length, 0.15)
    return raw_reads(
        model, objective.held_out_batches(packed, batch_size=8, seed=3)
    )


@pytest.mark.slow
def test_usage(report, reads):
    slots, weights, ids = reads
    memory = report["memories"]["2"]
    assert report["tokens"] == len(ids) > 300
    assert memory["num_slots"] == 64

    def divergence(x):
        p = x[x > 0] / x.sum()
        return math.log(64) + (p * np.log(p)).sum()

    read = np.bincount(slots.reshape(-1), minlength=64)
    # The search gives each head's slots with the best one first.
    top1 = np.bincount(slots[..., 0].reshape(-1), minlength=64)
    best_head = weights[..., 0].argmax(1)
    per_token = slots[np.arange(len(slots)), best_head, 0]
    weight = np.zeros(64)
    np.add.at(weight, slots.reshape(-1), weights.reshape(-1).astype(float))
    expected = {
        "mu": np.mean(read > 0),
        "top1_mu": np.mean(top1 > 0),
        "top1_token_mu": len(set(per_token.tolist())) / 64,
        "kl_u": divergence(read),
        "kl_w": divergence(weight),
        "top1_reads": top1.sum(),
    }
    for name, value in expected.items():
        # Another graph rounds the weights in another way.
        rel = 1e-6 if name == "kl_w" else 1e-9
        assert memory[name] == pytest.approx(value, rel=rel), name
    for name, counts in (("sorted_reads", read), ("sorted_top1", top1)):
        ordered = np.sort(counts)[::-1]
        assert memory[name][0]["rank"] == 1 and memory[name][-1]["rank"] == 64
        for point in memory[name]:
            assert point["reads"] == ordered[point["rank"] - 1]


@pytest.mark.slow
def test_ablations(report, work, capsys):
    """The same figures as `evaluate_mlm.py` has of the same text."""
    args = f"--model {work}/run --text {work}/corpus.txt --limit 37 "
    args += f"--batch-size 8 --seed 3 --out {work / 'mlm.json'}"
    for how in ("trained", "zero", "shuffle"):
        flags = [] if how == "trained" else ["--ablate-memory", how]
        assert evaluate_mlm.main([*args.split(), *flags]) == 0
        alone = json.loads((work / "mlm.json").read_text())
        for name, value in report["ablations"][how].items():
            assert value == pytest.approx(alone[name])
    found = {each["perplexity"] for each in report["ablations"].values()}
    assert len(found) == 3
    printed = capsys.readouterr().out
    assert "All values of the memories were set to zero." in printed
    assert "The rows of the memories' tables were shuffled." in printed


@pytest.mark.slow
def test_coverage(report, reads):
    slots, _, ids = reads
    points = report["memories"]["2"]["coverage"]
    assert len(points) > 2 and points[-1]["tokens"] == len(ids)
    for point in points:
        some = slots[: point["tokens"]]
        assert point["mu"] == len(set(some.reshape(-1).tolist())) / 64
        assert (
            point["top1_mu"] == len(set(some[..., 0].reshape(-1).tolist())) / 64
        )


@pytest.mark.slow
def test_readers(report, reads, work):
    slots, _, ids = reads
    tokenizer = load_pretrained(str(work / "run"), None).tokenizer
    readers = report["memories"]["2"]["readers"]
    top1 = slots[..., 0]
    counts = np.bincount(top1.reshape(-1), minlength=64)
    assert [reader["reads"] for reader in readers] == sorted(
        counts[counts > 0].tolist(), reverse=True
    )[:20]
    for reader in readers[:5]:
        # Each head's read counts, so a token may count twice.
        tokens = np.repeat(ids, top1.shape[1])[
            (top1 == reader["slot"]).reshape(-1)
        ]
        assert len(tokens) == reader["reads"]
        telling = []
        for token in set(tokens.tolist()):
            p, q = np.mean(tokens == token), np.mean(ids == token)
            telling.append((p * math.log(p / q), token, p, p / q))
        telling.sort(key=lambda row: (-row[0], row[1]))
        assert len(reader["tokens"]) == min(5, len(telling))
        for found, (_, token, share, lift) in zip(reader["tokens"], telling):
            assert found["token"] == tokenizer.id_to_token(token)
            assert found["share"] == pytest.approx(share)
            assert found["lift"] == pytest.approx(lift)
        assert reader["contexts"]
        readers_of = {tokenizer.id_to_token(token) for token in set(tokens)}
        for _, token, _ in reader["contexts"]:
            assert token in readers_of


@pytest.mark.slow
def test_staleness_and_curves(report, work):
    logs = work / "run" / "logs"
    last = np.full(64, -1)
    assert list(report["staleness"]["2"]) == ["2", "4", "6"]
    for step in (2, 4, 6):
        with np.load(logs / "resm-slots" / f"step-{step}.npz") as file:
            last[file["2/top1"] > 0] = step
        expected = {
            "never" if some < 0 else str(some): float(np.mean(last == some))
            for some in sorted(set(last.tolist()))
        }
        assert report["staleness"]["2"][str(step)] == expected

    assert list(report["curves"]) == ["run, plain", "run, +Init resm"]
    curves = report["curves"]["run, +Init resm"]
    with open(logs / "resm.csv") as file:
        held_out = [
            float(row["val_perplexity"]) for row in csv.DictReader(file)
        ]
    assert curves["held_out"] == [
        [2 * i, value] for i, value in enumerate(held_out, 1)
    ]
    assert [step for step, _ in curves["training"]] == [1, 2, 3, 4, 5, 6]
    with open(logs / "resm.csv") as file:
        epochs = [float(row["perplexity"]) for row in csv.DictReader(file)]
    for epoch, mean in enumerate(epochs):
        pair = [value for _, value in curves["training"]][2 * epoch :][:2]
        # Keras logs a step's perplexity as the mean of both devices', and an
        # epoch's over all tokens; tests/training/resume_test.py has one device.
        assert np.prod(pair) ** 0.5 == pytest.approx(mean, rel=1e-3)


@pytest.mark.slow
def test_classes(report, work):
    model = load_pretrained(str(work / "run"), None)
    preprocessor = model.family.preprocessor(
        model.tokenizer, sequence_length=model.backbone.max_sequence_length
    )
    lines = (work / "glue" / "SST-2" / "dev.tsv").read_text().splitlines()[1:]
    texts, labels = zip(*(line.split("\t") for line in lines))
    counts = []
    for label in "01":
        some = [text for text, other in zip(texts, labels) if other == label]
        slots, _, _ = raw_reads(model, [(preprocessor(some),)])
        counts.append(np.bincount(slots[..., 0].reshape(-1), minlength=64))
    no, yes = counts[0] / counts[0].sum(), counts[1] / counts[1].sum()
    smoothed = (counts[0] + 0.5) / (counts[0] + 0.5).sum()
    used = yes > 0
    expected = {
        "kl": np.sum(yes[used] * np.log(yes[used] / smoothed[used])),
        "outside": yes[counts[0] == 0].sum(),
        "iou": np.minimum(no, yes).sum() / np.maximum(no, yes).sum(),
        "reads_0": counts[0].sum(),
        "reads_1": counts[1].sum(),
    }
    assert report["class_names"] == ["negative", "positive"]
    # The same model twice.
    for name in ("pretrained", "fine-tuned"):
        assert report["classes"][name]["2"] == pytest.approx(expected)


@pytest.mark.slow
def test_files(report, work):
    names = {path.name for path in (work / "report").iterdir()}
    plots = "slot_counts grids coverage staleness curves classes".split()
    assert names == {
        "report.html",
        "report.json",
        *(f"{plot}.{kind}" for plot in plots for kind in ("png", "svg")),
    }
    page = (work / "report" / "report.html").read_text()
    assert page.count("<img ") == len(plots)
    # Opens offline: nothing is fetched, nothing runs.
    assert "http" not in page.replace("http-equiv", "")
    assert "<script" not in page
    memory = report["memories"]["2"]
    assert f"<td>{memory['kl_u']:.2f}</td>" in page
    assert "the paper&#39;s +Init+ResM, layer 8" in page


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.slow
def test_page_in_a_browser(report, work, tmp_path, width):
    page = (work / "report" / "report.html").read_text()
    seen, messages = look_at_page(page, tmp_path, width)
    assert messages == []
    assert seen["scroll_width"] <= seen["width"] == width
    assert len(seen["pictures"]) == 6
    for picture in seen["pictures"]:
        assert picture["loaded"] and picture["height"] > 100
        assert 0 <= picture["left"] < picture["right"] <= width
    # Of a broken page one would know.
    page = "<body><img src='none.png'><script>none()</script></body>"
    seen, messages = look_at_page(page, tmp_path, width)
    assert "none is not defined" in messages[0]
    assert not seen["pictures"][0]["loaded"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--model nothing", "--model must be a run directory"),
        ("--out {work}", "--out must be new or empty"),
        ("--runs {work}", "--runs must be directories of pretraining runs"),
        ("--model {work}/run/plain", "--model must have a memory"),
        ("--sequence-length 99", "at most the model's 16, received 99"),
        ("--fine-tuned {work}/run", "--fine-tuned would do nothing"),
        ("--preprocessor {work}", "--preprocessor would do nothing"),
    ],
)
def test_mistakes(work, tmp_path, capsys, flags, message):
    args = f"--model {work / 'run'} --text {work / 'corpus.txt'} "
    args += f"--out {tmp_path / 'out'} {flags.format(work=work)}"
    assert analyze_memory.main(args.split()) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_an_exported_model(work, tmp_path):
    """Its reads are those of the model, of the same lines without masks."""
    exported, out = tmp_path / "served", tmp_path / "report"
    args = f"--model {work / 'run'} --what mlm --out {exported}"
    assert saved_model.main(args.split()) == 0
    args = f"--model {exported} --text {work / 'corpus.txt'} --out {out}"
    assert analyze_memory.main([*args.split(), "--limit", "50"]) == 0
    served = json.loads((out / "report.json").read_text())
    model = load_pretrained(str(work / "run"), None)
    text = (work / "corpus.txt").read_text().split("\n")
    lines = [line for line in text if line][:50]
    preprocessor = model.family.preprocessor(
        model.tokenizer, sequence_length=model.backbone.max_sequence_length
    )
    slots, _, ids = raw_reads(model, [(preprocessor(lines),)])
    assert served["tokens"] == len(ids)
    used = len(set(slots[..., 0].reshape(-1).tolist())) / 64
    assert served["memories"]["2"]["top1_mu"] == pytest.approx(used, abs=1e-9)
    assert served["memories"]["2"]["readers"] == []
    assert analyze_memory.main([*args.split(), "--task", "sst2"]) == 2
