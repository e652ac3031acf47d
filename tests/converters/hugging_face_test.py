"""Directories of transformers: equal to what transformers computed of them."""

import json
import pathlib
import shutil

import keras
import numpy as np
import pytest

from keras_pkm import models
from tests.models.tiny import MEMORY

ROOT = pathlib.Path(__file__).parent / "hugging_face"
pytest.importorskip("safetensors", reason="safetensors is not installed")
huggingface_hub = pytest.importorskip(
    "huggingface_hub", reason="huggingface_hub is not installed"
)

BACKBONES = {
    "bert": models.PKMBertBackbone,
    "bert-bare": models.PKMBertBackbone,
    "bert-tanh": models.PKMBertBackbone,
    "distilbert": models.PKMDistilBertBackbone,
    "distilbert-bare": models.PKMDistilBertBackbone,
    "roberta": models.PKMRobertaBackbone,
}
MASKED_LM = {
    "bert": models.PKMBertMaskedLM,
    "distilbert": models.PKMDistilBertMaskedLM,
    "roberta": models.PKMRobertaMaskedLM,
}


def expected_of(name):
    with np.load(ROOT / name / "expected.npz") as arrays:
        return dict(arrays)


def features_of(backbone, expected):
    return {key: expected[key].astype("int32") for key in backbone.input}


def sequence_output(outputs):
    return outputs["sequence_output"] if isinstance(outputs, dict) else outputs


@pytest.mark.parametrize("name", BACKBONES)
def test_hidden_states(name):
    backbone = BACKBONES[name].from_preset(str(ROOT / name))
    expected = expected_of(name)
    x = features_of(backbone, expected)
    actual = sequence_output(backbone(x))
    mask = expected["padding_mask"]
    np.testing.assert_allclose(
        actual[mask], expected["hidden"][mask], atol=1e-5
    )
    assert backbone.activation == (
        "gelu_approximate" if name == "bert-tanh" else "gelu"
    )


@pytest.mark.parametrize("name", MASKED_LM)
def test_masked_lm_logits(name):
    task = MASKED_LM[name].from_preset(str(ROOT / name))
    expected = expected_of(name)
    x = features_of(task.backbone, expected)
    positions = np.tile(np.arange(4, dtype="int32"), (3, 1))
    actual = task({**x, "mask_positions": positions})
    np.testing.assert_allclose(actual, expected["logits"][:, :4], atol=1e-5)
    assert task.preprocessor.tokenizer.vocabulary_size() == 20


def test_memory_joins():
    """With ResM only memories are new; without values it is the same model."""
    path = str(ROOT / "bert")
    backbone = models.PKMBertBackbone.from_preset(
        path, memory_layers=(2,), memory=MEMORY
    )
    memory = backbone.transformer_layers[1].product_key_memory
    memory.memory_values.assign(0 * memory.memory_values)
    plain = models.PKMBertBackbone.from_preset(path)
    x = features_of(plain, expected_of("bert"))
    np.testing.assert_allclose(
        backbone(x)["sequence_output"], plain(x)["sequence_output"], atol=1e-6
    )


