"""What backbones with product-key memory layers have in common."""

import json
import logging
import pathlib
from collections.abc import Iterable
from typing import Any
from typing import Self

import keras
import keras_hub
import tensorflow as tf

from keras_pkm.layers.pkm_transformer_encoder import BLOCKS
from keras_pkm.layers.pkm_transformer_encoder import PKMTransformerEncoder
from keras_pkm.models.checkpoint_readers import open_checkpoint
from keras_pkm.models.memory_layers import check_memory_layers
from keras_pkm.models.warm_start import copy_matching_weights

logger = logging.getLogger(__name__)


@keras.saving.register_keras_serializable("keras_pkm", name="gelu_approximate")
def _gelu_approximate(x: tf.Tensor) -> tf.Tensor:
    """The tanh approximation, that of Google's BERT."""
    return keras.activations.gelu(x, approximate=True)


#: Activations of the feed-forward networks.
ACTIVATIONS = {
    "gelu": keras.activations.gelu,
    "gelu_approximate": _gelu_approximate,
}


class PKMBackbone(keras_hub.models.Backbone):
    """Base of Transformer encoders of which some layers have a memory.

    A subclass names its plain counterpart of keras-hub and embeds the tokens
    with layers of that one's names. Where there is no memory it equals it.

    Args: those of `keras_pkm.models.PKMBertBackbone`, without `num_segments`.

    Attributes:
        plain_cls: The backbone of keras-hub without memory.
        hugging_face_family: The `model_type` of transformers.
        input_names: The names of its inputs.
        default_activation: The name of its activation.
        layer_norm_epsilon: float, that of its layer norms.
        embeddings_name: The name of the layer of both embeddings.
    """

    plain_cls: type[keras_hub.models.Backbone]
    hugging_face_family: str
    input_names: tuple[str, ...] = ("token_ids", "padding_mask")
    default_activation = "gelu"
    layer_norm_epsilon = 1e-12
    embeddings_name: str | None = None

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        intermediate_dim: int,
        dropout: float = 0.1,
        max_sequence_length: int = 512,
        activation: str | None = None,
        memory_layers: Iterable[int] = (),
        memory_block: str = "resm",
        memory: dict[str, Any] | None = None,
        dtype: str | keras.DTypePolicy | None = None,
        **kwargs: Any,
    ):
        activation = activation or self.default_activation
        memory_layers = check_memory_layers(memory_layers, num_layers)
        for argument, value, known in (
            ("memory_block", memory_block, BLOCKS),
            ("activation", activation, ACTIVATIONS),
        ):
            if value not in known:
                raise ValueError(
                    f"`{argument}` must be one of "
                    f"{', '.join(map(repr, known))}. "
                    f"Received: {argument}={value!r}."
                )

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        self.max_sequence_length = max_sequence_length
        self.activation = activation
        self.memory_layers = memory_layers
        self.memory_block = memory_block
        self.memory = dict(memory or {})

        # === Functional Model ===
        inputs = {
            name: keras.Input((None,), dtype="int32", name=name)
            for name in self.input_names
        }
        x = self._embed(inputs, dtype)
        self.transformer_layers = [
            PKMTransformerEncoder(
                intermediate_dim=intermediate_dim,
                num_heads=num_heads,
                block=memory_block if i + 1 in memory_layers else "ffn",
                memory=memory,
                dropout=dropout,
                activation=ACTIVATIONS[activation],
                layer_norm_epsilon=self.layer_norm_epsilon,
                kernel_initializer=initializer(),
                dtype=dtype,
                name=f"transformer_layer_{i}",
            )
            for i in range(num_layers)
        ]
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
            outputs=self._finish(x, dtype),
            dtype=dtype,
            **kwargs,
        )

    def _embed(
        self,
        inputs: dict[str, keras.KerasTensor],
        dtype: str | keras.DTypePolicy | None,
    ) -> keras.KerasTensor:
        """Makes the layers below the encoder; returns their output.

        Args:
            inputs: dict of symbolic inputs, of shape `(batch, length)`.
            dtype: that of the layers.

        Returns:
            The symbolic embeddings, of shape `(batch, length, hidden_dim)`.
        """
        self.embeddings = keras_hub.layers.TokenAndPositionEmbedding(
            vocabulary_size=self.vocabulary_size,
            sequence_length=self.max_sequence_length,
            embedding_dim=self.hidden_dim,
            embeddings_initializer=initializer(),
            dtype=dtype,
            name=self.embeddings_name,
        )
        self.token_embedding = self.embeddings.token_embedding
        x = self.embeddings(inputs["token_ids"])
        return self._normalize_embeddings(x, dtype)

    def _finish(
        self,
        sequence_output: keras.KerasTensor,
        dtype: str | keras.DTypePolicy | None,
    ) -> keras.KerasTensor | dict[str, keras.KerasTensor]:
        """The model's outputs, made of the last encoder layer's."""
        del dtype
        return sequence_output

    def _normalize_embeddings(
        self, x: keras.KerasTensor, dtype: str | keras.DTypePolicy | None
    ) -> keras.KerasTensor:
        self.embeddings_layer_norm = keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon,
            dtype=dtype,
            name="embeddings_layer_norm",
        )
        self.embeddings_dropout = keras.layers.Dropout(
            self.dropout, dtype=dtype, name="embeddings_dropout"
        )
        return self.embeddings_dropout(self.embeddings_layer_norm(x))

    @property
    def memory_outputs(
        self,
    ) -> dict[int, tuple[keras.KerasTensor, keras.KerasTensor]]:
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
        backbone: keras_hub.models.Backbone,
        memory_layers: Iterable[int],
        memory_block: str = "resm",
        memory: dict[str, Any] | None = None,
        dtype: str | keras.DTypePolicy | None = None,
        **kwargs: Any,
    ) -> Self:
        """Adds memory to a plain model: the paper's "+Init".

        The weights of `backbone` are copied, the memories are initialized
        afresh, and with `memory_block="pkm"` the feed-forward networks that
        the memories replace are left over. What became of each weight is
        logged.

        Args:
            backbone: its plain counterpart, such as
                `keras_hub.models.BertBackbone`, or a backbone of this class.
            memory_layers: tuple of int, see the class.
            memory_block: str, see the class. Defaults to `"resm"`.
            memory: optional dict, see the class.
            dtype: optional dtype policy. Defaults to that of `backbone`.
            **kwargs: arguments of the class that shall differ from
                `backbone`'s, such as `dropout` and `name`.

        Returns:
            A backbone of this class.

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
    def from_preset(
        cls, preset: str, load_weights: bool = True, **kwargs: Any
    ) -> Self:
        """Loads a preset, of this class or of its plain counterpart.

        A plain preset gets its memory here, by `from_backbone`; so does a
        local Hugging Face directory (`config.json`, `model.safetensors`,
        `vocab.txt`), which needs the package `safetensors`.

        Args:
            preset: str. A local preset directory or any other name that
                `keras_hub.models.Backbone.from_preset` takes.
            load_weights: bool. Whether to load the weights, too. Defaults to
                `True`.
            **kwargs: arguments of the class. `memory_layers`, `memory_block`
                and `memory` are for plain presets only.

        Returns:
            A backbone of this class.
        """
        reader = open_checkpoint(preset, cls.hugging_face_family)
        if reader is not None:
            backbone = cls(**{**reader.backbone_config(), **kwargs})
            if load_weights:
                # Models with another head than BERT's first lack the pooler.
                reader.load_weights(backbone, optional=("pooled_dense/",))
            return backbone
        added = {
            name: kwargs.pop(name)
            for name in ("memory_layers", "memory_block", "memory")
            if name in kwargs
        }
        backbone = keras_hub.models.Backbone.from_preset(
            preset, load_weights=load_weights, **kwargs
        )
        if isinstance(backbone, cls.plain_cls):
            return cls.from_backbone(backbone, **{"memory_layers": (), **added})
        if not isinstance(backbone, cls):
            raise ValueError(
                f"Preset '{preset}' must hold a `{cls.__name__}` or a "
                f"`{cls.plain_cls.__name__}`. "
                f"Received: a `{type(backbone).__name__}`. "
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

    def save_to_preset(
        self, preset_dir: str, max_shard_size: float = 10
    ) -> None:
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

    def get_config(self) -> dict[str, Any]:
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
                "activation": self.activation,
                "memory_layers": list(self.memory_layers),
                "memory_block": self.memory_block,
                "memory": dict(self.memory),
            }
        )
        return config


def initializer() -> keras.initializers.Initializer:
    """A fresh initializer of kernels and embeddings, BERT's."""
    return keras.initializers.TruncatedNormal(stddev=0.02)
