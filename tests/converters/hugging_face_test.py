"""Directories of transformers: equal to what transformers computed of them."""

import json
import pathlib
import shutil
import warnings

import keras
import keras_hub
import ml_dtypes
import numpy as np
import pytest

from keras_pkm import models
from keras_pkm.converters import HuggingFaceDirectory
from tests.models.tiny import MEMORY

ROOT = pathlib.Path(__file__).parent / "hugging_face"
pytest.importorskip("safetensors", reason="safetensors is not installed")
huggingface_hub = pytest.importorskip(
    "huggingface_hub", reason="huggingface_hub is not installed"
)

MaskedLM = keras_hub.models.MaskedLM
TextClassifier = keras_hub.models.TextClassifier
BACKBONES = [
    "bert",
    "bert-bare",
    "bert-tanh",
    "distilbert",
    "distilbert-bare",
    "roberta",
    # Tables of segments for a model without this input.
    "roberta-segments",
    "roberta-padding",
    "bert-untied",
    "bert-tokens",
    "bert-classifier",
]
MASKED_LM = ["bert", "distilbert", "roberta", "roberta-segments"]
CLASSIFIERS = ["bert-classifier", "distilbert-classifier", "roberta-classifier"]


def expected_of(name):
    with np.load(ROOT / name / "expected.npz") as arrays:
        return dict(arrays)


