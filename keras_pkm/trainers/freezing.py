"""Keeps parts of memories as they are while the rest is trained."""

import keras

from keras_pkm.layers.find_memories import find_memories

PARTS = ("values", "keys", "queries")


def freeze_memory(model: keras.Model, parts: tuple[str, ...] = PARTS) -> None:
    """Freezes parts of all memories of a model, and trains all others.

    Call it before `compile`. Freezing the values is what table 5 of the paper
    compares with; a model without trainable values needs
    `PKMAdam(memory_pattern=None)`.

    Args:
        model: any Keras model with `keras_pkm.layers.ProductKeyMemory`
            layers, such as `keras_pkm.models.PKMBertBackbone`; it must be
            built.
        parts: tuple of str, of `"values"`, the table; `"keys"`, the sub-keys;
            `"queries"`, projection and normalization of the queries. A frozen
            batch norm uses its moving statistics in training, too. Defaults to
            all of them.

    Example:

    >>> backbone = keras_pkm.models.PKMBertBackbone(
    ...     vocabulary_size=100,
    ...     num_layers=2,
    ...     num_heads=2,
    ...     hidden_dim=16,
    ...     intermediate_dim=32,
    ...     memory_layers=(1,),
    ...     memory={"num_sub_keys": 8, "top_k": 4, "key_dim": 8},
    ... )
    >>> keras_pkm.models.freeze_memory(backbone, ("values", "keys"))
    >>> memory = backbone.transformer_layers[0].product_key_memory
    >>> [weight.name for weight in memory.non_trainable_weights][:2]
    ['sub_keys', 'memory_values']

    References:

    - [Kim and Jung, 2020](https://arxiv.org/abs/2010.03881),
      table 5.
    """
    if unknown := [part for part in parts if part not in PARTS]:
        raise ValueError(
            f"`parts` must be of {', '.join(map(repr, PARTS))}. Received: "
            f"parts={tuple(parts)!r}, with {', '.join(map(repr, unknown))}."
        )
    memories = find_memories(model)
    if not memories:
        raise ValueError(
            "`model` must have a memory to freeze. Received: a "
            f"`{type(model).__name__}` without one."
        )
    for memory in memories.values():
        if not memory.built:
            raise ValueError(
                f"`model` must be built before '{memory.name}' is frozen. Call "
                "it, or `model.build(input_shape)`."
            )
        memory.memory_values.trainable = "values" not in parts
        memory.sub_keys.trainable = "keys" not in parts
        memory.query_projection.trainable = "queries" not in parts
        if memory.query_normalization is not None:
            memory.query_normalization.trainable = "queries" not in parts


def freeze_pooler(backbone: keras.Model) -> None:
    """Freezes BERT's pooler, which losses over tokens have no gradient for.

    Other backbones have none. Call it before `compile`.
    """
    if hasattr(backbone, "pooled_dense"):
        backbone.pooled_dense.trainable = False
