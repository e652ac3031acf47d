"""Reads models from the directories of Hugging Face's transformers.

Such a directory contains `config.json`, `model.safetensors` (or shards of it
with their index) and the files of a tokenizer. Tables map its modules to ours;
the rest follows from the names of weights. Nothing is ignored silently: one
warning names tensors without a place in the model and weights without a tensor,
and unsupported features that would change the computation are refused.
"""

import difflib
import os
import pathlib
import warnings
from typing import Any

import keras
import keras_hub
import numpy as np

from keras_pkm.converters.hugging_face_families import FAMILIES
from keras_pkm.converters.hugging_face_files import read_config
from keras_pkm.converters.hugging_face_files import read_tensors
from keras_pkm.converters.hugging_face_tokenizers import read_tokenizer

_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_approximate",
    "gelu_fast": "gelu_approximate",
    "gelu_pytorch_tanh": "gelu_approximate",
}
# Entries that change what a model computes, and the values that are computed
# here. An entry that is missing has one of these.
_COMPUTED: dict[str, tuple[Any, ...]] = {
    "position_embedding_type": ("absolute",),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "is_encoder_decoder": (False, None),
    "pruned_heads": ({}, [], None),
    "quantization_config": (None,),
    # Code of its own, which only transformers runs.
    "auto_map": ({}, None),
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
_WORDS = "embeddings.word_embeddings.weight"
_POSITIONS = "embeddings.position_embeddings.weight"
_SEGMENTS = "embeddings.token_type_embeddings.weight"
# What transformers computes itself and used to save.
_BUFFERS: dict[str, Any] = {
    "embeddings.position_ids": np.arange,
    "embeddings.token_type_ids": np.zeros,
}


class HuggingFaceDirectory:
    """A model of transformers on disk.

    Args:
        directory: Where its config.json and its weights are.

    Attributes:
        path: The directory.
        family: The names of weights and sizes in its kind of model.

    Raises:
        ValueError: the directory contains no model, or one whose kind or
            features are not supported.
    """

    def __init__(self, directory: str | os.PathLike[str]):
        self.path = pathlib.Path(directory)
        if not (self.path / "config.json").is_file():
            raise ValueError(
                "`directory` must be a directory of transformers, with a "
                f"config.json. Received: '{directory}'."
            )
        self._config = read_config(self.path)
        found = self._config.get("model_type")
        if found not in FAMILIES:
            raise ValueError(
                f"'{self.path}/config.json' must have a `model_type` of "
                f"{', '.join(FAMILIES)}. Received: {found!r}. Load other "
                "models by KerasHub's `from_preset`, and add memories with "
                "`keras_pkm.models.add_memory`."
            )
        self.family = FAMILIES[found]
        for name, values in _COMPUTED.items():
            value = self._config.get(name, values[0])
            if value not in values:
                raise ValueError(
                    f"`{name}` in '{self.path}/config.json' must be "
                    f"{values[0]!r}: nothing else is computed here. Received: "
                    f"{value!r}."
                )
        if (self.path / "adapter_config.json").exists():
            raise ValueError(
                f"'{self.path}' must contain a whole model. Received: one with "
                "an adapter, which adapter_config.json describes. Merge the "
                "adapter into the model and save that."
            )

    def backbone_config(self, dropout: float | None = None) -> dict[str, Any]:
        """Returns the arguments of KerasHub's backbone.

        Args:
            dropout: The rate of all layers, if it is not that of the directory.

        Raises:
            ValueError: `config.json` lacks an argument, or has a value that
                the backbone does not support.
        """
        config: dict[str, Any] = {
            ours: self._size(theirs)
            for ours, theirs in self.family.sizes.items()
        }
        config["max_sequence_length"] -= self._first_position
        config["dropout"] = self._dropout() if dropout is None else dropout
        return config

    def architecture(self) -> dict[str, Any]:
        """Returns what KerasHub's backbone has no arguments for.

        Returns:
            `feedforward_activation` and `normalization_epsilon` of a
            `keras_pkm.models.MemoryBackbone`.

        Raises:
            ValueError: the activation is not supported.
        """
        activation = self._entry(self.family.activation)
        if activation not in _ACTIVATIONS:
            raise ValueError(
                f"`{self.family.activation}` in '{self.path}/config.json' must "
                f"be one of {', '.join(_ACTIVATIONS)}. Received: {activation}."
            )
        # That of transformers where there is no such entry.
        epsilon = 1e-12
        if self.family.epsilon is not None:
            epsilon = self._config.get(self.family.epsilon, epsilon)
        return {
            "feedforward_activation": _ACTIVATIONS[activation],
            "normalization_epsilon": epsilon,
        }

    def classifier_config(self, **arguments: Any) -> dict[str, Any]:
        """Returns `num_classes` and `dropout` of the directory's classifier.

        Args:
            **arguments: Arguments that override the directory's.

        Raises:
            ValueError: there is no classifier, and `num_classes` is not given.
        """
        config = {}
        if "num_classes" not in arguments:
            if not self._has_classifier:
                raise ValueError(
                    "`num_classes` must be given for a directory without a "
                    f"text classifier. Received: '{self.path}', with the "
                    f"architectures {self._config.get('architectures')}."
                )
            head = f"{self.family.heads['logits']}.bias"
            config["num_classes"] = len(self._tensor(head, "logits/bias"))
        for name in self.family.classifier_dropouts:
            if self._config.get(name) is not None:
                config["dropout"] = self._config[name]
                break
        return {**config, **arguments}

    def _entry(self, name: str) -> Any:
        if name not in self._config:
            raise ValueError(
                f"'{self.path}/config.json' must have an entry `{name}`. "
                f"Received: {', '.join(self._config)}."
            )
        return self._config[name]

    def _size(self, name: str) -> int:
        size = self._entry(name)
        if not isinstance(size, int):
            raise ValueError(
                f"`{name}` in '{self.path}/config.json' must be an integer. "
                f"Received: {size!r}."
            )
        return size

    def _dropout(self) -> float:
        rates = {
            name: self._config.get(name, 0.1) for name in self.family.dropouts
        }
        if len(set(rates.values())) > 1:
            received = ", ".join(f"`{k}` {v}" for k, v in rates.items())
            raise ValueError(
                f"The dropout rates in '{self.path}/config.json' must be the "
                "same: all layers have one rate here. Received: "
                f"{received}. Make them equal there, or pass "
                f"dropout={next(iter(rates.values()))}."
            )
        return next(iter(rates.values()))

    @property
    def _first_position(self) -> int:
        """The row of the first position in the table of positions."""
        name = self.family.position_offset
        if name is None:
            return 0
        return 1 + (self._size(name) if name in self._config else 1)

    @property
    def _has_classifier(self) -> bool:
        """Whether the head named `classifier` classifies whole texts.

        Those of tokens and of multiple choice have the same name.
        """
        architectures = self._config.get("architectures") or []
        return any(
            name.endswith("ForSequenceClassification") for name in architectures
        )

    @property
    def _tensors(self) -> dict[str, np.ndarray]:
        if "_read" not in self.__dict__:
            anchor = self.family.layer.format(0)
            anchor += self.family.in_layer["self_attention_layer/query"]
            self._read = read_tensors(
                self.path, f"{anchor}.weight", self.family.prefix
            )
        return self._read

    def has_masked_lm_head(self) -> bool:
        """Whether the directory contains the weights of a masked-LM head."""
        module = self.family.heads["mlm_head/intermediate_dense"]
        return f"{module}.weight" in self._tensors

    def make_tokenizer(
        self, vocabulary_size: int
    ) -> keras_hub.tokenizers.Tokenizer:
        """Returns the tokenizer of the directory.

        Args:
            vocabulary_size: The size of the model's vocabulary.

        Raises:
            ValueError: the tokenizer's files are missing, or it has features
                that are not supported, or tokens that the model lacks.
        """
        tokenizer = read_tokenizer(self.path, self.family.tokenizer)
        if tokenizer.vocabulary_size() > vocabulary_size:
            raise ValueError(
                f"The tokenizer in '{self.path}' must have the vocabulary of "
                f"the model, with {vocabulary_size} tokens. Received: "
                f"{tokenizer.vocabulary_size()} tokens."
            )
        return tokenizer

    def load_weights(self, model: keras.Model) -> None:
        """Copies the directory's weights into a model.

        Tensors of the directory that have no place in the model are named in
        one warning, together with the model's weights that are new: those of
        memories, and of heads that the directory lacks.

        Args:
            model: A backbone or task of this family.

        Raises:
            ValueError: a tensor of the backbone is missing, a tensor has
                another shape, or a head has features that are not supported.
                The model is unchanged then.
        """
        account = _Account(self._tensors)
        values: list[tuple[keras.Variable, np.ndarray]] = []
        weights = {
            weight.path.removeprefix(f"{model.name}/"): weight
            for weight in model.weights
        }
        if any(path.startswith("mlm_head/") for path in weights):
            self._check_masked_lm()
        for path, weight in weights.items():
            found = self._find(path, weight.shape, account)
            if found is None:
                account.new.append(path)
            else:
                values.append((weight, found))
        self._account_for_the_rest(account)
        for weight, value in values:
            weight.assign(value)
        account.warn(self.path)

    def _find(
        self, path: str, shape: tuple[int, ...], account: "_Account"
    ) -> np.ndarray | None:
        """The value of a weight, or `None` for one that is new."""
        module, leaf = path.rsplit("/", 1)
        first, _, rest = module.partition("/")
        optional = False
        theirs: str | None
        if first.startswith("transformer_layer_"):
            number = first.removeprefix("transformer_layer_")
            theirs = self.family.in_layer.get(rest)
            if theirs is not None:
                theirs = self.family.layer.format(number) + theirs
        else:
            optional = module in self.family.heads
            known = self.family.heads if optional else self.family.modules
            theirs = known.get(module)
        if theirs is None or leaf not in _LEAVES:
            return None
        name = f"{theirs}.{_LEAVES[leaf]}"
        if theirs == self.family.heads["logits"] and not self._has_classifier:
            account.reasons[name] = (
                "it is not of a text classifier, by `architectures` in "
                "config.json"
            )
            return None
        if optional and self._name_of(name) is None:
            return None
        value = self._tensor(name, path)
        if name == _POSITIONS:
            value = self._positions(value, account)
        if leaf == "kernel":
            value = np.transpose(value)
        if not _fits(value.shape, tuple(shape)):
            if optional:
                account.reasons[name] = (
                    f"its shape {self._tensors[name].shape} is not that of "
                    f"`{path}`, {tuple(shape)}"
                )
                return None
            raise ValueError(
                f"`{name}` in '{self.path}' must have the {tuple(shape)} "
                f"entries of `{path}`. Received: shape "
                f"{self._tensor(name, path).shape}."
            )
        account.loaded.add(self._name_of(name))
        return value.reshape(shape)

    def _tensor(self, name: str, path: str) -> np.ndarray:
        """The tensor of a name, or of the name that it shares its values with.

        Raises:
            ValueError: there is none, or its numbers are not floats.
        """
        found = self._name_of(name)
        if found is None:
            near = difflib.get_close_matches(name, self._tensors, 3, 0.5)
            raise ValueError(
                f"'{self.path}' must contain `{name}` for `{path}`. Received: "
                f"{len(self._tensors)} other tensors, the nearest of which "
                f"are {', '.join(near) or next(iter(self._tensors))}."
            )
        value = self._tensors[found]
        # numpy does not count bfloat16 among its own kinds.
        if not (value.dtype.kind == "f" or value.dtype.name == "bfloat16"):
            raise ValueError(
                f"`{found}` in '{self.path}' must have floating-point numbers. "
                f"Received: {value.dtype}. Save the model without quantization."
            )
        return value.astype("float32")

    def _name_of(self, name: str) -> str | None:
        """The name under which a tensor was saved, or `None`.

        safetensors saves values that have two names under one of them.
        """
        if name in self._tensors:
            return name
        decoder = self.family.decoder
        other = {f"{self.family.heads['mlm_head']}.bias": f"{decoder}.bias"}
        if self._config.get("tie_word_embeddings", True):
            other[_WORDS] = f"{decoder}.weight"
        shared = other.get(name)
        return shared if shared in self._tensors else None

    def _positions(self, value: np.ndarray, account: "_Account") -> np.ndarray:
        """The embeddings of positions, with what is added at each of them."""
        value = value[self._first_position :]
        if self.family.segments is None:
            return value
        segments = self._tensor(_SEGMENTS, "embeddings/position_embedding")
        rows = self._config.get(self.family.segments, 2)
        if len(segments) != rows:
            raise ValueError(
                f"`{_SEGMENTS}` in '{self.path}' must have the {rows} rows of "
                f"`{self.family.segments}` in its config.json. Received: shape "
                f"{segments.shape}."
            )
        account.loaded.add(_SEGMENTS)
        if len(segments) > 1:
            account.in_part[f"{_SEGMENTS}, rows 1 to {len(segments) - 1}"] = (
                "the model has no input of segments, so that all tokens are of "
                "segment 0, whose row is added at every position"
            )
        return value + segments[:1]

    def _check_masked_lm(self) -> None:
        """Checks that a masked-LM head here computes what the directory's does.

        Raises:
            ValueError: it does not.
        """
        if not self.has_masked_lm_head():
            return
        activation = self._config[self.family.activation]
        # The head of transformers' RoBERTa always has the exact one.
        if self.family is not FAMILIES["roberta"] and (
            _ACTIVATIONS[activation] != "gelu"
        ):
            raise ValueError(
                f"'{self.path}' must have the activation 'gelu' for its "
                "masked-LM head to be loaded: keras-hub's head always has it. "
                f"Received: '{activation}'. Load the backbone alone, without "
                "`task`."
            )
        name = f"{self.family.decoder}.weight"
        tied = self._config.get("tie_word_embeddings", True)
        if tied and not self._differs(name, _WORDS):
            bias = f"{self.family.decoder}.bias"
            if not self._differs(bias, f"{self.family.heads['mlm_head']}.bias"):
                return
            name = bias
        raise ValueError(
            f"'{self.path}' must predict tokens with the table of its token "
            "embeddings, as the masked-LM head here does. Received: "
            f"tie_word_embeddings={tied} in its config.json, and `{name}` "
            f"{'with' if name in self._tensors else 'without'} values of its "
            "own. Load the backbone alone, without `task`."
        )

    def _differs(self, name: str, other: str) -> bool:
        """Whether there are both tensors, with different values."""
        if not {name, other} <= set(self._tensors):
            return False
        return not np.array_equal(self._tensors[name], self._tensors[other])

    def _account_for_the_rest(self, account: "_Account") -> None:
        """Finds tensors whose values the model has without them."""
        head = f"{self.family.heads['mlm_head']}.bias"
        decoder = self.family.decoder
        for name, other in (
            (f"{decoder}.weight", _WORDS),
            (f"{decoder}.bias", head),
        ):
            if name == other or name not in self._tensors:
                continue
            if self._differs(name, other):
                account.reasons[name] = f"it differs from `{other}`"
            elif other in account.loaded:
                account.loaded.add(name)
        for name, make in _BUFFERS.items():
            value = self._tensors.get(name)
            if value is not None:
                if np.array_equal(np.ravel(value), make(value.size)):
                    account.loaded.add(name)
                else:
                    account.reasons[name] = "positions are counted here"


def _fits(found: tuple[int, ...], expected: tuple[int, ...]) -> bool:
    """Whether a tensor has the shape of a weight, but for heads in one axis."""
    if found == expected:
        return True
    first, *rest = expected
    *start, last = expected
    return found in (
        (int(np.prod(expected)),),
        (first, int(np.prod(rest))),
        (int(np.prod(start)), last),
    )


class _Account:
    """What became of all tensors of a directory and all weights of a model."""

    def __init__(self, tensors: dict[str, np.ndarray]):
        self.tensors = tensors
        self.loaded: set[str | None] = set()
        self.in_part: dict[str, str] = {}
        self.new: list[str] = []
        self.reasons: dict[str, str] = {}

    def warn(self, path: pathlib.Path) -> None:
        """Names what was not loaded, and why, in one warning."""
        by_reason: dict[str, list[str]] = {}
        for name in self.tensors:
            if name not in self.loaded:
                reason = self.reasons.get(name, "this model has no such weight")
                by_reason.setdefault(reason, []).append(name)
        for name, reason in self.in_part.items():
            by_reason.setdefault(reason, []).append(name)
        lines = [
            f"Not loaded, because {reason}: {', '.join(names)}."
            for reason, names in by_reason.items()
        ]
        if self.new:
            lines.append(f"New, with initial values: {', '.join(self.new)}.")
        if lines:
            warnings.warn("\n".join([f"'{path}':", *lines]), stacklevel=4)
