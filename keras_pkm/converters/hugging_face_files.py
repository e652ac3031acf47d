"""The files of a directory of transformers: its configuration and tensors."""

import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_pkm.files.json_objects import load_json_object

_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
# Parts of names that tools put in, wherever they stand.
_WRAPPERS = (
    "_orig_mod.",
    "_fsdp_wrapped_module.",
    "_checkpoint_wrapped_module.",
)
_OLD_NAMES = (("LayerNorm.gamma", "weight"), ("LayerNorm.beta", "bias"))


def read_json(path: pathlib.Path) -> dict[str, Any]:
    """Reads a JSON object.

    Raises:
        ValueError: the file contains something else.
    """
    try:
        return load_json_object(path)
    except ValueError as error:
        raise ValueError(
            f"'{path}' must be a JSON object, but is not ({error}). Download "
            "the file or save the model again."
        ) from error


def read_config(path: pathlib.Path) -> dict[str, Any]:
    """Reads `config.json` of a model of transformers, or of a preset.

    Raises:
        ValueError: it says of neither what kind of model it is.
    """
    config = read_json(path / "config.json")
    # keras-hub's presets and timm's models.
    others = ("registered_name", "architecture")
    if "model_type" in config or any(name in config for name in others):
        return config
    found = config.get("architectures")
    raise ValueError(
        f"'{path / 'config.json'}' must have an entry `model_type`, such as "
        "'bert', 'distilbert' or 'roberta', which says what kind of model it "
        f"is. Received: {len(config)} entries without it"
        + (f", with `architectures` {found}" if found else "")
        + ". Add the entry."
    )


def read_tensors(
    path: pathlib.Path, anchor: str, base: str
) -> dict[str, np.ndarray]:
    """Reads all tensors, by the names that they have in a model with a head.

    Prefixes that tools leave before all names, such as `module.`, are removed,
    and so is that of the model below its head.

    Args:
        path: The directory.
        anchor: The name of a tensor that each model of the family has.
        base: The prefix of the names in a model with a head, such as `bert.`.

    Raises:
        ValueError: files are missing or damaged, or contain several models.
    """
    tensors = {_plain(name): value for name, value in _read(path)}
    found = [name for name in tensors if f".{name}".endswith(f".{anchor}")]
    prefixes = [name.removesuffix(anchor) for name in found]
    for usual in (base, ""):
        if usual in prefixes:
            prefixes = [usual]
    if len(prefixes) > 1:
        raise ValueError(
            f"'{path}' must contain one model. Received: "
            f"{', '.join(f'`{name}`' for name in found)}. Save the models in "
            "directories of their own."
        )
    prefix = prefixes[0] if prefixes else ""
    wrapper = prefix.removesuffix(base)
    renamed: dict[str, np.ndarray] = {}
    for name, value in tensors.items():
        plain = name.removeprefix(wrapper)
        if name.startswith(prefix):
            plain = plain.removeprefix(base)
        if plain in renamed:
            raise ValueError(
                f"'{path}' must contain one model. Received: `{plain}` both "
                f"with and without the prefix `{prefix}`. Save the models in "
                "directories of their own."
            )
        renamed[plain] = value
    return renamed


def _plain(name: str) -> str:
    for wrapper in _WRAPPERS:
        name = name.replace(wrapper, "")
    for old, new in _OLD_NAMES:
        if name.endswith(old):
            name = f"{name.removesuffix(old)}LayerNorm.{new}"
    return name


def _read(path: pathlib.Path) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the names and values of all tensors.

    As in transformers, an index is not read where there is a file of all
    tensors: it is that of an older model.
    """
    names = None
    if not (path / _WEIGHTS).exists() and (path / _INDEX).exists():
        names = read_json(path / _INDEX).get("weight_map")
        if not isinstance(names, dict) or not names:
            raise ValueError(
                f"'{path / _INDEX}' must have an entry `weight_map` that names "
                "the file of each tensor. Save the model again."
            )
    files = sorted(set(names.values())) if names else [_WEIGHTS]
    for file in files:
        if not (path / file).exists():
            here = ", ".join(sorted(each.name for each in path.iterdir()))
            raise ValueError(
                f"'{path}' must contain {file}. Received: {here}. Save the "
                "model with `save_pretrained` of transformers."
            )
    for file in files:
        tensors = names and {key for key in names if names[key] == file}
        yield from _read_file(path / file, tensors)


def _read_file(
    path: pathlib.Path, names: set[str] | None
) -> Iterator[tuple[str, np.ndarray]]:
    try:
        import safetensors
    except ImportError as error:
        raise ImportError(
            "Models of transformers need the package `safetensors`. Install "
            "it with `pip install safetensors`."
        ) from error
    try:
        file: Any = safetensors.safe_open(path, "np")
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"'{path}' must be a safetensors file. Received one that cannot "
            f"be read: {error}. Copy or save it again."
        ) from error
    with file:
        missing = sorted((names or set()) - set(file.keys()))
        if missing:
            raise ValueError(
                f"'{path}' must contain the tensors for which {_INDEX} names "
                f"it. Received: one without {', '.join(missing)}. Copy or save "
                "the model again."
            )
        for name in sorted(names or file.keys()):
            try:
                yield name, file.get_tensor(name)
            # What safetensors raises for dtypes that numpy does not have.
            except (AttributeError, TypeError) as error:
                dtype = file.get_slice(name).get_dtype()
                raise ValueError(
                    f"`{name}` in '{path}' must have numbers of 16 bits or "
                    f"more. Received: {dtype}. Save the model without "
                    "quantization."
                ) from error