def load(path, **arguments):
    """A model, and the lines of the one warning, if there is one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = models.from_transformers(path, **arguments)
    assert len(caught) <= 1
    return model, "\n".join(str(each.message) for each in caught).split("\n")


def features_of(backbone, expected):
    return {key: expected[key].astype("int32") for key in backbone.input}


def sequence_output(outputs):
    return outputs["sequence_output"] if isinstance(outputs, dict) else outputs


@pytest.mark.parametrize("name", BACKBONES)
def test_hidden_states(name):
    backbone, _ = load(ROOT / name)
    expected = expected_of(name)
    x = features_of(backbone, expected)
    actual = sequence_output(backbone(x))
    mask = expected["padding_mask"]
    np.testing.assert_allclose(
        actual[mask], expected["hidden"][mask], atol=1e-5
    )
    assert backbone.feedforward_activation == (
        "gelu_approximate" if name == "bert-tanh" else "gelu"
    )


@pytest.mark.parametrize("name", MASKED_LM)
def test_masked_lm_logits(name):
    task, _ = load(ROOT / name, task=MaskedLM)
    expected = expected_of(name)
    x = features_of(task.backbone, expected)
    positions = np.tile(np.arange(4, dtype="int32"), (3, 1))
    actual = task({**x, "mask_positions": positions})
    np.testing.assert_allclose(actual, expected["logits"][:, :4], atol=1e-5)
    assert task.preprocessor.tokenizer.vocabulary_size() == 20


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifier_logits(name):
    """A fine-tuned head is taken, with its number of labels and dropout."""
    task, said = load(ROOT / name, task=TextClassifier)
    assert said == [""]
    expected = expected_of(name)
    np.testing.assert_allclose(
        task(features_of(task.backbone, expected)),
        expected["logits"],
        atol=1e-5,
    )
    dropout = {"bert-classifier": 0.3, "distilbert-classifier": 0.2}
    assert task.dropout == dropout.get(name, 0.1)
    assert task.preprocessor.tokenizer.vocabulary_size() == 20


def test_question_answerer_logits():
    task, said = load(ROOT / "bert-answerer", task=models.QuestionAnswerer)
    assert len(said) == 2 and "pooled_dense/kernel, pooled_dense" in said[1]
    expected = expected_of("bert-answerer")
    actual = task(features_of(task.backbone, expected))
    mask = expected["padding_mask"]
    for name in ("start", "end"):
        np.testing.assert_allclose(
            np.asarray(actual[name])[mask],
            expected[f"{name}_logits"][mask],
            atol=1e-5,
        )


def test_memory_joins():
    """Only memories are new, and their values are zero."""
    path = str(ROOT / "bert")
    backbone, said = load(path, memory_layers=(2,), memory=MEMORY)
    assert "transformer_layer_1_with_memory/memory/table/values" in said[-1]
    plain, _ = load(path)
    x = features_of(plain, expected_of("bert"))
    np.testing.assert_allclose(
        backbone(x)["sequence_output"], plain(x)["sequence_output"], atol=1e-6
    )


def test_memory_in_place_of_the_feed_forward_network():
    backbone, said = load(
        ROOT / "distilbert-bare",
        memory_layers=(1,),
        memory_block="pkm",
        memory=MEMORY,
    )
    assert "transformer.layer.0.ffn.lin1.weight" in said[1]
    plain, said = load(ROOT / "distilbert-bare")
    assert said == [""]
    for ours, theirs in zip(
        backbone.transformer_layers[1].weights,
        plain.transformer_layers[1].weights,
    ):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_classifier_without_weights():
    task = models.from_transformers(
        ROOT / "bert", task=TextClassifier, num_classes=2, load_weights=False
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
        models.from_transformers(directory)


def change_config(directory, **changes):
    path = directory / "config.json"
    config = json.loads(path.read_text())
    for name, value in changes.items():
        config.pop(name) if value is None else config.update({name: value})
    path.write_text(json.dumps(config))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"model_type": "gpt2"}, "of bert, distilbert.*Received: 'gpt2'"),
        ({"hidden_act": "relu"}, "`hidden_act`.*must be one of gelu.*relu"),
        ({"position_embedding_type": "relative_key"}, "must be 'absolute'"),
        ({"hidden_size": None}, "must have an entry `hidden_size`"),
        ({"hidden_size": "8"}, "`hidden_size`.*must be an integer.*'8'"),
        ({"vocab_size": 30}, r"`embeddings.word_embeddings.weight`.*\(30, 8\)"),
        (
            {"num_hidden_layers": 3},
            "must contain `encoder.layer.2.attention.self.query.weight`.*the "
            "nearest.* encoder.layer.1.attention.self.query.weight",
        ),
        # What a model would compute otherwise.
        ({"is_decoder": True}, "`is_decoder`.*must be False.*Received: True"),
        ({"add_cross_attention": True}, "`add_cross_attention`"),
        ({"pruned_heads": {"0": [1]}}, r"`pruned_heads`.*\{'0': \[1\]\}"),
        ({"quantization_config": {"bits": 4}}, "`quantization_config`"),
        ({"auto_map": {"AutoModel": "m.Model"}}, "`auto_map`.*m.Model"),
        (
            {"attention_probs_dropout_prob": 0.0},
            "`hidden_dropout_prob` 0.1, `attention_probs_dropout_prob` 0.0",
        ),
        ({"model_type": None}, "`model_type`.*architectures.*BertForMasked"),
    ],
)
def test_directories_that_do_not_fit(directory, changes, message):
    change_config(directory, **changes)
    with pytest.raises(ValueError, match=message) as error:
        models.from_transformers(directory)
    assert len(str(error.value)) < 700


def test_the_model_type_is_not_dumped(directory):
    """Nor does a task say what a backbone does not."""
    change_config(directory, model_type=None, architectures=None)
    with pytest.raises(ValueError, match="Received: 22 entries") as error:
        models.from_transformers(directory, task=MaskedLM)
    assert "vocab_size" not in str(error.value)


def test_rates_of_dropout_that_differ(directory):
    change_config(directory, attention_probs_dropout_prob=0.0)
    task, _ = load(directory, dropout=0.0, task=MaskedLM)
    assert task.backbone.dropout == 0.0
    expected = expected_of("bert")
    positions = np.tile(np.arange(4, dtype="int32"), (3, 1))
    x = {
        **features_of(task.backbone, expected),
        "mask_positions": positions,
    }
    np.testing.assert_allclose(task(x), expected["logits"][:, :4], atol=1e-5)


def test_a_directory_without_weights(directory):
    (directory / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="must contain model.safetensors"):
        models.from_transformers(directory)


def test_a_file_that_was_cut_off(directory):
    file = directory / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(ValueError, match="model.safetensors' must be a safet"):
        models.from_transformers(directory)


def test_a_head_of_another_activation(directory):
    change_config(directory, hidden_act="gelu_new")
    with pytest.raises(ValueError, match="'gelu' for its masked-LM head"):
        models.from_transformers(directory, task=MaskedLM)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_classes": 2}, "`num_classes` can be given with `task` only"),
        ({"task": keras_hub.models.CausalLM}, "a `BertBackbone` has.*CausalLM"),
        ({"task": "masked_lm"}, "`task` must be one of the classes `MaskedLM`"),
        ({"memory_layers": (3,)}, "`memory_layers` must be .*num_layers=2"),
        ({"memory_layers": 2}, "`memory_layers` must be a list of positive"),
        (
            {"memory_layers": (1,), "memory": {"class_name": "NGramMemory"}},
            "`memory` must have a dict `config` beside its `class_name`",
        ),
        ({"memory_block": "all"}, '`memory_block` must be "serial"'),
        ({"memory": {}}, "`memory_layers` must name the layers"),
        ({"share_table": True}, "`memory_layers` must name the layers"),
        (
            {"task": keras_hub.models.MaskedLM, "memory_layer": (1,)},
            "Received: `memory_layer`",
        ),
        (
            {"task": keras_hub.models.TextClassifier, "num_class": 5},
            "Received: `num_class`",
        ),
    ],
)
def test_arguments_that_do_not_suit(arguments, message):
    with pytest.raises(ValueError, match=message):
        models.from_transformers(ROOT / "bert", **arguments)


def test_no_directory(tmp_path):
    with pytest.raises(ValueError, match="`directory` must be.*config.json"):
        models.from_transformers(tmp_path / "nothing")


def test_keras_hub_s_presets_are_no_directories_of_transformers(tmp_path):
    models.from_transformers(ROOT / "bert-bare").save_to_preset(str(tmp_path))
    with pytest.raises(ValueError, match="`model_type`"):
        models.from_transformers(tmp_path)


def test_another_epsilon(directory, tmp_path):
    """transformers' own `RobertaConfig()` has BERT's, for instance."""
    change_config(directory, layer_norm_eps=1e-6)
    task, _ = load(directory, task=MaskedLM)
    norms = [
        layer
        for layer in task._flatten_layers()
        if isinstance(layer, keras.layers.LayerNormalization)
    ]
    assert len(norms) > 3
    assert {norm.epsilon for norm in norms} == {1e-6}
    task.backbone.save_to_preset(str(tmp_path / "preset"))
    copy = keras_hub.models.Backbone.from_preset(str(tmp_path / "preset"))
    assert copy.normalization_epsilon == 1e-6
    again = keras_hub.models.MaskedLM.from_preset(
        str(tmp_path / "preset"), preprocessor=None
    )
    assert {
        layer.epsilon
        for layer in again._flatten_layers()
        if isinstance(layer, keras.layers.LayerNormalization)
    } == {1e-6}
    roberta, _ = load(ROOT / "roberta")
    assert roberta.normalization_epsilon == pytest.approx(1e-5)


def change_tensors(directory, change):
    """Saves the tensors that a function makes of those there are."""
    from safetensors.numpy import load_file
    from safetensors.numpy import save_file

    path = directory / "model.safetensors"
    tensors = change(load_file(path))
    save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, path)


def check_masked_lm(directory, name="bert"):
    """The directory gives the logits of the one that it was made from."""
    task, said = load(directory, task=MaskedLM)
    expected = expected_of(name)
    positions = np.tile(np.arange(4, dtype="int32"), (3, 1))
    x = {**features_of(task.backbone, expected), "mask_positions": positions}
    np.testing.assert_allclose(task(x), expected["logits"][:, :4], atol=1e-5)
    return said


WORDS = "bert.embeddings.word_embeddings.weight"
DECODER = "cls.predictions.decoder.weight"


@pytest.mark.parametrize(
    "prefix", ["module.", "_orig_mod.", "model.", "0.auto_model."]
)
def test_prefixes_that_tools_leave(prefix, directory):
    change_tensors(
        directory, lambda old: {prefix + name: old[name] for name in old}
    )
    assert len(check_masked_lm(directory)) == 2


def test_names_that_tools_leave_inside(directory):
    def change(old):
        return {
            name.replace("layer.0.", "layer.0._fsdp_wrapped_module.").replace(
                "LayerNorm.weight", "LayerNorm.gamma"
            ): value
            for name, value in old.items()
        }

    change_tensors(directory, change)
    assert len(check_masked_lm(directory)) == 2


@pytest.mark.parametrize("name", MASKED_LM)
def test_a_tied_table_under_its_other_name(name, tmp_path):
    """safetensors saves a table with two names under one of them."""
    directory = tmp_path / name
    shutil.copytree(ROOT / name, directory)
    family = HuggingFaceDirectory(directory).family

    def change(old):
        words = f"{family.prefix}embeddings.word_embeddings.weight"
        old[f"{family.decoder}.weight"] = old.pop(words)
        bias = f"{family.heads['mlm_head']}.bias"
        old[f"{family.decoder}.bias"] = old.pop(bias)
        return old

    change_tensors(directory, change)
    check_masked_lm(directory, name)


def test_both_names_of_a_tied_table(directory):
    change_tensors(directory, lambda old: {**old, DECODER: old[WORDS]})
    said = check_masked_lm(directory)
    assert len(said) == 2 and said[1].startswith("New")


@pytest.mark.parametrize("config", [{}, {"tie_word_embeddings": False}])
def test_an_untied_decoder_is_refused(config, directory):
    change_config(directory, **config)
    change_tensors(directory, lambda old: {**old, DECODER: 2 * old[WORDS]})
    with pytest.raises(ValueError, match=f"`{DECODER}` with values of its own"):
        models.from_transformers(directory, task=MaskedLM)
    _, said = load(directory)
    assert f"differs from `{WORDS.removeprefix('bert.')}`: {DECODER}" in (
        "\n".join(said)
    )
    with pytest.raises(ValueError, match="tie_word_embeddings=False"):
        models.from_transformers(ROOT / "bert-untied", task=MaskedLM)


def test_a_decoder_with_a_bias_of_its_own(directory):
    name = "cls.predictions.decoder.bias"
    change_tensors(
        directory, lambda old: {**old, name: 1 + old["cls.predictions.bias"]}
    )
    with pytest.raises(ValueError, match=f"`{name}` with values of its own"):
        models.from_transformers(directory, task=MaskedLM)


def test_all_tensors_are_accounted_for(directory):
    def change(old):
        old["cls.seq_relationship.weight"] = np.ones((2, 8), "float32")
        old["extra"] = np.ones(3, "float32")
        old["bert.embeddings.position_ids"] = np.arange(16)[None]
        return old

    change_tensors(directory, change)
    _, said = load(directory, task=MaskedLM)
    assert said == [
        f"'{directory}':",
        "Not loaded, because this model has no such weight: "
        "cls.seq_relationship.weight, extra.",
        "New, with initial values: pooled_dense/kernel, pooled_dense/bias.",
    ]
    change_tensors(
        directory,
        lambda old: {
            **old,
            "bert.embeddings.position_ids": np.arange(16)[None] + 1,
        },
    )
    _, said = load(directory, task=MaskedLM)
    assert said[1] == (
        "Not loaded, because positions are counted here: "
        "embeddings.position_ids."
    )


def test_rows_of_segments_that_have_no_input():
    _, said = load(ROOT / "roberta-segments", task=MaskedLM)
    assert "token_type_embeddings.weight, rows 1 to 1" in said[1]
    _, said = load(ROOT / "roberta-padding")
    assert "pooler.dense.bias, pooler.dense.weight" in said[1]
    assert "token_type_embeddings.weight, rows 1 to 2" in said[2]


def test_another_number_of_segments(tmp_path):
    directory = tmp_path / "roberta"
    shutil.copytree(ROOT / "roberta", directory)
    change_config(directory, type_vocab_size=2)
    with pytest.raises(ValueError, match="the 2 rows of `type_vocab_size`"):
        models.from_transformers(directory)


def test_heads_that_are_new(directory):
    _, said = load(ROOT / "bert-bare", task=MaskedLM)
    assert "mlm_head/intermediate_dense/kernel" in said[-1]
    _, said = load(ROOT / "bert-classifier", task=MaskedLM)
    assert "such weight: classifier.bias, classifier.weight." in said[1]
    assert "mlm_head/output_bias" in said[2]
    _, said = load(ROOT / "bert-classifier", num_classes=2, task=TextClassifier)
    assert "its shape (3, 8) is not that of `logits/kernel`, (8, 2)" in said[2]
    assert "its shape (3,) is not that of `logits/bias`, (2,)" in said[1]
    assert "New, with initial values: logits/kernel, logits/bias." in said
    with pytest.raises(ValueError, match="`num_classes` must be given"):
        models.from_transformers(directory, task=TextClassifier)


def test_a_classifier_of_tokens_is_no_classifier_of_texts():
    path = str(ROOT / "bert-tokens")
    with pytest.raises(ValueError, match="BertForTokenClassification"):
        models.from_transformers(path, task=TextClassifier)
    _, said = load(path, num_classes=3, task=TextClassifier)
    assert "not of a text classifier" in said[1] and "logits" in said[2]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_floats(dtype, directory):
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    change_tensors(
        directory, lambda old: {k: v.astype(kind) for k, v in old.items()}
    )
    task, _ = load(directory, task=MaskedLM)
    plain, _ = load(ROOT / "bert", task=MaskedLM)
    for new, old in zip(task.backbone.weights[:5], plain.backbone.weights[:5]):
        np.testing.assert_array_equal(
            new, np.asarray(old).astype(kind).astype("float32")
        )


def test_numbers_that_are_no_floats(directory):
    change_tensors(
        directory, lambda old: {**old, WORDS: old[WORDS].astype(int)}
    )
    with pytest.raises(ValueError, match="floating-point numbers.*int64"):
        models.from_transformers(directory)


def test_kernels_of_another_library(directory):
    """TensorFlow's are the other way round."""
    name = "bert.encoder.layer.0.intermediate.dense.weight"
    change_tensors(directory, lambda old: {**old, name: old[name].T})
    with pytest.raises(ValueError, match=r"\(8, 12\) entries.*shape \(8, 12"):
        models.from_transformers(directory)


