"""Reads models from the directories of Hugging Face's transformers.

Such a directory contains `config.json`, `model.safetensors` (or shards of it
with their index) and the vocabulary. Tables map its modules to ours; the rest
follows from the names of weights.
"""

import logging
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_pkm.converters.hugging_face_families import FAMILIES
from keras_pkm.converters.hugging_face_families import Family
from keras_pkm.converters.hugging_face_hub import local_directory
from keras_pkm.models.checkpoint_readers import register_checkpoint_opener
from keras_pkm.runs.json_files import load_json_object

logger = logging.getLogger(__name__)

_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_approximate",
    "gelu_pytorch_tanh": "gelu_approximate",
}
# The last parts of weight names, ours and theirs.
_LEAVES = {
    "embeddings": "weight",
    "kernel": "weight",
    "bias": "bias",
    "gamma": "weight",
    "beta": "bias",
    "output_bias": "bias",
}


def is_hugging_face_directory(preset: str | os.PathLike[str]) -> bool:
    """Whether `preset` is a local directory of a transformers model."""
    path = pathlib.Path(preset) / "config.json"
    return path.is_file() and "model_type" in _read_json(path)


def _read_json(path: pathlib.Path) -> dict[str, Any]:
    try:
        return load_json_object(path)
    except ValueError as error:
        raise ValueError(
            f"'{path}' must be a JSON object, but is not ({error}). Download "
            "the file or save the model again."
        ) from error


