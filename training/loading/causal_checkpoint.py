"""What KerasHub leaves out of a causal checkpoint of transformers."""

import math
import pathlib
from typing import Any

import keras_hub

from training.runs.files import read_json
from training.runs.user_error import UserError

# Entries of config.json that change what a model computes and that KerasHub
# does not read, by the type of the model, with the values that it computes. An
# entry that is missing has the first of these.
_Entries = dict[str, tuple[Any, ...]]
_PLAIN: _Entries = {"quantization_config": (None,), "auto_map": (None, {})}
_ROTARY: _Entries = {"hidden_act": ("silu", "swish"), **_PLAIN}
# KerasHub's windows are those of all layers.
_QWEN: _Entries = {"use_sliding_window": (False,), **_ROTARY}
_COMPUTED: dict[str, _Entries] = {
    "gpt2": {
        "activation_function": ("gelu_new", "gelu_pytorch_tanh", "gelu_fast"),
        "scale_attn_weights": (True,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "add_cross_attention": (False,),
        "tie_word_embeddings": (True,),
        **_PLAIN,
    },
    "llama": {
        "hidden_act": ("silu", "swish"),
        "attention_bias": (False,),
        "mlp_bias": (False,),
        **_PLAIN,
    },
    "mistral": _ROTARY,
    "mixtral": _ROTARY,
    "qwen2": _QWEN,
    "qwen2_moe": _QWEN,
    "qwen3": {"attention_bias": (False,), **_QWEN},
    "qwen3_moe": {
        "attention_bias": (False,),
        # It is used whatever use_sliding_window says.
        "sliding_window": (None,),
        **_QWEN,
    },
    "smollm3": {
        "use_sliding_window": (False,),
        "tie_word_embeddings": (True,),
        **_ROTARY,
    },
}


def match_config(
    task: keras_hub.models.CausalLM, directory: pathlib.Path
) -> None:
    """Makes a model compute what `config.json` says.

    KerasHub's Llama has an epsilon of 1e-6, whatever the checkpoint has. Where
    KerasHub computes something else, it is an error. Types of models that are
    not named here, such as Gemma, are as KerasHub loads them.
    """
    path = directory / "config.json"
    config = read_json(path, default={})
    kind = config.get("model_type")
    for name, values in _COMPUTED.get(kind, {}).items():
        value = config.get(name, values[0])
        if value not in values:
            raise _not_computed(path, name, values[0], value)
    if kind == "gpt2":
        width, epsilon = config["n_embd"], config.get("layer_norm_epsilon")
        if config.get("n_inner") not in (None, 4 * width):
            raise _not_computed(path, "n_inner", 4 * width, config["n_inner"])
        # It may have been rounded to float32.
        if epsilon is not None and not math.isclose(
            epsilon, 1e-5, rel_tol=1e-6
        ):
            raise _not_computed(path, "layer_norm_epsilon", 1e-5, epsilon)
    if kind in _COMPUTED and kind != "gpt2":
        for name in ("rope_parameters", "rope_scaling"):
            rope = config.get(name) or {}
            scaling = rope.get("rope_type", rope.get("type", "default"))
            # KerasHub reads the older entry of Llama.
            is_read = kind == "llama" and config.get("rope_scaling")
            if scaling != "default" and not is_read:
                raise _not_computed(path, "rope_type", "default", scaling)
    if kind == "llama":
        if (epsilon := config.get("rms_norm_eps")) is not None:
            _set_epsilon(task.backbone, float(epsilon))


def _set_epsilon(backbone: keras_hub.models.Backbone, epsilon: float) -> None:
    """Sets the epsilon of all norms, also in the configs of their layers."""
    backbone.layer_norm_epsilon = epsilon
    for layer in backbone._flatten_layers():
        for name in ("epsilon", "layer_norm_epsilon"):
            if hasattr(layer, name):
                setattr(layer, name, epsilon)


def _not_computed(
    path: pathlib.Path, name: str, expected: Any, received: Any
) -> UserError:
    return UserError(
        f"--model must have {name} {expected!r}, which is what KerasHub "
        f"computes, but '{path}' has {received!r}: this model cannot be used"
    )
