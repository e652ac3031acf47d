"""Converts the memories of other packages.

All of them number slots alike: slot i · n + j has the sub-keys i and j.
"""

import re
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from keras_pkm.layers.product_key_memory import ProductKeyMemory
from keras_pkm.ops.arguments import one_of
from keras_pkm.ops.arguments import positive_int
from keras_pkm.ops.arguments import positive_int_or_none

# Where each package keeps its memories, in a state dict.
_PLACES = {
    # Or a memory alone, such as that of XLM's notebook.
    "xlm": r"(?:memories\.\d+_(?:in|after)\.)?",
    "product-key-memory": r"(?:.*\.)?(?=(?:to_queries|keys|values|norm"
    r"|pre_layernorm|output_norm|maybe_concat_combine)\.?)",
    "memory-plus": r"layers\.\d+\.feed_forward\.",
}
# Arguments of the originals whose effect no tensor shows, and their only value
# that has a counterpart.
_OPTIONS: dict[str, dict[str, Any]] = {
    "xlm": {
        "mem_temperature": 1,
        "mem_normalize_query": False,
        "mem_score_softmax": True,
        "mem_score_subtract": "",
        "mem_score_normalize": False,
        "mem_modulo_size": -1,
        "mem_query_detach_input": False,
        "mem_shuffle_query": False,
        "mem_shuffle_indices": False,
        "mem_input2d": False,
        "mem_input_dropout": 0,
    },
    "product-key-memory": {
        "use_layernorm": True,
        "differentiable_topk": False,
        "non_competitive_gates": False,
        "attn_dropout": 0,
        "input_dropout": 0,
    },
    "memory-plus": {"mem_input_dropout": 0, "peer_variant": False},
}
# Tensors of options that have no counterpart.
_REFUSED = {
    "head_permutations": "mem_shuffle_indices",
    "query_proj.query_convs": "mem_input2d",
    "query_proj.query_mlps.1.0": "mem_multi_query_net with hidden layers",
    "query_proj.query_mlps.3.layer": "mem_grouped_conv",
    "query_proj.query_mlps.2.layer": "mem_grouped_conv",
    "pre_layernorm": "pre_layernorm",
    "output_norm": "norm_output",
    "maybe_concat_combine": "concat_values_and_combine",
    "norm.fn": "use_layernorm=False",
    "gating": "mem_gated",
    "values_u": "peer_variant",
    "values_v": "peer_variant",
}


