"""The base class of backbones with product-key memory layers."""

from collections.abc import Iterable
from typing import Any

import keras
import keras_hub

from keras_pkm.layers.make_memory import MemoryTemplate
from keras_pkm.layers.make_memory import memory_config
from keras_pkm.layers.memory_layers import check_memory_layers
from keras_pkm.layers.pkm_transformer_encoder import BLOCKS
from keras_pkm.layers.pkm_transformer_encoder import PKMTransformerEncoder
from keras_pkm.models.activations import ACTIVATIONS
from keras_pkm.models.backbone_loading import BackboneLoading
from keras_pkm.ops.arguments import finite_or_none
from keras_pkm.ops.arguments import fraction
from keras_pkm.ops.arguments import positive_int


class PKMBackbone(BackboneLoading):
    """Base of Transformer encoders with a memory in some layers.

    A subclass names its plain counterpart in keras-hub, and embeds the tokens
    with layers of the same names. Without memory it equals its counterpart.

    Args: those of `keras_pkm.models.PKMBertBackbone`, without `num_segments`.

    Attributes:
        plain_cls: The backbone of keras-hub without memory.
        hugging_face_family: The `model_type` of transformers.
        input_names: The names of its inputs.
        default_activation: The name of the default activation.
        default_layer_norm_epsilon: float, the default epsilon of layer norms.
        embeddings_name: The name of the layer of token and position
            embeddings.
    """

    plain_cls: type[keras_hub.models.Backbone]
    hugging_face_family: str
    input_names: tuple[str, ...] = ("token_ids", "padding_mask")
    default_activation = "gelu"
    default_layer_norm_epsilon = 1e-12
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
        layer_norm_epsilon: float | None = None,
        memory_layers: Iterable[int] = (),
        memory_block: str = "resm",
        memory: MemoryTemplate = None,
        dtype: str | keras.DTypePolicy | None = None,
        **kwargs: Any,
    ):
        activation = activation or self.default_activation
        num_layers = positive_int("num_layers", num_layers)
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
        self.vocabulary_size = positive_int("vocabulary_size", vocabulary_size)
        self.num_layers = num_layers
        self.num_heads = positive_int("num_heads", num_heads)
        self.hidden_dim = positive_int("hidden_dim", hidden_dim)
        self.intermediate_dim = positive_int(
            "intermediate_dim", intermediate_dim
        )
        self.dropout = fraction("dropout", dropout)
        self.max_sequence_length = positive_int(
            "max_sequence_length", max_sequence_length
        )
        self.activation = activation
        self.layer_norm_epsilon = (
            finite_or_none("layer_norm_epsilon", layer_norm_epsilon, least=0)
            or self.default_layer_norm_epsilon
        )
        self.memory_layers = memory_layers
        self.memory_block = memory_block
        self.memory = memory_config(memory)

        # === Functional Model ===
        inputs = {
            name: keras.Input((None,), dtype="int32", name=name)
            for name in self.input_names
        }
        x = self._embed(inputs, dtype)
        self.transformer_layers = [
            PKMTransformerEncoder(
                intermediate_dim=self.intermediate_dim,
                num_heads=self.num_heads,
                block=memory_block if i + 1 in memory_layers else "ffn",
                memory=memory,
                dropout=self.dropout,
                activation=ACTIVATIONS[activation],
                layer_norm_epsilon=self.layer_norm_epsilon,
                kernel_initializer=initializer(),
                dtype=dtype,
                name=f"transformer_layer_{i}",
            )
            for i in range(num_layers)
        ]
        for layer in self.transformer_layers:
            has_memory = layer.memory is not None
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
        """Makes the layers below the encoder, and returns their output.

        Args:
            inputs: dict of symbolic inputs, of shape `(batch, length)`.
            dtype: the dtype of the layers.

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
        """Returns the model's outputs, given that of the last encoder layer."""
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
        `backbone.output`; make it the output of a `keras.Model` to get values.
        """
        outputs = {}
        for number, layer in enumerate(self.transformer_layers, start=1):
            if layer.memory is not None:
                _, slots, weights = layer.output
                outputs[number] = (slots, weights)
        return outputs

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
                "layer_norm_epsilon": self.layer_norm_epsilon,
                "memory_layers": list(self.memory_layers),
                "memory_block": self.memory_block,
                "memory": dict(self.memory),
            }
        )
        return config


def initializer() -> keras.initializers.Initializer:
    """Returns a new copy of BERT's initializer of kernels and embeddings."""
    return keras.initializers.TruncatedNormal(stddev=0.02)
