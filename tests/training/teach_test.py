"""`training/teach.py`: a run is taught, patched, and put back."""

import json
import re
import shutil

import keras
import keras_hub
import numpy as np
import pytest

from keras_pkm.files.presets import save_preset
from keras_pkm.teaching import MemoryPatch
from keras_pkm.teaching import SlotImportance
from tests.markdown import squeezed
from tests.models.tiny import tiny_masked_lm
from tests.training.tiny_run import md5_of_model
from training import evaluate_mlm
from training.corpora.word_pieces import make_tokenizer
from training.corpora.word_pieces import train_vocabulary
from training.runs.run_directory import RunDirectory
from training.teach import main
from training.teaching.patch_list import without

TEXT = "The dog met a fox. Nobody knows why the fox met the dog. A cat ran."
FACTS = "dog\tmet\tfox\nfox\tmet\tthe dog\ncat\tknows\tnobody\n"


def make_run(root, **sizes):
    """A pretraining run, as far as it matters."""
    root.mkdir()
    (root / "recipe.json").write_text("{}")
    tokenizer = make_tokenizer(train_vocabulary([TEXT], 80, progress=False))
    keras.utils.set_random_seed(0)
    task = tiny_masked_lm(vocabulary_size=tokenizer.vocabulary_size(), **sizes)
    # Weights large enough for facts to tell apart.
    for weight in task.weights:
        if not weight.path.endswith("moving_variance"):
            weight.assign_add(keras.random.normal(weight.shape, stddev=0.3))
    preprocessor = keras_hub.models.BertMaskedLMPreprocessor(
        tokenizer, sequence_length=16
    )
    save_preset(task, preprocessor, root / "best")
    return root


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    path = tmp_path_factory.mktemp("facts") / "facts.tsv"
    path.write_text(FACTS)
    return path


@pytest.fixture(scope="module")
def taught(run, facts, tmp_path_factory):
    out = tmp_path_factory.mktemp("taught") / "run"
    flags = f"--model {run} --facts {facts} --out {out} --keep {facts}"
    # In batches of two facts, until all three are known.
    flags += " --method values --learning-rate 0.3 --batch-size 2"
    assert main(flags.split()) == 0
    return out


def test_facts_are_learned_and_the_run_is_one(taught, run, capsys):
    results = json.loads((taught / "results.json").read_text())
    assert results["new"]["facts"] == 3
    assert results["new"]["known_before"] < 1
    assert results["new"]["known_after"] == 1
    assert results["old"]["known_after"] == 1
    (steps,) = results["steps"]
    # Whether all is known is asked after each pass.
    assert 2 <= steps < 400
    assert steps % 2 == 0
    size = (taught / "patch.safetensors").stat().st_size
    assert results["patch"]["bytes"] == size
    table = squeezed((taught / "results.md").read_text())
    assert "| 3 facts, new: known | 0.0 % | 100.0 % |" in table
    assert f"{size:,} bytes, {size / 3:,.0f} a fact" in table
    # Others read it as they read any run.
    assert RunDirectory(taught).find_model() == taught / "last"
    text = taught.parent / "text.txt"
    text.write_text(TEXT)
    assert evaluate_mlm.main(["--model", str(taught), "--text", str(text)]) == 0
    assert md5_of_model(taught) != md5_of_model(run)


def test_applied_and_reverted_to_the_last_bit(taught, run, tmp_path):
    patch = taught / "patch.safetensors"

    def change(model, how, name):
        out = tmp_path / name
        flags = f"--model {model} {how} {patch} --out {out}"
        return main(flags.split()), out

    code, applied = change(run, "--apply", "applied")
    assert code == 0 and md5_of_model(applied) == md5_of_model(taught)
    rows = MemoryPatch.load(patch).num_rows
    table = (applied / "results.md").read_text().splitlines()
    has = f"Patches that the model has: {patch} ({rows:,} rows)."
    assert table == [f"{rows:,} rows were applied.", "", has]
    for one, other in zip(patches_of(applied), patches_of(taught), strict=True):
        assert one["sha256"] == other["sha256"]
    assert MemoryPatch.load(applied / "patch.safetensors").num_rows > 0
    code, reverted = change(taught, "--revert", "reverted")
    assert code == 0 and md5_of_model(reverted) == md5_of_model(run)
    assert not (reverted / "patch.safetensors").exists()
    assert patches_of(reverted) == []


