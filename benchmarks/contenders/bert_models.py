"""BERT with and without memory, and its inputs, on any backend."""

import math
from typing import Literal
from typing import TypeAlias

import keras
import keras_hub
import numpy as np

import keras_pkm
from benchmarks.contenders.sizes import BertSizes

Block: TypeAlias = Literal["ffn", "pkm", "resm"]


def make_masked_lm(sizes: BertSizes, block: Block, length: int) -> keras.Model:
    """A masked language model whose pooler is not trained."""
    backbone = make_backbone(sizes, block, length)
    # Not used by the masked-LM loss; Keras would warn about it.
    backbone.pooled_dense.trainable = False
    return keras_pkm.models.MemoryBertMaskedLM(backbone)


def make_examples(
    sizes: BertSizes, batch: int, length: int
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Inputs, labels and weights, 15 % of the tokens masked."""
    rng = np.random.default_rng(1)
    shape = (batch, max(1, round(0.15 * length)))
    features = {
        **make_tokens(sizes, batch, length),
        "mask_positions": rng.integers(0, length, shape).astype("int32"),
    }
    labels = rng.integers(0, sizes.vocabulary_size, shape).astype("int32")
    return features, labels, np.ones(shape, "float32")


def make_backbone(
    sizes: BertSizes, block: Block, length: int, least: int = 512
) -> keras.Model:
    """The encoder for at least so many tokens, plain or with memories."""
    plain = keras_hub.models.BertBackbone(
        vocabulary_size=sizes.vocabulary_size,
        num_layers=sizes.num_layers,
        num_heads=sizes.num_heads,
        hidden_dim=sizes.hidden_dim,
        intermediate_dim=sizes.intermediate_dim,
        max_sequence_length=max(least, length),
    )
    return keras_pkm.models.add_memory(
        plain,
        memory_layers=sizes.memory_layers,
        memory_block=block,
        memory={
            "num_sub_keys": sizes.num_sub_keys,
            "num_heads": sizes.memory_heads,
            "top_k": sizes.top_k,
            "key_dim": sizes.key_dim,
            "values_initializer": "random_normal",
        },
    )


def make_tokens(
    sizes: BertSizes, batch: int, length: int
) -> dict[str, np.ndarray]:
    """Inputs of the encoder, without padding."""
    rng = np.random.default_rng(0)
    shape = (batch, length)
    return {
        "token_ids": rng.integers(0, sizes.vocabulary_size, shape, "int32"),
        "segment_ids": np.zeros(shape, "int32"),
        "padding_mask": np.ones(shape, "int32"),
    }


def count_parameters(model: keras.Model) -> int:
    """The number of trainable parameters."""
    return sum(math.prod(v.shape) for v in model.trainable_variables)
