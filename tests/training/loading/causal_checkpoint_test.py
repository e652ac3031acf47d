"""Causal checkpoints compute what their config.json says, or are refused."""

import json

import keras_hub
import numpy as np
import pytest

import keras_pkm
from tests.any_backbone.tiny_families import MEMORY
from tests.any_backbone.tiny_families import inputs_of
from tests.any_backbone.tiny_families import make_plain
from tests.any_backbone.tiny_families import outputs_of
from training.loading.causal_checkpoint import match_config
from training.runs.user_error import UserError

LLAMA = {"model_type": "llama", "rms_norm_eps": 0.5}
GPT2 = {"model_type": "gpt2", "n_embd": 16}


def write(directory, config):
    (directory / "config.json").write_text(json.dumps(config))
    return directory


def test_the_epsilon_of_the_config(tmp_path):
    plain = make_plain("Llama")
    inputs = inputs_of(plain)
    before = outputs_of(plain, inputs)
    task = keras_hub.models.LlamaCausalLM(plain, None)
    match_config(task, write(tmp_path, LLAMA))
    (after,) = outputs_of(plain, inputs)
    expected = keras_hub.models.LlamaBackbone(
        **{**plain.get_config(), "layer_norm_epsilon": 0.5, "name": "other"}
    )
    expected.set_weights(plain.get_weights())
    np.testing.assert_array_equal(after, *outputs_of(expected, inputs))
    assert np.abs(after - before[0]).max() > 1e-3
    # Presets keep it.
    model = keras_pkm.models.add_memory(plain, (1,), MEMORY)
    model.save_to_preset(str(tmp_path / "preset"))
    again = keras_hub.models.Backbone.from_preset(str(tmp_path / "preset"))
    np.testing.assert_array_equal(after, *outputs_of(again, inputs))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({**LLAMA, "attention_bias": True}, "attention_bias False.* has True"),
        ({**LLAMA, "hidden_act": "gelu"}, "hidden_act 'silu'.*'gelu'"),
        (
            {**LLAMA, "rope_parameters": {"rope_type": "linear", "factor": 2}},
            "rope_type 'default'.*'linear'",
        ),
        (
            {**GPT2, "activation_function": "relu"},
            "activation_function 'gelu_new'.*'relu'",
        ),
        ({**GPT2, "layer_norm_epsilon": 0.5}, "layer_norm_epsilon 1e-05.*0.5"),
        ({**GPT2, "scale_attn_weights": False}, "scale_attn_weights True"),
        ({**GPT2, "n_inner": 32}, "n_inner 64.*32"),
        ({"model_type": "mistral", "hidden_act": "gelu"}, "hidden_act 'silu'"),
        (
            {"model_type": "qwen2", "rope_scaling": {"type": "yarn"}},
            "rope_type 'default'.*'yarn'",
        ),
        (
            {"model_type": "mixtral", "rope_parameters": {"rope_type": "yarn"}},
            "rope_type 'default'.*'yarn'",
        ),
        (
            {"model_type": "qwen3", "use_sliding_window": True},
            "use_sliding_window False.*True",
        ),
        ({"model_type": "qwen3_moe", "sliding_window": 9}, "sliding_window No"),
    ],
)
def test_what_kerashub_does_not_compute(config, message, tmp_path):
    with pytest.raises(UserError, match=f"--model must have {message}"):
        match_config(None, write(tmp_path, config))


@pytest.mark.parametrize(
    "config",
    [
        GPT2,
        # As float32.
        {**GPT2, "layer_norm_epsilon": 9.999999747378752e-06},
        {"model_type": "gpt_oss", "rope_parameters": {"rope_type": "yarn"}},
        {"config": {}},
        {"model_type": "qwen2", "rope_scaling": None, "sliding_window": 9},
        {"model_type": "mistral", "sliding_window": 9, "hidden_act": "silu"},
    ],
)
def test_what_it_computes(config, tmp_path):
    task = keras_hub.models.GPT2CausalLM(make_plain("GPT2"), None)
    match_config(task, write(tmp_path, config))
