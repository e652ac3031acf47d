"""`training/pretrain.py --objective causal`, from text to generation."""

import json
import math
import re

import keras_hub
import numpy as np
import pytest

from tests.training.tiny_run import SHORT
from tests.training.tiny_run import TINY
from tests.training.tiny_run import write_corpus
from training import evaluate_mlm
from training.corpora.corpus import open_corpus
from training.corpora.corpus import split_documents
from training.corpora.packed_text import open_packed
from training.loading.pretrained_model import load_language_model
from training.pretrain import main
from training.runs.run_directory import RunDirectory

CAUSAL = "--objective causal --backbone gpt2".split()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("text") / "corpus.txt")


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    args = ["--text", corpus, *TINY, *CAUSAL, "--out", str(path)]
    assert main(args) == 0
    return RunDirectory(path)


def log_p(task, rows):
    """-ln p of each token but the first, from the task's own call."""
    inputs = {"token_ids": rows, "padding_mask": np.ones_like(rows)}
    logits = np.asarray(task(inputs), "float64")[:, :-1]
    logits -= logits.max(-1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
    return np.take_along_axis(logits, rows[:, 1:, None], -1)[..., 0]


@pytest.mark.slow
def test_the_figures_are_those_of_the_saved_model(run, corpus):
    plain, resm = run.read_results()["stages"]
    assert plain["perplexity"] > resm["perplexity"]
    # A memory is added whose values are zero.
    assert resm["perplexity_before"] == pytest.approx(
        plain["perplexity"], rel=1e-5
    )
    task, family, tokenizer = load_language_model(str(run.last))
    assert family.name == "gpt2"
    rows = open_packed(run.packed_held_out, 16, tokenizer.vocabulary_size())
    end = tokenizer.end_token_id
    # All but what the last row is filled up with.
    is_label = np.ones((len(rows), 15), bool)
    for place in range(14, 0, -1):
        if not (rows[-1, place:] == end).all():
            break
        is_label[-1, place] = False
    nll = -log_p(task, np.array(rows))[is_label]
    assert resm["predicted_tokens"] == len(nll)
    assert resm["perplexity"] == pytest.approx(math.exp(nll.mean()), rel=1e-4)
    _, held_out = split_documents(open_corpus(corpus), 0.2)
    num_bytes = sum(len(document.encode()) for document in held_out)
    assert resm["bits_per_byte"] == pytest.approx(
        nll.sum() / math.log(2) / num_bytes, rel=1e-4
    )
    assert "bits/byte" in run.results_table.read_text()
    assert 0 < resm["memory_usage"]["2"]["top1_mu"] <= 1


@pytest.mark.slow
def test_a_preset_generates(run):
    task = keras_hub.models.CausalLM.from_preset(str(run.last))
    assert isinstance(task, keras_hub.models.GPT2CausalLM)
    assert sorted(task.backbone.memory_outputs) == [2]
    task.compile(sampler="greedy")
    # Without an end, as many tokens as there is room for: by hand, each the
    # best one behind those before.
    tokenizer = task.preprocessor.tokenizer
    ids = [tokenizer.start_token_id, *tokenizer("bat fould")]
    text = task.generate("bat fould", max_length=16, stop_token_ids=None)
    without_strings = load_language_model(str(run.last))[0].backbone
    while len(ids) < 16:
        rows = np.array([ids])
        hidden = without_strings(
            {"token_ids": rows, "padding_mask": np.ones_like(rows)}
        )
        logits = without_strings.token_embedding(hidden, reverse=True)
        ids.append(int(np.argmax(logits[0, -1])))
    assert text == tokenizer.detokenize([ids[1:]])[0]
    plain = keras_hub.models.CausalLM.from_preset(str(run.plain))
    assert not plain.backbone.memory_outputs
    recipe = run.read_recipe()
    assert recipe["objective"] == "causal"
    assert recipe["query_normalization"] == "layer"


@pytest.mark.slow
def test_goes_on_from_another_run(run, corpus, tmp_path):
    flags = "--steps 2 --evaluate-every 2 --batch-size 8 --sequence-length 16"
    args = ["--text", corpus, "--init-from", str(run.root), *flags.split()]
    args += ["--held-out", "0.2", "--out", str(tmp_path / "run")]
    assert main(args) == 0
    recipe = json.loads((tmp_path / "run" / "recipe.json").read_text())
    assert recipe["backbone"] == "gpt2" and recipe["hidden_dim"] == 16
    assert recipe["memory_layers"] == [2] and recipe["num_sub_keys"] == 8
    (stage,) = RunDirectory(tmp_path / "run").read_results()["stages"]
    last = run.read_results()["stages"][-1]
    # The same model, on the same held-out text.
    assert stage["perplexity_before"] == pytest.approx(
        last["perplexity"], rel=1e-5
    )


@pytest.mark.slow
def test_another_decoder(corpus, tmp_path):
    run = RunDirectory(tmp_path / "run")
    args = ["--text", corpus, *TINY, "--out", str(run.root)]
    args += "--backbone opt --num-layers 1 --memory-layers 1".split()
    assert main(args) == 0
    plain, resm = run.read_results()["stages"]
    assert plain["perplexity"] > resm["perplexity"]
    task, family, tokenizer = load_language_model(str(run.last))
    assert family.name == "opt"
    assert tokenizer.pad_token_id != tokenizer.end_token_id
    task.compile(sampler="greedy")
    text = task.generate("the", max_length=12)
    ids = np.array([[tokenizer.start_token_id, *tokenizer("the")]])
    while ids.shape[1] < 12 and ids[0, -1] != tokenizer.end_token_id:
        x = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
        likeliest = np.argmax(task(x)[0, -1])
        ids = np.append(ids, [[likeliest]], axis=1)
    assert text == tokenizer.detokenize(ids[0, 1:])


@pytest.mark.slow
def test_is_measured_as_while_it_trained(run, corpus, tmp_path, capsys):
    held_out = tmp_path / "held-out.txt"
    _, documents = split_documents(open_corpus(corpus), 0.2)
    held_out.write_text("\n\n".join(documents))
    output = tmp_path / "figures.json"
    args = ["--model", str(run.last), "--text", str(held_out)]
    assert evaluate_mlm.main([*args, "--out", str(output)]) == 0
    found = json.loads(output.read_text())
    last = run.read_results()["stages"][-1]
    for name in ("perplexity", "bits_per_byte", "predicted_tokens"):
        assert found[name] == pytest.approx(last[name], rel=1e-5), name
    assert "bits/byte" in capsys.readouterr().out
    assert evaluate_mlm.main([*args, "--pseudo"]) == 2
    assert "--pseudo masks tokens" in capsys.readouterr().err
    assert evaluate_mlm.main([*args, "--mask-rate", "0.2"]) == 2
    assert "--mask-rate would do nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--objective causal", "--objective must be masked with .* bert"),
        ("--backbone gpt2 --objective masked", "must be causal with .* gpt2"),
        ("--backbone gpt2 --memory-block pkm", "must be resm or ffn with gpt2"),
        (
            "--backbone gpt2 --query-normalization batch",
            "must be layer or none with --backbone gpt2, received batch",
        ),
        ("--backbone gpt2 --vocabulary-size 200", "all bytes, 258 tokens"),
        ("--backbone gpt2 --init-from nowhere", "--init-from"),
    ],
)
def test_mistakes(flags, message, corpus, tmp_path, capsys):
    out = tmp_path / "run"
    args = ["--text", corpus, *SHORT, *flags.split(), "--out", str(out)]
    assert main(args) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not out.exists()