def test_memory_in_place_of_the_feed_forward_network():
    backbone = models.PKMDistilBertBackbone.from_preset(
        str(ROOT / "distilbert"),
        memory_layers=(1,),
        memory_block="pkm",
        memory=MEMORY,
    )
    plain = models.PKMDistilBertBackbone.from_preset(str(ROOT / "distilbert"))
    for ours, theirs in zip(
        backbone.transformer_layers[1].weights,
        plain.transformer_layers[1].weights,
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_classifier_without_weights():
    task = models.PKMBertTextClassifier.from_preset(
        str(ROOT / "bert"), num_classes=2, load_weights=False
    )
    assert task.predict(["a b c"], verbose=0).shape == (1, 2)


@pytest.fixture
def directory(tmp_path):
    shutil.copytree(ROOT / "bert", tmp_path / "bert")
    return tmp_path / "bert"


@pytest.mark.parametrize("content", ["", "[]", "{"])
def test_a_damaged_configuration_is_named(content, directory):
    path = directory / "config.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=f"'{path}' must be a JSON object"):
        models.PKMBertBackbone.from_preset(str(directory))


def change_config(directory, **changes):
    path = directory / "config.json"
    config = json.loads(path.read_text())
    for name, value in changes.items():
        config.pop(name) if value is None else config.update({name: value})
    path.write_text(json.dumps(config))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"model_type": "gpt2"}, "type 'bert'. Received: model_type 'gpt2'"),
        ({"hidden_act": "relu"}, "`hidden_act`.*must be one of gelu.*relu"),
        ({"position_embedding_type": "relative_key"}, "must be 'absolute'"),
        ({"hidden_size": None}, "must have an entry `hidden_size`"),
        ({"vocab_size": 30}, r"`embeddings.word_embeddings.weight`.*\(30, 8\)"),
        ({"num_hidden_layers": 3}, "must contain `encoder.layer.2.attention"),
    ],
)
def test_directories_that_do_not_fit(directory, changes, message):
    change_config(directory, **changes)
    with pytest.raises(ValueError, match=message):
        models.PKMBertBackbone.from_preset(str(directory))


def test_a_directory_without_weights(directory):
    (directory / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="must contain model.safetensors"):
        models.PKMBertBackbone.from_preset(str(directory))


def test_a_file_that_was_cut_off(directory):
    file = directory / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(ValueError, match="model.safetensors' must be a safet"):
        models.PKMBertBackbone.from_preset(str(directory))


def test_a_head_of_another_activation():
    with pytest.raises(ValueError, match="'gelu' for its masked-LM head"):
        models.PKMBertMaskedLM.from_preset(str(ROOT / "bert-tanh"))


def test_a_class_for_any_backbone_knows_no_kind_of_model():
    with pytest.raises(ValueError, match="such as `PKMBertQuestionAnswerer`"):
        models.QuestionAnswerer.from_preset(str(ROOT / "bert"))


def test_another_epsilon(directory, tmp_path):
    """transformers' own `RobertaConfig()` has BERT's, for instance."""
    change_config(directory, layer_norm_eps=1e-6)
    task = models.PKMBertMaskedLM.from_preset(str(directory))
    norms = [
        layer
        for layer in task._flatten_layers()
        if isinstance(layer, keras.layers.LayerNormalization)
    ]
    assert len(norms) > 3
    assert {norm.epsilon for norm in norms} == {1e-6}
    task.backbone.save_to_preset(str(tmp_path / "preset"))
    copy = models.PKMBertBackbone.from_preset(str(tmp_path / "preset"))
    assert copy.layer_norm_epsilon == 1e-6
    assert models.PKMRobertaBackbone.from_preset(
        str(ROOT / "roberta")
    ).layer_norm_epsilon == pytest.approx(1e-5)


@pytest.fixture
def hub(monkeypatch):
    """Takes the place of the hub: names are those of local directories."""
    fetched = []

    def hf_hub_download(name, file):
        return str(ROOT / name.split("/")[1] / file)

    def snapshot_download(name, allow_patterns):
        fetched.append(allow_patterns)
        return str(ROOT / name.split("/")[1])

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", hf_hub_download)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return fetched


def test_a_name_on_the_hub_gives_what_its_directory_gives(hub):
    backbones = []
    for name in (str(ROOT / "bert"), "hf://somebody/bert"):
        keras.utils.set_random_seed(0)  # of the pooler, which it lacks
        backbones.append(models.PKMBertBackbone.from_preset(name))
    local, named = backbones
    assert named.get_config() | {"name": 0} == local.get_config() | {"name": 0}
    assert named.activation == "gelu"
    for old, new in zip(local.weights, named.weights):
        np.testing.assert_array_equal(old, new)
    assert "model*.safetensors" in hub[0]


def test_another_model_on_the_hub_is_not_fetched(hub):
    with pytest.raises(ValueError, match="type 'bert'. Received.*'roberta'"):
        models.PKMBertBackbone.from_preset("hf://somebody/roberta")
    assert hub == [["config.json"]]