def test_the_list_of_patches():
    first, second, third = ({"sha256": each} for each in "abc")
    assert without([first, second, third], second) == [first, third]
    assert without([first, second, first], first) == [first, second]
    assert without([first], second) == [first]


def patches_of(run):
    return json.loads((run / "results.json").read_text())["patches"]


@pytest.mark.parametrize(
    ("model", "how", "message"),
    [
        ("taught", "--apply", "--apply: .*has already been applied"),
        ("run", "--revert", "--revert: .*choose the model that was taught"),
        ("other", "--apply", "--apply: .*other weights differ"),
        ("plain", "--apply", "--apply: .*same memories"),
    ],
)
def test_patches_that_do_not_suit(
    model, how, message, request, taught, tmp_path, capsys
):
    if model == "other":
        path = make_run(tmp_path / "other", intermediate_dim=24)
    elif model == "plain":
        path = make_run(tmp_path / "plain", memory_layers=())
    else:
        path = request.getfixturevalue(model)
    out = tmp_path / "out"
    patch = taught / "patch.safetensors"
    flags = f"--model {path} {how} {patch} --out {out}"
    assert main(flags.split()) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not out.exists()


@pytest.mark.slow
def test_a_text_with_its_important_slots(run, tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join([TEXT] * 4))
    out = tmp_path / "out"
    flags = f"--model {run} --text {text} --keep {text} --out {out} --fall 0.9"
    slots = "--method slots --slots 8 --steps 100 --learning-rate 0.1"
    assert main([*flags.split(), *slots.split()]) == 2
    assert "pass --background TEXT" in capsys.readouterr().err
    assert not out.exists()
    flags += f" --background {text}"
    assert main([*flags.split(), *slots.split()]) == 0
    results = json.loads((out / "results.json").read_text())
    assert (
        results["new"]["perplexity_after"]
        < (results["new"]["perplexity_before"])
    )
    assert results["new"] == results["old"]
    importance = SlotImportance.load(out / "document_frequencies.npz")
    assert importance.num_batches == 200
    # What was counted once serves again, and goes along.
    again = tmp_path / "again"
    flags = f"--model {out} --text {text} --out {again} --steps 1"
    assert main([*flags.split(), *slots.split()[:4]]) == 0
    assert (again / "document_frequencies.npz").read_bytes() == (
        out / "document_frequencies.npz"
    ).read_bytes()


@pytest.mark.slow
def test_counts_and_patches_end_where_other_weights_change(
    taught, run, facts, tmp_path
):
    """Of other queries, other slots are read, and no patch can be undone."""
    assert patches_of(taught)
    importance = SlotImportance(99, {1: np.arange(64), 3: np.arange(64)})
    sources = [shutil.copytree(taught, tmp_path / name) for name in "ab"]
    for source, method in zip(sources, ("values", "ffn")):
        importance.save(source / "document_frequencies.npz")
        out = tmp_path / method
        flags = f"--model {source} --facts {facts} --method {method}"
        assert main([*flags.split(), "--steps", "1", "--out", str(out)]) == 0
        is_same = method == "values"
        assert (out / "document_frequencies.npz").exists() == is_same
        assert len(patches_of(out)) == (2 if is_same else 0)


@pytest.mark.slow
def test_a_memory_too_small_to_choose_from(
    run, facts, tmp_path, capsys, caplog
):
    """All of its slots are trained, and it is said what was not learned."""
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join([TEXT] * 4))
    out = tmp_path / "out"
    flags = f"--model {run} --facts {facts} --out {out} --background {text}"
    assert main([*flags.split(), "--steps", "1"]) == 0
    (line,) = (line for line in caplog.messages if "slots of memory" in line)
    assert "fewer than --slots 500" in line and "--method values" in line
    results = json.loads((out / "results.json").read_text())
    assert results["method"] == "values" and results["steps"] == [1]
    printed = capsys.readouterr().out
    left = round(3 * (1 - results["new"]["known_after"]))
    assert f"{left} of 3 are not known." in printed
    assert "More --steps" in printed and "--method values" not in printed
    assert f"The model is in {out}." in printed
    revert = f"--model {out} --revert {out}/patch.safetensors --out reverted"
    assert f"training/teach.py {revert}" in printed