def save_shards(directory, number):
    """Splits the tensors over files, with their index."""
    from safetensors.numpy import load_file
    from safetensors.numpy import save_file

    tensors = load_file(directory / "model.safetensors")
    names = {}
    for shard in range(number):
        file = f"model-{shard + 1:05}-of-{number:05}.safetensors"
        part = {name: tensors[name] for name in sorted(tensors)[shard::number]}
        save_file(part, directory / file)
        names |= dict.fromkeys(part, file)
    index = directory / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": names}))


def test_shards_and_an_index_that_was_left_behind(directory):
    save_shards(directory, 2)
    old = expected_of("bert")
    change_tensors(directory, lambda old: {k: 0 * v for k, v in old.items()})
    # As in transformers, the file of all tensors is the newer one.
    backbone, _ = load(directory)
    assert not np.any(backbone.token_embedding.embeddings)
    (directory / "model.safetensors").unlink()
    check_masked_lm(directory)
    assert old["logits"].any()
    shutil.copy(ROOT / "bert" / "model.safetensors", directory)
    for shard in directory.glob("model-*"):
        shard.unlink()
    check_masked_lm(directory)
    (directory / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="must contain model-00001-of-00002"):
        models.from_transformers(directory)


def test_an_index_that_does_not_fit(directory):
    save_shards(directory, 2)
    (directory / "model.safetensors").unlink()
    first, second = sorted(directory.glob("model-*"))
    shutil.copy(second, first)
    with pytest.raises(ValueError, match="Received: one without bert.embed"):
        models.from_transformers(directory)
    (directory / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(ValueError, match="an entry `weight_map`"):
        models.from_transformers(directory)


def test_several_models_in_a_file(directory):
    change_tensors(
        directory,
        lambda old: {
            f"{part}.{name}": value
            for part in ("question", "context")
            for name, value in old.items()
        },
    )
    with pytest.raises(ValueError, match="must contain one model.*`context"):
        models.from_transformers(directory)


def test_an_adapter_beside_the_model(directory):
    (directory / "adapter_config.json").write_text("{}")
    with pytest.raises(ValueError, match="Merge the adapter"):
        models.from_transformers(directory)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """Takes the place of the hub: names are those of local directories."""
    fetched = []
    shutil.copytree(ROOT / "bert", tmp_path / "hub" / "bert")
    shutil.copytree(ROOT / "bert", tmp_path / "hub" / "other")
    change_config(tmp_path / "hub" / "other", model_type="gpt2")

    def hf_hub_download(name, file):
        return str(tmp_path / "hub" / name.split("/")[1] / file)

    def snapshot_download(name, allow_patterns):
        fetched.append(allow_patterns)
        return str(tmp_path / "hub" / name.split("/")[1])

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", hf_hub_download)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return fetched


def test_a_name_on_the_hub_gives_what_its_directory_gives(hub):
    backbones = []
    for name in (str(ROOT / "bert"), "hf://somebody/bert"):
        keras.utils.clear_session(free_memory=False)  # numbers in names
        keras.utils.set_random_seed(0)  # of the pooler, which it lacks
        backbones.append(load(name)[0])
    local, named = backbones
    assert named.get_config() | {"name": 0} == local.get_config() | {"name": 0}
    assert named.feedforward_activation == "gelu"
    for old, new in zip(local.weights, named.weights):
        np.testing.assert_array_equal(old, new)
    assert {"model*.safetensors", "tokenizer.json"} <= set(hub[0])


def test_another_model_on_the_hub_is_not_fetched(hub):
    with pytest.raises(ValueError, match="of bert.*Received: 'gpt2'. Load oth"):
        models.from_transformers("hf://somebody/other")
    assert hub == [["config.json"]]
