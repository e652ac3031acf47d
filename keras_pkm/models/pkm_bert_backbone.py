"""BERT with product-key memory layers."""

from collections.abc import Iterable
from typing import Any

import keras
import keras_hub

from keras_pkm.layers.make_memory import MemoryTemplate
from keras_pkm.models.pkm_backbone import PKMBackbone
from keras_pkm.models.pkm_backbone import initializer
from keras_pkm.ops.arguments import positive_int


@keras.saving.register_keras_serializable("keras_pkm")
class PKMBertBackbone(PKMBackbone):
    """A BERT encoder with a product-key memory in some of its layers.

    It has the layers, inputs and outputs of `keras_hub.models.BertBackbone`,
    and equals it without memory. `keras_hub.models.BertMaskedLM` and
    `BertTextClassifier` accept it in the place of that class, and
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
        activation: `"gelu_approximate"`, by tanh as in Google's BERT, or
            `"gelu"`, exact as in Hugging Face's checkpoints. Defaults to
            `"gelu_approximate"`.
        layer_norm_epsilon: optional float. The epsilon of all layer norms.
            Defaults to that of the original model: `1e-12`, or `1e-5` for
            RoBERTa.
        num_segments: int. Number of segment types. Defaults to `2`.
        memory_layers: tuple of int. The encoder layers with a memory, counted
            from 1 as in the paper, which uses `(4, 8)` of 12 layers and
            `(2, 4)` of 6. Defaults to none.
        memory_block: `"resm"` to add the memory beside the feed-forward
            network, `"pkm"` to replace the network by the memory, `"ffn"` for
            no memory at all. Defaults to `"resm"`.
        memory: optional. A `keras_pkm.layers.Memory`, of which each layer gets
            a copy with weights of its own; the config of one; or a dict of
            arguments of `keras_pkm.layers.ProductKeyMemory`. Defaults to that
            layer's defaults, the paper's sizes.
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

    To see which slots a memory reads:

    >>> probe = keras.Model(backbone.inputs, backbone.memory_outputs[4])
    >>> slots, weights = probe(inputs)
    >>> slots.shape
    TensorShape([2, 12, 4, 8])

    References:

    - [Kim and Jung, 2020](https://arxiv.org/abs/2010.03881)
    - [Devlin et al., 2018](https://arxiv.org/abs/1810.04805)
    """

    plain_cls = keras_hub.models.BertBackbone
    hugging_face_family = "bert"
    input_names = ("token_ids", "segment_ids", "padding_mask")
    default_activation = "gelu_approximate"
    cls_token_index = 0

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
        num_segments: int = 2,
        memory_layers: Iterable[int] = (),
        memory_block: str = "resm",
        memory: MemoryTemplate = None,
        dtype: str | keras.DTypePolicy | None = None,
        **kwargs: Any,
    ):
        self.num_segments = positive_int("num_segments", num_segments)
        super().__init__(
            vocabulary_size=vocabulary_size,
            num_layers=num_layers,
            num_heads=num_heads,
            hidden_dim=hidden_dim,
            intermediate_dim=intermediate_dim,
            dropout=dropout,
            max_sequence_length=max_sequence_length,
            activation=activation,
            layer_norm_epsilon=layer_norm_epsilon,
            memory_layers=memory_layers,
            memory_block=memory_block,
            memory=memory,
            dtype=dtype,
            **kwargs,
        )

    def _embed(
        self,
        inputs: dict[str, keras.KerasTensor],
        dtype: str | keras.DTypePolicy | None,
    ) -> keras.KerasTensor:
        self.token_embedding = keras.layers.ReversibleEmbedding(
            self.vocabulary_size,
            self.hidden_dim,
            embeddings_initializer=initializer(),
            dtype=dtype,
            name="token_embedding",
        )
        self.position_embedding = keras_hub.layers.PositionEmbedding(
            self.max_sequence_length,
            initializer=initializer(),
            dtype=dtype,
            name="position_embedding",
        )
        self.segment_embedding = keras.layers.Embedding(
            self.num_segments,
            self.hidden_dim,
            embeddings_initializer=initializer(),
            dtype=dtype,
            name="segment_embedding",
        )
        self.embeddings_add = keras.layers.Add(
            dtype=dtype, name="embeddings_add"
        )
        tokens = self.token_embedding(inputs["token_ids"])
        positions = self.position_embedding(tokens)
        segments = self.segment_embedding(inputs["segment_ids"])
        x = self.embeddings_add((tokens, positions, segments))
        return self._normalize_embeddings(x, dtype)

    def _finish(
        self,
        sequence_output: keras.KerasTensor,
        dtype: str | keras.DTypePolicy | None,
    ) -> dict[str, keras.KerasTensor]:
        self.pooled_dense = keras.layers.Dense(
            self.hidden_dim,
            activation="tanh",
            kernel_initializer=initializer(),
            dtype=dtype,
            name="pooled_dense",
        )
        return {
            "sequence_output": sequence_output,
            "pooled_output": self.pooled_dense(sequence_output[:, 0, :]),
        }

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config["num_segments"] = self.num_segments
        return config
