"""Downloads models named by `hf://`, as directories of transformers."""

import os
import pathlib

from keras_pkm.converters.hugging_face_families import FAMILIES
from keras_pkm.converters.hugging_face_files import read_config

_PREFIX = "hf://"
# The files that are read here.
_FILES = [
    *("config.json", "model*.safetensors", "model.safetensors.index.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
    *("added_tokens.json", "vocab.txt", "vocab.json", "merges.txt"),
]


def local_directory(
    directory: str | os.PathLike[str],
) -> str | os.PathLike[str]:
    """Returns the local copy of a transformers model on the Hugging Face Hub.

    KerasHub can read such models, too, but gives them the tanh GELU, while most
    were trained with the exact one.

    Args:
        directory: A directory, or a model of the Hub as `hf://user/name`.

    Returns:
        A directory in the cache of `huggingface_hub`; or `directory` itself if
        it does not begin with `hf://`, or names a preset of KerasHub. Of a kind
        of model that is not known here, only the configuration is downloaded.

    Raises:
        ValueError: its `config.json` does not say what kind of model it is.
        ImportError: the package `huggingface_hub` is missing.
    """
    if not str(directory).startswith(_PREFIX):
        return directory
    import huggingface_hub

    name = str(directory).removeprefix(_PREFIX)
    file = pathlib.Path(huggingface_hub.hf_hub_download(name, "config.json"))
    config = read_config(file.parent)
    if "model_type" not in config:
        return directory
    kind = config["model_type"]
    files = _FILES if kind in FAMILIES else ["config.json"]
    return huggingface_hub.snapshot_download(name, allow_patterns=files)
