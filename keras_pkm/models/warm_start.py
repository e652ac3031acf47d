"""Warm start: copies weights into a model of the same layout."""

import dataclasses
import re

import keras

from keras_pkm.layers.memories import memories


@dataclasses.dataclass(frozen=True)
class WarmStartReport:
    """The outcome of a warm start, as weight paths without the model's name.

    Attributes:
        copied: tuple of str. Weights that now have the source's values.
        new: tuple of str. Weights of the target that the source lacks; they
            keep their initial values.
        left_over: tuple of str. Weights of the source that the target lacks.
    """

    copied: tuple[str, ...]
    new: tuple[str, ...]
    left_over: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"Warm start: {len(self.copied)} weights copied, {len(self.new)} "
            f"new, {len(self.left_over)} left over."
        )

    def details(self) -> str:
        """Returns the paths of the weights that are new or left over."""
        return (
            f"New: {', '.join(self.new) or 'none'}. "
            f"Left over: {', '.join(self.left_over) or 'none'}."
        )


def copy_matching_weights(
    source: keras.layers.Layer,
    target: keras.layers.Layer,
    skip: str | None = None,
) -> WarmStartReport:
    """Copies each weight of `source` to the weight of `target` at its path.

    Weights are matched by their path without the model's name. Sublayers have
    the same names in all kinds of encoder blocks, so that a plain model's
    weights fit a model with memory. This is the "+Init" of
    [Kim and Jung, 2020](https://arxiv.org/abs/2010.03881).

    Args:
        source: built Keras model to copy from.
        target: built Keras model to copy to.
        skip: optional regular expression. Weights are not copied if it is
            found in their path.

    Returns:
        A `keras_pkm.models.WarmStartReport`.

    Raises:
        ValueError: two weights with the same path differ in shape; a layer is
            quantized or has low-rank additions (LoRA), so that its kernel alone
            does not determine its output; or two memories find their slots in
            different ways. Nothing is copied then.

    Example:

    >>> plain = keras_pkm.layers.PKMTransformerEncoder(
    ...     intermediate_dim=32, num_heads=2, name="encoder"
    ... )
    >>> with_memory = keras_pkm.layers.PKMTransformerEncoder(
    ...     intermediate_dim=32,
    ...     num_heads=2,
    ...     block="pkm",
    ...     memory={"num_sub_keys": 8, "top_k": 4, "key_dim": 8},
    ...     name="encoder",
    ... )
    >>> plain.build((None, None, 16))
    >>> with_memory.build((None, None, 16))
    >>> report = keras_pkm.models.copy_matching_weights(plain, with_memory)
    >>> len(report.copied), len(report.new)
    (12, 8)
    >>> report.left_over[0]
    'feedforward_intermediate_dense/kernel'
    """
    for model in (source, target):
        _check_plain(model)
    old = _weights_by_path(source)
    new = _weights_by_path(target)
    if skip is not None:
        old = {k: v for k, v in old.items() if not re.search(skip, k)}
    common = [path for path in new if path in old]
    _check_addresses(source, target, common)
    for path in common:
        if old[path].shape != new[path].shape:
            raise ValueError(
                f"Weight `{path}` must have the same shape in `source` and "
                f"`target`. Received: {tuple(old[path].shape)} and "
                f"{tuple(new[path].shape)}. Build both models with the same "
                "sizes."
            )
    for path in common:
        new[path].assign(old[path].value)
    return WarmStartReport(
        copied=tuple(common),
        new=tuple(path for path in new if path not in old),
        left_over=tuple(path for path in old if path not in new),
    )


def _check_plain(model: keras.layers.Layer) -> None:
    """Checks that kernels are what layers compute with."""
    for layer in model._flatten_layers():
        what = None
        if getattr(layer, "lora_enabled", False):
            what = "low-rank additions, which its kernel does not have"
        elif getattr(layer, "quantization_mode", None):
            what = f"weights that are quantized ({layer.quantization_mode})"
        if what:
            raise ValueError(
                "`source` and `target` must have plain weights. Received: "
                f"'{model.name}', whose layer '{layer.name}' has {what}. Copy "
                "weights before `quantize` and `enable_lora`."
            )


def _check_addresses(
    source: keras.layers.Layer, target: keras.layers.Layer, common: list[str]
) -> None:
    """Checks that tokens find the same slots in memories of the same path."""
    old, new = (
        {
            memory.table.values.path.removeprefix(f"{model.name}/"): memory
            for memory in memories(model).values()
            if memory.built
        }
        for model in (source, target)
    )
    for path in set(common) & old.keys() & new.keys():
        ours, theirs = old[path].addressing(), new[path].addressing()
        if ours != theirs:
            raise ValueError(
                "Memories of `source` and `target` must have the same "
                f"addresses. Received: {ours} and {theirs} at `{path}`."
            )


def _weights_by_path(model: keras.layers.Layer) -> dict[str, keras.Variable]:
    prefix = f"{model.name}/"
    weights = {w.path.removeprefix(prefix): w for w in model.weights}
    if len(weights) < len(model.weights):
        raise ValueError(
            f"Weights of `{model.name}` share a path, so that they cannot be "
            "told apart. Give its layers distinct names."
        )
    return weights
