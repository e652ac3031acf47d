"""Fetches the models that `hf://` names, as directories of transformers."""

import json
import pathlib

_PREFIX = "hf://"
# What a directory is read for; the tokenizer is fetched by keras-hub.
_FILES = ["config.json", "model*.safetensors", "model.safetensors.index.json"]


def local_directory(preset: str, kind: str | None) -> str:
    """Returns the local copy of a model of transformers on the hub.

    KerasHub would read it, too, but into a model with the tanh GELU, where most
    of these models have the exact one.

    Args:
        preset: Any name that `from_preset` takes.
        kind: The `model_type` that is wanted. Of other models nothing but the
            configuration is fetched.

    Returns:
        A directory in the cache of `huggingface_hub`; or `preset` where it does
        not begin with `hf://`, or names a preset of KerasHub.
    """
    if not str(preset).startswith(_PREFIX):
        return preset
    try:
        import huggingface_hub
    except ImportError:
        return preset  # KerasHub says that it is missing.
    name = preset.removeprefix(_PREFIX)
    config = huggingface_hub.hf_hub_download(name, "config.json")
    content = json.loads(pathlib.Path(config).read_text(encoding="utf-8"))
    if "model_type" not in content:
        return preset
    files = _FILES if content["model_type"] == kind else ["config.json"]
    return huggingface_hub.snapshot_download(name, allow_patterns=files)
