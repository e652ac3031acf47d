"""Downloads models named by `hf://`, as directories of transformers."""

import pathlib

from keras_pkm.converters.hugging_face_files import read_config

_PREFIX = "hf://"
# The files that are read here.
_FILES = [
    *("config.json", "model*.safetensors", "model.safetensors.index.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
    *("added_tokens.json", "vocab.txt", "vocab.json", "merges.txt"),
]


def local_directory(preset: str, kind: str | None) -> str:
    """Returns the local copy of a transformers model on the Hugging Face Hub.

    KerasHub can read such models, too, but gives them the tanh GELU, while most
    were trained with the exact one.

    Args:
        preset: Any name that `from_preset` takes.
        kind: The expected `model_type`. For a model of another type only the
            configuration is downloaded.

    Returns:
        A directory in the cache of `huggingface_hub`; or `preset` itself if it
        does not begin with `hf://`, or names a preset of KerasHub.

    Raises:
        ValueError: its `config.json` does not say what kind of model it is.
    """
    if not str(preset).startswith(_PREFIX):
        return preset
    try:
        import huggingface_hub
    except ImportError:
        return preset  # KerasHub will report that it is missing.
    name = preset.removeprefix(_PREFIX)
    file = pathlib.Path(huggingface_hub.hf_hub_download(name, "config.json"))
    content = read_config(file.parent)
    if "model_type" not in content:
        return preset
    files = _FILES if content["model_type"] == kind else ["config.json"]
    return huggingface_hub.snapshot_download(name, allow_patterns=files)
