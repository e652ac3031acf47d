"""From text to a served classifier: what the README's commands do in a row."""

import json

import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from export import memory_usage
from export import saved_model
from training import finetune
from training.loading.pretrained_model import load_pretrained

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def served(tiny_run, tmp_path_factory):
    """The pretrained model, fine-tuned and exported."""
    root = tmp_path_factory.mktemp("served")
    args = f"--task sst2 --model {tiny_run.path} --glue {tiny_run.glue} "
    args += f"--out {root / 'tuned'} --epochs 15 --batch-size 16 "
    args += "--learning-rate 1e-2 --dropout 0"
    assert finetune.main(args.split()) == 0
    args = f"--model {root / 'tuned'} --what classifier --out {root / 'model'}"
    assert saved_model.main(args.split()) == 0
    return root


def test_fine_tuning_starts_from_the_pretrained_model(tiny_run, served):
    recipe = json.loads((served / "tuned" / "recipe.json").read_text())
    assert recipe["model"] == str(tiny_run.path)
    before = load_pretrained(str(tiny_run.path), None)
    after = load_pretrained(str(served / "tuned"), None)
    assert before.tokenizer.get_vocabulary() == after.tokenizer.get_vocabulary()
    assert (
        before.backbone.get_config()["memory"]
        == (after.backbone.get_config()["memory"])
    )


def test_a_client_gets_what_was_trained(served):
    results = json.loads((served / "tuned" / "results.json").read_text())
    assert results["summary"]["dev accuracy"]["max"] > 0.9
    task = keras_hub.models.TextClassifier.from_preset(
        str(served / "tuned" / results["best_model"])
    )
    texts = ["bat fould", "cing den fould", "bat bat"]
    expected = tf.nn.softmax(task.predict(texts, verbose=0))
    answer = tf.saved_model.load(str(served / "model"))(tf.constant(texts))
    np.testing.assert_allclose(answer["scores"], expected, atol=1e-5)
    names = [results["classes"][i] for i in np.argmax(expected, -1)]
    assert [label.decode() for label in answer["label"].numpy()] == names
    card = (served / "model" / "README.md").read_text()
    assert "dev accuracy" in card


def test_its_memories_can_be_measured(tiny_run, served, capsys):
    args = f"--model {served / 'model'} --text {tiny_run.corpus} --json"
    assert memory_usage.main(args.split()) == 0
    usage = json.loads(capsys.readouterr().out)
    assert list(usage) == ["2"] and 0 < usage["2"]["top1_mu"] <= 1