def memories_from_state_dict(
    state_dict: Mapping[str, Any],
    source: str,
    top_k: int,
    num_heads: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> dict[str, ProductKeyMemory]:
    """Converts the product-key memories in a state dict of torch.

    The layers compute what the originals compute in inference.

    Args:
        state_dict: The tensors of a model or of a memory, by name: torch
            tensors or numpy arrays.
        source: Their origin: `"xlm"` (github.com/facebookresearch/XLM),
            `"product-key-memory"` (the package of that name, 0.3), or
            `"memory-plus"` (github.com/facebookresearch/memory).
        top_k: int. The number of slots that a head reads, which the tensors do
            not show: `mem_knn` or `topk` in the original code.
        num_heads: int. Needed only for `"memory-plus"`: `mem_heads` there.
        options: optional. The arguments with which the memories were made, such
            as the `params` of a checkpoint of XLM. Arguments that the tensors
            do not show are checked. With XLM's `mem_share_values`, all memories
            get one table; without `options` each gets a table of its own.

    Returns:
        A dict of built `keras_pkm.layers.ProductKeyMemory`, by the prefix of
        their names in the state dict. Memories of Memory+ without values of
        their own read the table of the first one, as in the original.

    Raises:
        ValueError: there is no memory; or a tensor is missing, has another
            shape, or belongs to an option that is not supported.

    Example:

    >>> state = {
    ...     "memories.4_in.keys": np.ones((2, 2, 5, 3)),
    ...     "memories.4_in.values.weight": np.ones((25, 8)),
    ...     "memories.4_in.query_proj.query_mlps.0.weight": np.ones((12, 8)),
    ...     "memories.4_in.query_proj.query_mlps.0.bias": np.ones(12),
    ... }
    >>> memories = keras_pkm.models.memories_from_state_dict(
    ...     state, "xlm", top_k=4
    ... )
    >>> memories["memories.4_in."].num_slots
    25

    References:

    - [Lample et al., 2019](https://arxiv.org/abs/1907.05242), XLM
    - [Berges et al., 2024](https://arxiv.org/abs/2412.09764), Memory+
    """
    one_of("source", source, tuple(_PLACES))
    top_k = positive_int("top_k", top_k)
    num_heads = positive_int_or_none("num_heads", num_heads)
    options = options or {}
    _check_options(source, options, top_k)
    made: dict[str, ProductKeyMemory] = {}
    first: ProductKeyMemory | None = None
    for prefix, tensors in _groups(state_dict, source):
        reader = _Reader(prefix, tensors)
        reader.check_options()
        layer = _READERS[source](reader, num_heads)
        values = reader.read_or_none("values.weight", 2)
        if "value_dim" not in layer["config"]:
            _check_width(reader, values, layer["dim"])
        heads, _, num_sub_keys, half = layer["sub_keys"].shape
        if num_heads not in (None, heads):
            raise ValueError(
                f"`num_heads` must be that of '{prefix}keys', {heads}. "
                f"Received: num_heads={num_heads}."
            )
        if values is None and first is None:
            raise ValueError(
                "`state_dict` must have the values of its first memory. "
                f"Received: none of '{prefix}values.weight'."
            )
        reader.check_all_read()
        memory = ProductKeyMemory(
            num_sub_keys, heads, top_k, 2 * half, **layer.pop("config")
        )
        if first is not None and (
            values is None or options.get("mem_share_values")
        ):
            memory.share_table(first.table)
        else:
            layer["table/values"] = values
        memory.build((None, layer.pop("dim")))
        _assign(memory, layer, prefix)
        made[prefix] = memory
        first = first or memory
    if not made:
        raise ValueError(
            f"`state_dict` must have a memory of '{source}'. Received: names "
            f"such as {list(state_dict)[:3]}."
        )
    return made


def _check_options(source: str, options: Mapping[str, Any], top_k: int) -> None:
    for name in ("mem_knn", "topk"):
        if options.get(name, top_k) != top_k:
            raise ValueError(
                f"`top_k` must be {name} of `options`. Received: "
                f"top_k={top_k}, {name}={options[name]!r}."
            )
    for name, needed in _OPTIONS[source].items():
        if name in options and options[name] != needed:
            raise ValueError(
                f"`options` must have {name}={needed!r}: other values have no "
                f"counterpart here. Received: {name}={options[name]!r}."
            )


def _groups(
    state_dict: Mapping[str, Any], source: str
) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """The tensors of each memory, by their own names."""
    place = re.compile(rf"(?:module\.)?{_PLACES[source]}")
    groups: dict[str, dict[str, np.ndarray]] = {}
    for name, tensor in state_dict.items():
        if found := place.match(name):
            group = groups.setdefault(found[0], {})
            group[name[found.end() :]] = tensor
    for prefix, tensors in groups.items():
        # Other feed-forward networks have the same place.
        if "keys" in tensors:
            yield prefix, tensors


class _Reader:
    """The tensors of one memory; it knows which of them were read."""

    def __init__(self, prefix: str, tensors: dict[str, Any]):
        self.prefix = prefix
        self._tensors = dict(tensors)

    def read(self, name: str, ndim: int) -> np.ndarray:
        """Returns a tensor that must be there."""
        if name not in self._tensors:
            raise ValueError(
                f"`state_dict` must have '{self.prefix}{name}'. Received: "
                f"{sorted(self._tensors)} of this memory."
            )
        tensor = self._tensors.pop(name)
        if hasattr(tensor, "detach"):  # of torch, which may be in bfloat16
            tensor = tensor.detach().cpu().float().numpy()
        array = np.asarray(tensor, "float32")
        if array.ndim != ndim:
            raise ValueError(
                f"'{self.prefix}{name}' must have {ndim} axes. Received: the "
                f"shape {array.shape}."
            )
        return array

    def read_or_none(self, name: str, ndim: int) -> np.ndarray | None:
        """Returns a tensor, or `None` if it is not there."""
        return self.read(name, ndim) if name in self._tensors else None

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def check_options(self) -> None:
        """Checks that no tensor belongs to an option without counterpart."""
        for name in self._tensors:
            for tensor, option in _REFUSED.items():
                if f"{name}.".startswith(f"{tensor}."):
                    raise ValueError(
                        f"`state_dict` must have no '{self.prefix}{name}': "
                        f"the option {option} has no counterpart here."
                    )

    def check_all_read(self) -> None:
        """Checks that nothing is left."""
        for name in self._tensors:
            if not name.endswith("num_batches_tracked"):
                raise ValueError(
                    f"`state_dict` must have no '{self.prefix}{name}', which "
                    "nothing here corresponds to."
                )


def _dense(reader: _Reader, theirs: str, ours: str) -> dict[str, np.ndarray]:
    """The kernel and the bias of a projection; zeros if it has no bias."""
    kernel = reader.read(f"{theirs}.weight", 2).T
    bias = reader.read_or_none(f"{theirs}.bias", 1)
    if bias is None:
        bias = np.zeros(kernel.shape[1], "float32")
    return {f"{ours}/kernel": kernel, f"{ours}/bias": bias}


def _batch_norm(
    reader: _Reader, theirs: str, ours: str
) -> dict[str, np.ndarray]:
    names = {
        "gamma": "weight",
        "beta": "bias",
        "moving_mean": "running_mean",
        "moving_variance": "running_var",
    }
    return {
        f"{ours}/{name}": reader.read(f"{theirs}.{other}", 1)
        for name, other in names.items()
    }


def _query_network(reader: _Reader) -> dict[str, Any]:
    """The projections of XLM's queries, all of them with a norm or none."""
    start = "query_proj.query_mlps."
    if "query_proj.0.weight" in reader:  # as in XLM's notebook
        start = "query_proj."
    if f"{start}0.0.weight" in reader:
        start += "0."
    if f"{start}0.weight" not in reader:
        raise ValueError(
            f"`state_dict` must have '{reader.prefix}{start}0.weight': queries "
            "without a network, mem_query_layer_sizes='', have no counterpart "
            "here."
        )
    # A norm has a single axis where the next projection has two.
    has_norm = f"{start}1.running_mean" in reader
    step = 3 if has_norm else 2
    hidden: list[int] = []
    found: dict[str, Any] = {}
    while True:
        place = len(hidden) * step
        is_last = f"{start}{place + step}.weight" not in reader
        number = len(hidden) + 1
        dense = "query_projection" if is_last else f"query_hidden_{number}"
        norm = "query_normalization" if is_last else f"{dense}_normalization"
        found |= _dense(reader, f"{start}{place}", dense)
        if has_norm:
            found |= _batch_norm(reader, f"{start}{place + 1}", norm)
        if is_last:
            break
        hidden.append(found[f"{dense}/bias"].shape[0])
    first = "query_hidden_1" if hidden else "query_projection"
    return {
        "config": {
            "query_normalization": "batch" if has_norm else None,
            "query_hidden_dims": hidden,
        },
        "dim": found[f"{first}/kernel"].shape[0],
        **found,
    }


def _xlm(reader: _Reader, num_heads: int | None) -> dict[str, Any]:
    keys = reader._tensors["keys"]
    if len(keys.shape) != 4:
        option = {
            2: "mem_use_different_keys=False",
            3: 'mem_implementation="flat"',
        }.get(len(keys.shape), f"keys of shape {tuple(keys.shape)}")
        raise ValueError(
            f"'{reader.prefix}keys' must have the shape (heads, 2, sub-keys, "
            f"width). Received: {tuple(keys.shape)}; {option} has no "
            "counterpart here."
        )
    layer = _query_network(reader)
    layer["sub_keys"] = reader.read("keys", 4)
    return layer


def _product_key_memory(
    reader: _Reader, num_heads: int | None
) -> dict[str, Any]:
    # (heads, sub-keys, halves, width)
    keys = reader.read("keys", 4).transpose(0, 2, 1, 3)
    heads, _, _, half = keys.shape
    weight = reader.read("to_queries.weight", 2)
    dim = weight.shape[1]
    # Halves first, then heads.
    weight = weight.reshape(2, heads, half, dim).transpose(1, 0, 2, 3)
    return {
        "config": {"query_normalization": "half_layer"},
        "dim": dim,
        "query_projection/kernel": weight.reshape(-1, dim).T,
        "query_projection/bias": np.zeros(2 * heads * half, "float32"),
        "query_normalization/gamma": reader.read("norm.weight", 1),
        "query_normalization/beta": reader.read("norm.bias", 1),
        "sub_keys": keys,
    }


def _memory_plus(reader: _Reader, num_heads: int | None) -> dict[str, Any]:
    if num_heads is None:
        raise ValueError(
            '`num_heads` must be given with source="memory-plus", because no '
            "tensor shows it. Received: num_heads=None."
        )
    keys = reader.read("keys", 2)
    if keys.shape[0] % (2 * num_heads):
        raise ValueError(
            f"`num_heads` must divide half of the {keys.shape[0]} rows of "
            f"'{reader.prefix}keys'. Received: num_heads={num_heads}."
        )
    layer = _query_network(reader)
    layer["sub_keys"] = keys.reshape(num_heads, 2, -1, keys.shape[1])
    gate = "swilu_projection.weight" in reader
    layer["config"]["gate"] = gate
    if gate:
        layer |= _dense(reader, "swilu_projection", "gate_projection")
        layer |= _dense(reader, "value_proj", "output_projection")
        layer["config"]["value_dim"] = layer["gate_projection/bias"].shape[0]
    elif "value_proj.weight" in reader:
        raise ValueError(
            f"`state_dict` must have no '{reader.prefix}value_proj.weight' "
            "without swilu_projection: the option mem_v_dim has no counterpart "
            "with a bias then."
        )
    return layer


def _check_width(reader: _Reader, values: np.ndarray | None, dim: int) -> None:
    if values is not None and values.shape[1] != dim:
        raise ValueError(
            f"'{reader.prefix}values.weight' must be as wide as the inputs, "
            f"{dim}. Received: {values.shape[1]}; the option mem_v_dim has no "
            "counterpart without a projection."
        )


_READERS = {
    "xlm": _xlm,
    "product-key-memory": _product_key_memory,
    "memory-plus": _memory_plus,
}


def _assign(
    memory: ProductKeyMemory, arrays: dict[str, np.ndarray], prefix: str
) -> None:
    own: dict[str, keras.Variable] = {}
    for weight in memory.weights:
        own[weight.path.removeprefix(f"{memory.name}/")] = weight
    for name, array in arrays.items():
        weight = own[name]
        if tuple(weight.shape) != array.shape:
            raise ValueError(
                f"the tensors of '{prefix}' must fit together. Received: "
                f"{array.shape} for {name}, which needs {tuple(weight.shape)}."
            )
        weight.assign(array)
