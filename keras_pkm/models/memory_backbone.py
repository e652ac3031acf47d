"""Any backbone of KerasHub, some of whose blocks have a memory."""

import inspect
import json
import logging
import pathlib
from collections.abc import Iterable
from typing import Any
from typing import Self

import keras
import keras_hub

from keras_pkm.layers.make_memory import MemoryTemplate
from keras_pkm.layers.make_memory import make_memory
from keras_pkm.layers.make_memory import memory_config
from keras_pkm.layers.memories import memories
from keras_pkm.layers.memory_block import MemoryBlock
from keras_pkm.layers.memory_block import padding_masks
from keras_pkm.layers.memory_layers import check_memory_layers
from keras_pkm.layers.stored_settings import StoredSettings
from keras_pkm.models.architecture import set_activation
from keras_pkm.models.architecture import set_epsilon
from keras_pkm.models.parallel_block import make_parallel_block
from keras_pkm.ops.arguments import one_of
from keras_pkm.ops.arguments import only_known

_log = logging.getLogger(__name__)
#: Where a memory can stand: behind a block, or inside it; or nowhere.
MEMORY_BLOCKS = ("serial", "resm", "pkm", "ffn")
# Further arguments, which Keras takes.
_OF_KERAS = ("name", "trainable")


class MemoryBackbone(StoredSettings, keras_hub.models.Backbone):
    """A backbone of KerasHub, some of whose Transformer blocks have a memory.

    By default, each of these blocks is followed by a memory whose output is
    added to the block's, see `keras_pkm.layers.MemoryBlock`. Encoders that are
    built of `keras_hub.layers.TransformerEncoder`, such as BERT, can have
    their memories inside the blocks instead, see
    `keras_pkm.layers.PKMTransformerEncoder`. The backbone shares its layers and
    weights with the plain backbone. It also has the plain backbone's
    attributes, such as `hidden_dim` and `embeddings`, so that the tasks of its
    family accept it.

    `keras_pkm.models.add_memory` returns a backbone of the family's own class,
    a subclass of this one.

    Args:
        backbone: a plain `keras_hub.models.Backbone` that has
            `transformer_layers`.
        memory_layers: tuple of int. The blocks with a memory, counted from 1.
            Defaults to none.
        memory: optional, see `keras_pkm.models.add_memory`.
        memory_block: `"serial"`, behind a block; `"resm"`, beside its
            feed-forward network; `"pkm"`, instead of that network; or
            `"ffn"`, no memory. Defaults to `"serial"`.
        share_table: bool. Whether all memories read one table of values.
            Defaults to `False`.
        feedforward_activation: optional: `"gelu"` or `"gelu_approximate"`.
            The activation of a BERT, DistilBERT or RoBERTa checkpoint, if it
            is not that of KerasHub's class, which has no argument for it. It
            is set in the layers of `backbone`.
        normalization_epsilon: optional float. The epsilon of the layer
            normalizations, likewise.
        dtype: optional dtype policy. It must be that of `backbone`.
        **kwargs: `name` and `trainable`.

    Attributes:
        plain_backbone: The backbone without memory.
        transformer_layers: list of its blocks; those with a memory are
            `keras_pkm.layers.MemoryBlock` or
            `keras_pkm.layers.PKMTransformerEncoder`.

    Example:

    >>> plain = keras_hub.models.GPT2Backbone(
    ...     vocabulary_size=100,
    ...     num_layers=3,
    ...     num_heads=2,
    ...     hidden_dim=16,
    ...     intermediate_dim=32,
    ...     max_sequence_length=12,
    ... )
    >>> backbone = keras_pkm.models.add_memory(
    ...     plain,
    ...     memory_layers=(2,),
    ...     memory={"num_sub_keys": 8, "top_k": 4, "key_dim": 8},
    ... )
    >>> inputs = {
    ...     "token_ids": np.ones((2, 12), "int32"),
    ...     "padding_mask": np.ones((2, 12), "int32"),
    ... }
    >>> bool(np.all(backbone(inputs) == plain(inputs)))
    True
    >>> isinstance(backbone, keras_pkm.models.MemoryBackbone)
    True

    References:

    - [Lample et al., 2019](https://arxiv.org/abs/1907.05242)
    - [Kim and Jung, 2020](https://arxiv.org/abs/2010.03881)
    """

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        memory_layers: Iterable[int] = (),
        memory: MemoryTemplate = None,
        memory_block: str = "serial",
        share_table: bool = False,
        feedforward_activation: str | None = None,
        normalization_epsilon: float | None = None,
        dtype: str | keras.DTypePolicy | None = None,
        **kwargs: Any,
    ):
        _check_dtype(dtype, backbone)
        trainable = kwargs.pop("trainable", True)
        only_known(kwargs, _OF_KERAS)
        blocks = _blocks(backbone)
        memory_layers = check_memory_layers(memory_layers, len(blocks))
        one_of("memory_block", memory_block, MEMORY_BLOCKS)
        # What was set when the same backbone got a memory before.
        before = getattr(backbone, "_set_by_memory_backbone", (None, None))
        if feedforward_activation is None:
            feedforward_activation = before[0]
        if normalization_epsilon is None:
            normalization_epsilon = before[1]
        if feedforward_activation is not None:
            set_activation(backbone, feedforward_activation)
        if normalization_epsilon is not None:
            normalization_epsilon = set_epsilon(backbone, normalization_epsilon)
        backbone._set_by_memory_backbone = (
            feedforward_activation,
            normalization_epsilon,
        )

        numbers = () if memory_block == "ffn" else memory_layers
        table = None
        if share_table and numbers:
            table = make_memory(
                memory, blocks[0].dtype_policy, memory_block != "pkm"
            ).make_table(backbone.hidden_dim, "memory_table")

        def add_to(block: keras.layers.Layer) -> keras.layers.Layer:
            name = f"{block.name}_with_memory"
            if memory_block != "serial":
                return make_parallel_block(
                    block, memory_block, memory, name, table
                )
            layer = MemoryBlock(block, memory, name=name)
            if table is not None:
                layer.memory.share_table(table)
            return layer

        with_memory = {number: add_to(blocks[number - 1]) for number in numbers}
        numbered = {id(block): number for number, block in enumerate(blocks, 1)}
        accesses: dict[int, Any] = {}
        block_outputs: dict[int, Any] = {}
        masks: list[Any] = []

        inputs = keras.tree.map_structure(
            lambda each: keras.Input(
                batch_shape=each.shape, dtype=each.dtype, name=each.name
            ),
            backbone.input,
        )

        if any(each.memory.context_size for each in with_memory.values()):
            _check_token_ids(backbone)

        def call_layer(layer: keras.Layer, *args: Any, **kwargs: Any) -> Any:
            number = numbered.get(id(layer))
            if number is None:
                return layer(*args, **kwargs)
            if number in block_outputs and number in with_memory:
                raise ValueError(
                    "`backbone` must call each block with a memory once. "
                    f"Received: a `{type(backbone).__name__}`, which calls "
                    f"'{layer.name}' several times."
                )
            if number not in with_memory:
                outputs = layer(*args, **kwargs)
            else:
                masks.extend(padding_masks(layer, args, kwargs))
                block = with_memory[number]
                if block.memory.context_size:
                    kwargs["token_ids"] = inputs["token_ids"]
                outputs, accesses[number] = block(
                    *args, return_memory_access=True, **kwargs
                )
            first = outputs[0] if isinstance(outputs, tuple) else outputs
            block_outputs[number] = first
            return outputs

        graph = keras.models.clone_model(
            backbone,
            input_tensors=inputs,
            clone_function=lambda layer: layer,
            call_function=call_layer,
        )

        if with_memory and not masks:
            _log.warning(
                "%s has no padding mask, so that its memories take padding for "
                "tokens: in what they read, in statistics and in gradients.",
                type(backbone).__name__,
            )

        # === Config ===
        self.memory_layers = memory_layers
        self.memory = memory_config(memory)
        self.memory_block = memory_block
        self.share_table = bool(share_table)
        self.feedforward_activation = feedforward_activation
        self.normalization_epsilon = normalization_epsilon

        # === Functional Model ===
        self._accesses = dict(sorted(accesses.items()))
        self._block_outputs = [
            output for _, output in sorted(block_outputs.items())
        ]
        others = {
            "plain_backbone": backbone,
            # Decoding with a cache goes over these, not over the graph.
            "transformer_layers": [
                with_memory.get(number, block)
                for number, block in enumerate(blocks, 1)
            ],
            "_token_embedding": backbone.token_embedding,
        }
        for name, value in others.items():
            # Keras would count their layers before those of the graph, which
            # are the same, and weights would come in another order.
            object.__setattr__(self, name, value)
        super().__init__(
            inputs=graph.input,
            outputs=graph.output,
            dtype=backbone.dtype_policy,
            **kwargs,
        )
        # Keras would do so before it knows the layers.
        if not trainable:
            self.trainable = False

    def __getattr__(self, name: str) -> Any:
        # Only what this object does not have itself. Nothing private: Keras
        # asks for such names before the plain backbone is there.
        plain = self.__dict__.get("plain_backbone")
        if plain is None or name.startswith("_"):
            raise AttributeError(
                f"'{type(self).__name__}' has no attribute '{name}'."
            )
        return getattr(plain, name)

    @property
    def memory_outputs(
        self,
    ) -> dict[int, tuple[keras.KerasTensor, keras.KerasTensor]]:
        """The symbolic memory access `(slots, weights)` of each memory layer.

        A dict, keyed by the layer's number, counted from 1. It is not part of
        `backbone.output`; to get values, make it the output of a `keras.Model`.
        """
        return dict(self._accesses)

    @property
    def block_outputs(self) -> list[keras.KerasTensor]:
        """The symbolic output of each Transformer block, like `memory_outputs`.

        A block without memory is a layer of the plain backbone, too, and has
        another output there.
        """
        return list(self._block_outputs)

    def enable_lora(
        self, rank: int, target_layer_names: list[str] | None = None
    ) -> None:
        """Freezes the plain backbone except for low-rank additions (LoRA).

        Memories stay as trainable as they are. See
        `keras_hub.models.Backbone.enable_lora`.

        Args:
            rank: int. The rank of the additions.
            target_layer_names: optional list of str. The names of the layers
                that get them. Defaults to the plain backbone's choice.
        """
        self.plain_backbone.enable_lora(rank, target_layer_names)

    def save_lora_weights(self, filepath: str) -> None:
        """Writes the low-rank additions alone, without the memories.

        Args:
            filepath: str. The file, `.lora.h5`.
        """
        self.plain_backbone.save_lora_weights(filepath)

    def load_lora_weights(self, filepath: str) -> None:
        """Reads what `save_lora_weights` wrote.

        Args:
            filepath: str. The file.
        """
        self.plain_backbone.load_lora_weights(filepath)

    def stored_settings(self) -> dict[str, Any]:
        # A plain one can be loaded by the plain backbone's class.
        numbers = [*self._accesses]
        return {"memory_layers": numbers} if numbers else {}

    def save_to_preset(
        self, preset_dir: str, max_shard_size: float = 10
    ) -> None:
        """Saves the backbone as a preset.

        The preset stores the dtype of the weights, such as float32, rather than
        a mixed policy that they were trained with: a policy is chosen on
        loading, and KerasHub cannot load tasks from presets with a mixed one.

        Args:
            preset_dir: str. The directory to write.
            max_shard_size: int or float. Size of a weights file in GB above
                which it is split. Defaults to `10`.
        """
        super().save_to_preset(preset_dir, max_shard_size=max_shard_size)
        path = pathlib.Path(preset_dir) / "config.json"
        preset = json.loads(path.read_text())
        config = preset["config"]
        dtype = keras.dtype_policies.get(config["dtype"])
        # A map says which layers are quantized.
        if not isinstance(dtype, keras.dtype_policies.DTypePolicyMap):
            stored = keras.DTypePolicy(dtype.variable_dtype)
            config["dtype"] = keras.dtype_policies.serialize(stored)
            config["backbone"]["config"]["dtype"] = config["dtype"]
            path.write_text(json.dumps(preset, indent=4))

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        plain = keras.saving.serialize_keras_object(self.plain_backbone)
        # With the policies of quantized layers of memories: KerasHub leaves
        # our own out where it loads a preset.
        plain["config"] = {
            **_left_out(self.plain_backbone, plain["config"]),
            **plain["config"],
            "dtype": config["dtype"],
        }
        return {
            **config,
            "backbone": plain,
            "memory_layers": list(self.memory_layers),
            "memory": dict(self.memory),
            "memory_block": self.memory_block,
            "share_table": self.share_table,
            "feedforward_activation": self.feedforward_activation,
            "normalization_epsilon": self.normalization_epsilon,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        config = dict(config)
        plain = config["backbone"]
        # The layers are the same; `trainable` of this backbone freezes them.
        arguments = {**plain["config"], "trainable": True}
        # Presets are loaded with the dtype that their user asks for, and with
        # other arguments of the plain backbone, such as its dropout.
        dtype = config.pop("dtype", None)
        if dtype is not None:
            arguments["dtype"] = dtype
        own = {*inspect.signature(MemoryBackbone).parameters, *_OF_KERAS}
        for name in arguments.keys() & config.keys() - own:
            arguments[name] = config.pop(name)
        config["backbone"] = keras.saving.deserialize_keras_object(
            {**plain, "config": arguments}
        )
        return cls(**config)


def _left_out(
    backbone: keras_hub.models.Backbone, config: dict[str, Any]
) -> dict[str, Any]:
    """The arguments of a backbone that its class leaves out of its config.

    Llama's is `tie_word_embeddings`, and Qwen MoE's the coefficient of its
    router's loss.
    """
    arguments = inspect.signature(type(backbone)).parameters
    missing = [
        name
        for name in arguments
        if name not in config and hasattr(backbone, name)
    ]
    return {name: getattr(backbone, name) for name in missing}


def _check_dtype(
    dtype: str | keras.DTypePolicy | None, backbone: keras_hub.models.Backbone
) -> None:
    """Checks that a dtype policy, if one is given, is that of the backbone."""
    if dtype is None:
        return
    given, needed = (
        keras.dtype_policies.serialize(keras.dtype_policies.get(policy))
        for policy in (dtype, backbone.dtype_policy)
    )
    if given != needed:
        raise ValueError(
            "`dtype` must be that of `backbone`, whose layers are shared. "
            f"Received: dtype={dtype!r}, and a backbone with "
            f"{backbone.dtype_policy}. Leave it out, or make the backbone "
            "with it."
        )


def _check_token_ids(backbone: keras_hub.models.Backbone) -> None:
    """Checks that there is an id for each token of the blocks."""
    # Images stand before the text of a PaliGemma, as tokens without ids.
    if "token_ids" not in backbone.input or isinstance(
        backbone, keras_hub.models.PaliGemmaBackbone
    ):
        raise ValueError(
            "`backbone` must have an id for each token of its blocks, which "
            "memories of n-grams need. Received: a "
            f"`{type(backbone).__name__}`. Use a "
            "`keras_pkm.layers.ProductKeyMemory`."
        )


def _blocks(backbone: keras_hub.models.Backbone) -> list[keras.layers.Layer]:
    """The Transformer blocks of a plain backbone."""
    name = type(backbone).__name__
    blocks = list(getattr(backbone, "transformer_layers", None) or ())
    if not blocks:
        raise ValueError(
            "`backbone` must have Transformer blocks, `transformer_layers`. "
            f"Received: a `{name}` without them."
        )
    if not all(isinstance(block, keras.Layer) for block in blocks):
        raise ValueError(
            "`backbone` must have one layer for each of its blocks. Received: "
            f"a `{name}`, whose blocks share layers."
        )
    if memories(backbone):
        raise ValueError(
            "`backbone` must have no memory yet. Received: a "
            f"`{name}` with one. Begin with its plain backbone, and name all "
            "memory layers at once."
        )
    return blocks
