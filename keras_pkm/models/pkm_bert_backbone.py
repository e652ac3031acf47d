"""BERT with product-key memory layers."""

import json
import logging
import pathlib

import keras
import keras_hub

from keras_pkm.layers.pkm_transformer_encoder import BLOCKS
from keras_pkm.layers.pkm_transformer_encoder import PKMTransformerEncoder
from keras_pkm.models.warm_start import copy_matching_weights

logger = logging.getLogger(__name__)


@keras.saving.register_keras_serializable("keras_pkm")
class PKMBertBackbone(keras_hub.models.Backbone):
    """A BERT encoder of which some layers have a product-key memory.

    It has the layers, inputs and outputs of `keras_hub.models.BertBackbone`,
    equals it where there is no memory, and goes wherever that goes:
    `keras_hub.models.BertMaskedLM` and `BertTextClassifier` accept it, and
    `keras_pkm.models` has subclasses of these that load from presets and
    train under `tf.distribute`.

    Args:
        vocabulary_size: int. The size of the token vocabulary.
        num_layers: int. The number of encoder layers.
        num_heads: int. The number of attention heads.
        hidden_dim: int. The width of the encoder layers.
        intermediate_dim: int. The width of the feed-forward networks.
        dropout: float. Defaults to `0.1`.
        max_sequence_length: int. The longest input. Defaults to `512`.
        num_segments: int. Number of segment types. Defaults to `2`.
        memory_layers: tuple of int. The encoder layers with a memory, counted
            from 1 as in the paper, which has `(4, 8)` of 12 and `(2, 4)` of
            6. Defaults to none.
        memory_block: `"resm"` to add the memory beside the feed-forward
            network, `"pkm"` to replace that by the memory, `"ffn"` for no
            memory at all. Defaults to `"resm"`.
        memory: optional dict. Keyword arguments of
            `keras_pkm.layers.ProductKeyMemory`. Defaults to that layer's
            defaults, the paper's sizes.
        dtype: optional dtype or `keras.DTypePolicy` of all layers.

    Example:

    >>> backbone = keras_pkm.models.PKMBertBackbone(
    ...     vocabulary_size=1000,
    ...     num_layers=6,
    ...     num_heads=4,
    ...     hidden_dim=64,
    ...     intermediate_dim=128,
    ...     memory_layers=(2, 4),
    ...     memory={"num_sub_keys": 32, "top_k": 8, "key_dim": 16},
    ... )
    >>> inputs = {
    ...     "token_ids": np.ones((2, 12), "int32"),
    ...     "segment_ids": np.zeros((2, 12), "int32"),
    ...     "padding_mask": np.ones((2, 12), "int32"),
    ... }
    >>> backbone(inputs)["sequence_output"].shape
    TensorShape([2, 12, 64])

    The slots that the memories read, to count them, say:

    >>> probe = keras.Model(backbone.inputs, backbone.memory_outputs[4])
    >>> slots, weights = probe(inputs)
    >>> slots.shape
    TensorShape([2, 12, 4, 8])

    References:

    - [Kim and Jung, 2020](https://arxiv.org/abs/2010.03881)
    - [Devlin et al., 2018](https://arxiv.org/abs/1810.04805)
    """

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        dropout=0.1,
        max_sequence_length=512,
        num_segments=2,
        memory_layers=(),
        memory_block="resm",
        memory=None,
        dtype=None,
        **kwargs,
    ):
        memory_layers = check_memory_layers(memory_layers, num_layers)
        if memory_block not in BLOCKS:
            raise ValueError(
                "`memory_block` must be one of "
                f"{', '.join(map(repr, BLOCKS))}. "
                f"Received: memory_block={memory_block!r}."
            )

        # === Layers ===
        self.token_embedding = keras.layers.ReversibleEmbedding(
            vocabulary_size,
            hidden_dim,
            embeddings_initializer=_initializer(),
            dtype=dtype,
            name="token_embedding",
        )
        self.position_embedding = keras_hub.layers.PositionEmbedding(
            max_sequence_length,
            initializer=_initializer(),
            dtype=dtype,
            name="position_embedding",
        )
        self.segment_embedding = keras.layers.Embedding(
            num_segments,
            hidden_dim,
            embeddings_initializer=_initializer(),
            dtype=dtype,
            name="segment_embedding",
        )
        self.embeddings_add = keras.layers.Add(
            dtype=dtype, name="embeddings_add"
        )
        self.embeddings_layer_norm = keras.layers.LayerNormalization(
            epsilon=1e-12, dtype=dtype, name="embeddings_layer_norm"
        )
        self.embeddings_dropout = keras.layers.Dropout(
            dropout, dtype=dtype, name="embeddings_dropout"
        )
        self.transformer_layers = [
            PKMTransformerEncoder(
                intermediate_dim=intermediate_dim,
                num_heads=num_heads,
                block=memory_block if i + 1 in memory_layers else "ffn",
                memory=memory,
                dropout=dropout,
                activation=_gelu,
                layer_norm_epsilon=1e-12,
                kernel_initializer=_initializer(),
                dtype=dtype,
                name=f"transformer_layer_{i}",
            )
            for i in range(num_layers)
        ]
        self.pooled_dense = keras.layers.Dense(
            hidden_dim,
            activation="tanh",
            kernel_initializer=_initializer(),
            dtype=dtype,
            name="pooled_dense",
        )

        # === Functional Model ===
        inputs = {
            name: keras.Input((None,), dtype="int32", name=name)
            for name in ("token_ids", "segment_ids", "padding_mask")
        }
        tokens = self.token_embedding(inputs["token_ids"])
        positions = self.position_embedding(tokens)
        segments = self.segment_embedding(inputs["segment_ids"])
        x = self.embeddings_add((tokens, positions, segments))
        x = self.embeddings_layer_norm(x)
        x = self.embeddings_dropout(x)
        for layer in self.transformer_layers:
            has_memory = layer.product_key_memory is not None
            x = layer(
                x,
                padding_mask=inputs["padding_mask"],
                return_memory_access=has_memory,
            )
            if has_memory:
                x, _ = x
        super().__init__(
            inputs=inputs,
            outputs={
                "sequence_output": x,
                "pooled_output": self.pooled_dense(x[:, 0, :]),
            },
            dtype=dtype,
            **kwargs,
        )

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        self.max_sequence_length = max_sequence_length
        self.num_segments = num_segments
        self.memory_layers = memory_layers
        self.memory_block = memory_block
        self.memory = dict(memory or {})
        self.cls_token_index = 0

    @property
    def memory_outputs(self):
        """The symbolic memory access `(slots, weights)` of each memory layer.

        A dict, keyed by the layer's number, counted from 1. It is not part of
        `backbone.output`; name it as output of a `keras.Model` to get values.
        """
        outputs = {}
        for number, layer in enumerate(self.transformer_layers, start=1):
            if layer.product_key_memory is not None:
                _, slots, weights = layer.output
                outputs[number] = (slots, weights)
        return outputs

    @classmethod
    def from_backbone(
        cls,
        backbone,
        memory_layers,
        memory_block="resm",
        memory=None,
        dtype=None,
        **kwargs,
    ):
        """Adds memory to a plain model: the paper's "+Init".

        The weights of `backbone` are copied, the memories are initialized
        afresh, and with `memory_block="pkm"` the feed-forward networks that
        the memories replace are left over. What became of each weight is
        logged.

        Args:
            backbone: `keras_hub.models.BertBackbone` or
                `keras_pkm.models.PKMBertBackbone`.
            memory_layers: tuple of int, see the class.
            memory_block: str, see the class. Defaults to `"resm"`.
            memory: optional dict, see the class.
            dtype: optional dtype policy. Defaults to that of `backbone`.
            **kwargs: arguments of the class that shall differ from
                `backbone`'s, such as `dropout` and `name`.

        Returns:
            A `keras_pkm.models.PKMBertBackbone`.

        Example:

        >>> plain = keras_hub.models.BertBackbone(
        ...     vocabulary_size=100,
        ...     num_layers=2,
        ...     num_heads=2,
        ...     hidden_dim=16,
        ...     intermediate_dim=32,
        ... )
        >>> backbone = keras_pkm.models.PKMBertBackbone.from_backbone(
        ...     plain,
        ...     memory_layers=(1,),
        ...     memory={"num_sub_keys": 8, "top_k": 4, "key_dim": 8},
        ... )
        """
        config = backbone.get_config()
        for name in ("name", "trainable", "dtype"):
            config.pop(name)
        config.update(
            memory_layers=memory_layers,
            memory_block=memory_block,
            memory=memory,
            dtype=dtype or backbone.dtype_policy,
            **kwargs,
        )
        with_memory = cls(**config)
        logger.info("%s", copy_matching_weights(backbone, with_memory))
        return with_memory

    @classmethod
    def from_preset(cls, preset, load_weights=True, **kwargs):
        """Loads a preset, of this class or of plain BERT.

        A plain BERT preset gets its memory here, by
        `keras_pkm.models.PKMBertBackbone.from_backbone`; so does a local
        Hugging Face directory (`config.json`, `model.safetensors`,
        `vocab.txt`), which needs the package `safetensors`.

        Args:
            preset: str. A local preset directory or any other name that
                `keras_hub.models.Backbone.from_preset` takes.
            load_weights: bool. Whether to load the weights, too. Defaults to
                `True`.
            **kwargs: arguments of the class. `memory_layers`, `memory_block`
                and `memory` are for plain presets only.

        Returns:
            A `keras_pkm.models.PKMBertBackbone`.
        """
        added = {
            name: kwargs.pop(name)
            for name in ("memory_layers", "memory_block", "memory")
            if name in kwargs
        }
        backbone = keras_hub.models.Backbone.from_preset(
            preset, load_weights=load_weights, **kwargs
        )
        if isinstance(backbone, keras_hub.models.BertBackbone):
            return cls.from_backbone(backbone, **{"memory_layers": (), **added})
        if not isinstance(backbone, cls):
            raise ValueError(
                f"Preset '{preset}' must hold a `{cls.__name__}` or a "
                f"`BertBackbone`. Received: a `{type(backbone).__name__}`. "
                "Call `from_preset` of that class."
            )
        if added:
            raise ValueError(
                f"`{'`, `'.join(added)}` can be given for plain presets only. "
                f"Preset '{preset}' has memory_layers="
                f"{backbone.memory_layers} already. Leave them out, or load "
                "it and call `from_backbone`."
            )
        return backbone

    def save_to_preset(self, preset_dir, max_shard_size=10):
        """Saves the backbone as a preset.

        The preset names the dtype of the weights, as float32, not a mixed
        policy that they were trained with: whoever loads it chooses, and
        keras-hub cannot load tasks from presets that name a mixed policy.

        Args:
            preset_dir: str. The directory to write.
            max_shard_size: int or float. Size of a weights file in GB above
                which it is split. Defaults to `10`.
        """
        super().save_to_preset(preset_dir, max_shard_size=max_shard_size)
        path = pathlib.Path(preset_dir) / "config.json"
        config = json.loads(path.read_text())
        config["config"]["dtype"] = keras.dtype_policies.serialize(
            keras.DTypePolicy(self.dtype_policy.variable_dtype)
        )
        path.write_text(json.dumps(config, indent=4))

    def get_config(self):
        config = super().get_config()
        config.update(
            {
                "vocabulary_size": self.vocabulary_size,
                "num_layers": self.num_layers,
                "num_heads": self.num_heads,
                "hidden_dim": self.hidden_dim,
                "intermediate_dim": self.intermediate_dim,
                "dropout": self.dropout,
                "max_sequence_length": self.max_sequence_length,
                "num_segments": self.num_segments,
                "memory_layers": list(self.memory_layers),
                "memory_block": self.memory_block,
                "memory": dict(self.memory),
            }
        )
        return config


def check_memory_layers(memory_layers, num_layers):
    """Returns `memory_layers` as a sorted tuple.

    Raises:
        ValueError: they are not different numbers from 1 to `num_layers`.
    """
    memory_layers = tuple(memory_layers)
    if any(
        number != int(number) or not 1 <= number <= num_layers
        for number in memory_layers
    ) or len(set(memory_layers)) < len(memory_layers):
        raise ValueError(
            "`memory_layers` must be different numbers from 1 to `num_layers`, "
            "counted from 1 as in the paper. Received: "
            f"memory_layers={memory_layers}, num_layers={num_layers}."
        )
    return tuple(sorted(int(number) for number in memory_layers))


def _initializer():
    return keras.initializers.TruncatedNormal(stddev=0.02)


@keras.saving.register_keras_serializable("keras_pkm", name="gelu_approximate")
def _gelu(x):
    """BERT's GELU is the tanh approximation."""
    return keras.activations.gelu(x, approximate=True)