class HuggingFaceDirectory:
    """A model of transformers on disk.

    Args:
        path: The directory.
        family: str. The kind of model that is expected: a key of `FAMILIES`.

    Raises:
        ValueError: it contains another kind of model.
    """

    def __init__(self, path: str | os.PathLike[str], family: str):
        self.path = pathlib.Path(path)
        self.family = FAMILIES[family]
        self._config = _read_json(self.path / "config.json")
        found = self._config["model_type"]
        if found != family:
            raise ValueError(
                f"'{self.path}' must contain a model of type '{family}'. "
                f"Received: model_type '{found}' in its config.json. Use the "
                "class of that model."
            )

    def backbone_config(self) -> dict[str, Any]:
        """Returns the arguments of the backbone.

        Raises:
            ValueError: `config.json` lacks an argument, or has a value that
                the backbone does not support.
        """
        sizes = {
            ours: self._entry(theirs)
            for ours, theirs in self.family.sizes.items()
        }
        sizes["max_sequence_length"] -= self.family.reserved_positions
        activation = self._entry(self.family.activation)
        if activation not in _ACTIVATIONS:
            raise ValueError(
                f"`{self.family.activation}` in '{self.path}/config.json' must "
                f"be one of {', '.join(_ACTIVATIONS)}. Received: {activation}."
            )
        positions = self._config.get("position_embedding_type", "absolute")
        if positions != "absolute":
            raise ValueError(
                f"`position_embedding_type` in '{self.path}/config.json' must "
                f"be 'absolute'. Received: {positions!r}."
            )
        return {
            **sizes,
            "activation": _ACTIVATIONS[activation],
            # DistilBERT's configurations have no such entry.
            "layer_norm_epsilon": self._config.get("layer_norm_eps"),
        }

    def _entry(self, name: str) -> Any:
        if name not in self._config:
            raise ValueError(
                f"'{self.path}/config.json' must have an entry `{name}`. "
                f"Received: {', '.join(self._config)}."
            )
        return self._config[name]

    def load_weights(
        self, model: keras.Model, optional: tuple[str, ...] = ()
    ) -> None:
        """Copies the directory's weights into a model.

        Weights of memories keep their initial values. Weights of feed-forward
        networks that a memory replaces are not copied.

        Args:
            model: backbone or masked-LM task of this family.
            optional: tuple of str. Modules that checkpoints may lack.

        Raises:
            ValueError: a tensor is missing or has another shape. The model is
                unchanged then.
        """
        tensors = self._read_tensors()
        missing: list[str] = []
        values: list[tuple[keras.Variable, np.ndarray]] = []
        for weight in model.weights:
            path = weight.path.removeprefix(f"{model.name}/")
            # This includes the moving statistics of a memory's batch norm.
            if "product_key_memory/" in path:
                continue
            name, value = self._find(tensors, path, weight.shape)
            if value is not None:
                values.append((weight, value))
            elif path.startswith(optional):
                missing.append(path)
            else:
                raise ValueError(
                    f"'{self.path}' must contain `{name}` for `{path}`. "
                    f"Received: {len(tensors)} other tensors."
                )
        for weight, value in values:
            weight.assign(value)
        logger.info(
            "'%s': %d weights copied.%s",
            self.path,
            len(values),
            f" New: {', '.join(missing)}." if missing else "",
        )

    def has_masked_lm_head(self) -> bool:
        """Whether the directory contains the weights of a masked-LM head."""
        name = f"{self.family.modules['mlm_head']}.bias"
        return any(
            name == _plain_name(stored, self.family)
            for file in self._open_files()
            for stored in file.keys()
        )

    def _find(
        self, tensors: dict[str, np.ndarray], path: str, shape: tf.TensorShape
    ) -> tuple[str, np.ndarray | None]:
        """A weight's name in the directory, and its value or `None`."""
        module, leaf = path.rsplit("/", 1)
        first, _, rest = module.partition("/")
        if first.startswith("transformer_layer_"):
            number = first.removeprefix("transformer_layer_")
            module = self.family.layer.format(number)
            module += self.family.in_layer[rest]
        else:
            module = self.family.modules[module]
        name = f"{module}.{_LEAVES[leaf]}"
        if name not in tensors:
            return name, None
        value = tensors[name]
        if module.endswith("position_embeddings"):
            value = value[self.family.reserved_positions :]
            segments = tensors.get("embeddings.token_type_embeddings.weight")
            if segments is not None and len(segments) == 1:
                # The only segment's embedding is added at every position.
                value = value + segments
        if leaf == "kernel":
            value = np.transpose(value)
        if value.size != shape.num_elements():
            raise ValueError(
                f"`{name}` in '{self.path}' must have the {tuple(shape)} "
                f"entries of `{path}`. Received: shape {value.shape}."
            )
        return name, value.reshape(shape)

    def _read_tensors(self) -> dict[str, np.ndarray]:
        """All tensors by name, without the prefix of a model with a head."""
        return {
            _plain_name(name, self.family): file.get_tensor(name)
            for file in self._open_files()
            for name in file.keys()
        }

    def _open_files(self) -> Iterator[Any]:
        """Yields the files of tensors, opened."""
        try:
            import safetensors
        except ImportError as error:
            raise ImportError(
                "Models of transformers need the package `safetensors`. "
                "Install it with `pip install safetensors`."
            ) from error
        index = self.path / "model.safetensors.index.json"
        names = {"model.safetensors"}
        if index.exists():
            names = set(_read_json(index)["weight_map"].values())
        for name in sorted(names):
            if not (self.path / name).exists():
                raise ValueError(
                    f"'{self.path}' must contain {name}. Received: "
                    f"{', '.join(sorted(p.name for p in self.path.iterdir()))}."
                    " Save the model with `save_pretrained` of transformers."
                )
            try:
                file = safetensors.safe_open(self.path / name, "np")
            except safetensors.SafetensorError as error:
                raise ValueError(
                    f"'{self.path / name}' must be a safetensors file. "
                    f"Received one that cannot be read: {error}. Copy or save "
                    "it again."
                ) from error
            with file:
                yield file


def _plain_name(name: str, family: Family) -> str:
    name = name.removeprefix(family.prefix)
    for old, new in (("LayerNorm.gamma", "weight"), ("LayerNorm.beta", "bias")):
        if name.endswith(old):
            name = f"{name.removesuffix(old)}LayerNorm.{new}"
    return name


@register_checkpoint_opener
def open_hugging_face_directory(
    preset: str, kind: str | None
) -> HuggingFaceDirectory | None:
    """Opens a model of transformers; returns None for anything else."""
    preset = local_directory(preset, kind)
    if not is_hugging_face_directory(preset):
        return None
    if kind is None:
        raise ValueError(
            "A class for any backbone loads presets of keras-hub only. "
            f"Received: '{preset}', a directory of transformers. Use the class "
            "of its kind of model, such as `PKMBertQuestionAnswerer`."
        )
    return HuggingFaceDirectory(preset, kind)
