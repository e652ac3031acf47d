"""Freezes parts of memories, or everything but their values."""

import keras

from keras_pkm.layers.find_memories import find_memories
from keras_pkm.layers.product_key_memory import ProductKeyMemory

PARTS = ("values", "keys", "queries")


def freeze_memory(model: keras.Model, parts: tuple[str, ...] = PARTS) -> None:
    """Freezes some parts of all memories of a model; the others are trained.

    Call it before `compile`. Table 5 of the paper has results with frozen
    values. A model without trainable values needs
    `PKMAdam(memory_pattern=None)`.

    Args:
        model: any Keras model with `keras_pkm.layers.ProductKeyMemory`
            layers, such as `keras_pkm.models.PKMBertBackbone`; it must be
            built.
        parts: tuple of str. The parts to freeze: `"values"`, the table;
            `"keys"`, the sub-keys; `"queries"`, projection and normalization
            of the queries. A frozen batch norm uses its moving statistics in
            training, too. Defaults to all three.

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
            f"`parts` must be among {', '.join(map(repr, PARTS))}. Received: "
            f"parts={tuple(parts)!r}, with {', '.join(map(repr, unknown))}."
        )
    for memory in _built_memories(model):
        memory.memory_values.trainable = "values" not in parts
        memory.sub_keys.trainable = "keys" not in parts
        memory.query_projection.trainable = "queries" not in parts
        if memory.query_normalization is not None:
            memory.query_normalization.trainable = "queries" not in parts


def freeze_except_memory(model: keras.Model) -> None:
    """Freezes everything but the values of all memories of a model.

    Training then changes the tables alone, and with
    `keras_pkm.optimizers.PKMAdam` only the rows that a batch reads. This
    teaches a trained model new facts, while it keeps most of what it knows.
    Call it before `compile`. To make everything trainable again, set
    `model.trainable = False`, then `model.trainable = True`.

    All batch norms, including those of the queries, then use their moving
    statistics in training, too, so that the same text reads the same slots.
    Dropout is unchanged.

    Args:
        model: any Keras model with `keras_pkm.layers.ProductKeyMemory`
            layers, such as a task of `keras_pkm.models`; it must be built.

    Example:

    >>> model = keras.Sequential(
    ...     [
    ...         keras.Input((16,)),
    ...         keras.layers.Dense(16),
    ...         keras_pkm.layers.ProductKeyMemory(8, top_k=4, key_dim=8),
    ...     ]
    ... )
    >>> keras_pkm.models.freeze_except_memory(model)
    >>> [variable.name for variable in model.trainable_variables]
    ['memory_values']

    References:

    - [Lin et al., 2025](https://arxiv.org/abs/2510.15103), who train only
      values, too.
    """
    memories = _built_memories(model)
    values = {id(memory.memory_values) for memory in memories}
    kept = {id(memory) for memory in memories}
    # Each layer separately, from the top down: Keras skips an assignment that
    # changes nothing, and does not pass it on to the layers below.
    for layer in model._flatten_layers():
        below = {id(part) for part in layer._flatten_layers()}
        layer.trainable = bool(below & kept)
    for variable in model.variables:
        variable.trainable = id(variable) in values


def _built_memories(model: keras.Model) -> list[ProductKeyMemory]:
    """Returns the memories of a model, which must have some, all built."""
    memories = find_memories(model)
    if not memories:
        raise ValueError(
            "`model` must have a memory. Received: a "
            f"`{type(model).__name__}` without one."
        )
    for memory in memories.values():
        if not memory.built:
            raise ValueError(
                f"`model` must be built before '{memory.name}' is frozen. Call "
                "it, or `model.build(input_shape)`."
            )
    return list(memories.values())


def freeze_pooler(backbone: keras.Model) -> None:
    """Freezes BERT's pooler, which gets no gradient from losses over tokens.

    Other backbones have no pooler. Call it before `compile`.
    """
    if hasattr(backbone, "pooled_dense"):
        backbone.pooled_dense.trainable = False
