"""What the command refuses before it writes anything."""

import pytest

from tests.training.tiny_run import TINY
from training.loading.pretrained_model import load_tokenizer
from training.pretrain import main
from training.pretraining.recipe import RECIPES
from training.pretraining.recipe import check_recipe


@pytest.fixture
def refused(tmp_path, capsys):
    """Runs a command that must fail, here, and returns its one line."""

    def refused(*args):
        run_dir = tmp_path / "run"
        assert main(["--out", str(run_dir), *args]) == 2
        assert not run_dir.exists()
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("error: ")
        return line

    return refused


@pytest.mark.parametrize(
    "args, words",
    [
        ("--memory-layers 5", ["memory_layers=(5,)", "num_layers=3"]),
        ("--memory-key-dim 7", ["`key_dim` must be even", "key_dim=7"]),
        ("--memory-top-k 99", ["`top_k`", "top_k=99", "num_sub_keys="]),
        ("--memory-layers", ["--memory-layers", "--memory-block ffn"]),
        (
            "--strategy mirrored --batch-size 7",
            ["--batch-size", "7", "2 devices"],
        ),
        (
            "--hidden-dim 100 --num-heads 3",
            ["--num-heads must be a divisor of --hidden-dim, 100, received 3"],
        ),
        ("--devices 2", ["--devices", "--strategy mirrored"]),
        ("--steps 0", ["--steps must be at least 1, received 0"]),
        ("--steps 10 --evaluate-every 4", ["--evaluate-every", "divisor"]),
        ("--mask-rate 1.5", ["--mask-rate", "1.5"]),
        ("--text /nowhere/x.txt", ["/nowhere/x.txt"]),
        ("--vocabulary /nowhere/v.txt", ["/nowhere/v.txt"]),
        ("--init-from /nowhere", ["--init-from", "/nowhere"]),
        ("--held-out 1", ["held-out"]),
        ("--seed -1", ["--seed", "at least 0, received -1"]),
        ("--clip-norm nan", ["--clip-norm must be a finite number"]),
        ("--clip-norm 1e300", ["--clip-norm", "received 1e+300"]),
        (
            "--batch-size 3000000000",
            ["--batch-size must be at most 2147483647"],
        ),
        ("--clip-norm -1", ["--clip-norm must be above 0, received -1.0"]),
        ("--weight-decay nan", ["--weight-decay must be a finite number"]),
        ("--weight-decay -1", ["--weight-decay", "at least 0"]),
        ("--query-dropout nan", ["--query-dropout must be a finite number"]),
        (
            "--backbone gpt2 --mask-rate 0.2",
            ["--mask-rate would do nothing: a causal model has no masks"],
        ),
        ("--validation x.txt --held-out 0.2", ["--held-out would do nothing"]),
        (
            "--plain-steps 0 --fresh-feed-forward",
            ["--fresh-feed-forward would do nothing", "--plain-steps"],
        ),
        (
            "--memory-block ffn --fresh-feed-forward",
            ["--fresh-feed-forward would do nothing"],
        ),
    ],
)
def test_refuses_the_impossible(args, words, refused):
    line = refused(*args.split())
    for word in words:
        assert word in line


def test_refuses_held_out_text_that_is_trained_on(tiny_run, refused):
    corpus = tiny_run.corpus
    line = refused(
        "--text", f"{corpus.parent}/*.txt", "--validation", str(corpus)
    )
    assert "--validation must be text that is not in --text" in line
    assert str(corpus) in line


def test_refuses_bad_files(tmp_path, tiny_run, refused):
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n")
    assert str(empty) in refused("--text", str(empty))
    noise = tmp_path / "noise.bin"
    noise.write_bytes(bytes(range(256)) * 50)
    assert str(noise) in refused("--text", str(noise))
    vocabulary = tmp_path / "vocabulary.txt"
    vocabulary.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nword\n")
    line = refused(
        *("--text", str(tiny_run.corpus), "--vocabulary", str(vocabulary))
    )
    assert "[MASK]" in line and str(vocabulary) in line


@pytest.mark.parametrize(
    "args, words",
    [
        ("--vocabulary-size 12", "at least the corpus's characters"),
        ("--vocabulary-size 99 --backbone roberta", "at least all bytes"),
    ],
)
def test_a_vocabulary_that_comes_out_too_small(
    args, words, tiny_run, tmp_path, capsys
):
    """It is known once the corpus was read; the remedy works then."""
    run_dir = tmp_path / "run"
    args = [*args.split(), "--text", str(tiny_run.corpus)]
    assert main([*args, "--out", str(run_dir)]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("error: ") and words in line
    assert not run_dir.exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tokens: tokens[:-5], "{:,}"),
        (lambda tokens: tokens[:-2] + tokens[:-3:-1], "in the model's order"),
    ],
    ids=["shorter", "another order"],
)
def test_refuses_another_vocabulary_than_the_model_s(
    change, words, tiny_run, tmp_path, refused
):
    run_dir = tiny_run.path
    vocabulary = load_tokenizer(str(run_dir / "tokenizer")).get_vocabulary()
    vocabulary = change(vocabulary)
    path = tmp_path / "other.txt"
    path.write_text("\n".join(vocabulary))
    args = ["--init-from", str(run_dir), "--vocabulary", str(path)]
    args += ["--sequence-length", "16"]
    line = refused(*args, "--text", str(tiny_run.corpus))
    assert "--vocabulary" in line and words.format(len(vocabulary)) in line


def test_refuses_a_run_directory_that_holds_a_finished_run(tiny_run, capsys):
    run_dir = tiny_run.path
    before = {path: path.stat().st_mtime_ns for path in run_dir.rglob("*")}
    assert main(["--out", str(run_dir), *TINY]) == 2
    assert f"'{run_dir}' contains a finished run" in capsys.readouterr().err
    after = {path: path.stat().st_mtime_ns for path in run_dir.rglob("*")}
    assert before == after


def test_refuses_a_corpus_without_a_held_out_part(tmp_path, refused):
    text = tmp_path / "one.txt"
    text.write_text("One document only.")
    line = refused("--text", str(text))
    assert "held out" in line and "--validation" in line


def test_recipes_are_possible():
    assert set(RECIPES) == {
        "laptop",
        "paper-base",
        "paper-large",
        "paper-distilbert",
    }
    for recipe in RECIPES.values():
        check_recipe(recipe)
    base = RECIPES["paper-base"]
    assert (base.steps, base.plain_steps, base.batch_size) == (
        500_000,
        500_000,
        1024,
    )
    assert base.memory_config()["num_sub_keys"] ** 2 == 262_144
