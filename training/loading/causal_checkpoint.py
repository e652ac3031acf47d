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
_COMPUTED: dict[str, dict[str, tuple[Any, ...]]] = {
    "gpt2": {
        "activation_function": ("gelu_new", "gelu_pytorch_tanh", "gelu_fast"),
        "scale_attn_weights": (True,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "add_cross_attention": (False,),
        "tie_word_embeddings": (True,),
        "quantization_config": (None,),
        "auto_map": (None, {}),
    },
    "llama": {
        "hidden_act": ("silu", "swish"),
        "attention_bias": (False,),
        "mlp_bias": (False,),
        "quantization_config": (None,),
        "auto_map": (None, {}),
    },
}


def match_config(
    task: keras_hub.models.CausalLM, directory: pathlib.Path
) -> None:
    """Makes a model compute what `config.json` says.

    KerasHub's Llama has an epsilon of 1e-6, whatever the checkpoint has. The
    models of other types than GPT-2 and Llama are as KerasHub loads them. Where
    KerasHub computes something else, it is an error.
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
    if kind == "llama":
        rope = config.get("rope_parameters") or {}
        scaling = rope.get("rope_type", "default")
        # KerasHub reads the older entry.
        if scaling != "default" and not config.get("rope_scaling"):
            raise _not_computed(path, "rope_type", "default", scaling)
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