@pytest.mark.slow
def test_all_weights_leave_no_patch(run, facts, tmp_path, capsys):
    out = tmp_path / "out"
    flags = f"--model {run} --facts {facts} --out {out} --method replay"
    assert main([*flags.split(), "--steps", "2"]) == 2
    assert "pass --keep" in capsys.readouterr().err
    flags += f" --keep {facts}"
    assert main([*flags.split(), "--steps", "2"]) == 0
    assert not (out / "patch.safetensors").exists()
    assert "patch" not in json.loads((out / "results.json").read_text())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("", "one of --facts, --text, --apply and --revert .* received none"),
        ("--facts f.tsv --text t", "received --facts and --text"),
        ("--facts {facts}", "pass --background TEXT, or --method values"),
        ("--facts none.tsv", "--facts must name a file.*none.tsv"),
        ("--facts {facts} --template no", "--template must have {subject}"),
        ("--facts {facts} --keep none.tsv", "--keep must name a file"),
        ("--facts {facts} --steps 0", "--steps must be at least 1"),
        ("--facts {facts} --fall 1.5", "--fall must be"),
        ("--facts {facts} --learning-rate 0", "--learning-rate must be above"),
        ("--facts {unknown}", "line 2: the value must be of words.*'日本'"),
        ("--facts {long}", "line 1: a fact must have at most the 20 tokens"),
        ("--facts {facts} --model {plain}", "pass --method all"),
        ("--facts {facts} --model nowhere", "--model must be"),
        ("--text none.txt", "none.txt"),
        ("--apply none.safetensors", "--apply: .*none.safetensors"),
        ("--apply p --steps 3", "--steps would do nothing: .*taught nothing"),
        ("--facts {facts} --method all --rule sgd", "--rule would do nothing"),
        ("--facts {facts} --method all --slots 9", "--slots would do nothing"),
        ("--facts {facts} --fall 0.9", "--fall would do nothing"),
        ("--text t.txt --template x", "--template would do nothing"),
    ],
)
def test_mistakes(flags, message, run, facts, tmp_path, capsys):
    paths = {"facts": facts, "plain": tmp_path / "plain"}
    for name, text in (
        ("unknown", "dog\tmet\tfox\nfox\tmet\t日本\n"),
        ("long", f"{'dog ' * 30}\tmet\tfox\n"),
    ):
        paths[name] = tmp_path / f"{name}.tsv"
        paths[name].write_text(text)
    if "{plain}" in flags:
        make_run(paths["plain"], memory_layers=())
    for name, path in paths.items():
        flags = flags.replace(f"{{{name}}}", str(path))
    out = tmp_path / "out"
    args = ["--model", str(run), "--out", str(out), *flags.split()]
    assert main(args) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not out.exists()


def test_an_output_that_is_not_empty(run, facts, tmp_path, capsys):
    (tmp_path / "file").write_text("kept")
    flags = f"--model {run} --facts {facts} --out {tmp_path}"
    assert main(flags.split()) == 2
    assert "--out must be new or empty" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["lora", "head"])
def test_what_is_written_is_what_was_taught(method, run, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    found = []
    for model, name in ((run, "first"), (tmp_path / "first", "second")):
        flags = f"--model {model} --text {text} --out {tmp_path / name}"
        flags += f" --method {method} --learning-rate 0.1 --steps 3"
        assert main(flags.split()) == 0
        results = json.loads((tmp_path / name / "results.json").read_text())
        found.append(results["new"])
    assert found[0]["perplexity_after"] != found[0]["perplexity_before"]
    assert found[1]["perplexity_before"] == pytest.approx(
        found[0]["perplexity_after"], rel=1e-5
    )
