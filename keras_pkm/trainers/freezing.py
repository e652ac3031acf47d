"""Freezes parts of memories, or everything but their values."""

from collections.abc import Iterable

import keras

from keras_pkm.layers.memories import memories_for
from keras_pkm.layers.memories import tables


def freeze_memory(
    model: keras.Model, parts: Iterable[str] | None = None
) -> None:
    """Freezes some parts of all memories of a model; the others are trained.

    Call it before `compile`, and again after a model has been loaded: files of
    models do not say which parts are frozen. Table 5 of the paper has results
    with frozen values.

    Args:
        model: any Keras model with memories, such as a
            `keras_pkm.models.MemoryBackbone`; it must be built.
        parts: tuple of str. The parts to freeze, as the memory's method `parts`
            names them. A `keras_pkm.layers.ProductKeyMemory` has `"values"`,
            the table; `"keys"`, the sub-keys; `"queries"`, the projection and
            normalization of the queries; and `"output"`, the gate and the
            layers that project the values to the width of the model, if any. A
            frozen batch norm uses its moving statistics in training, too.
            Defaults to all parts.

    Example:

    >>> plain = keras_hub.models.BertBackbone(
    ...     vocabulary_size=100,
    ...     num_layers=2,
    ...     num_heads=2,
    ...     hidden_dim=16,
    ...     intermediate_dim=32,
    ... )
    >>> backbone = keras_pkm.models.add_memory(
    ...     plain,
    ...     memory_layers=(1,),
    ...     memory={"num_sub_keys": 8, "top_k": 4, "key_dim": 8},
    ...     memory_block="resm",
    ... )
    >>> keras_pkm.models.freeze_memory(backbone, ("values", "keys"))
    >>> memory = backbone.transformer_layers[0].memory
    >>> memory.table.trainable_weights
    []

    References:

    - [Kim and Jung, 2020](https://arxiv.org/abs/2010.03881),
      table 5.
    """
    found = memories_for(model, "to freeze")
    tables(model)  # which must be built
    all_parts = [
        (name, part)
        for memory in found.values()
        for name, members in memory.parts().items()
        for part in members
    ]
    known = dict.fromkeys(name for name, _ in all_parts)
    frozen = set(known if parts is None else parts)
    if unknown := frozen - set(known):
        raise ValueError(
            f"`parts` must be among {', '.join(map(repr, known))}. Received: "
            f"{', '.join(map(repr, sorted(unknown)))}."
        )
    for name, part in all_parts:
        part.trainable = name not in frozen
    _forget_steps(model)


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
        model: any Keras model with memories, such as a task of
            `keras_pkm.models`; it must be built.

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
    ['values']

    References:

    - [Lin et al., 2025](https://arxiv.org/abs/2510.15103), who train only
      values, too.
    """
    memories_for(model, "to train")
    found = tables(model).values()
    kept = {id(table) for table in found}
    values = {id(table.values) for table in found}
    # Each layer separately, from the top down: Keras skips an assignment that
    # changes nothing, and does not pass it on to the layers below.
    for layer in model._flatten_layers():
        below = {id(part) for part in layer._flatten_layers()}
        layer.trainable = bool(below & kept)
    for variable in model.variables:
        variable.trainable = id(variable) in values
    _forget_steps(model)


def _forget_steps(model: keras.Model) -> None:
    """Makes the next `fit` of a compiled model trace its step again.

    Keras looks at layers to see whether that is needed, not at variables.
    """
    if getattr(model, "train_function", None) is not None:
        model.train_function = None


def freeze_pooler(backbone: keras.Model) -> None:
    """Freezes BERT's pooler, which gets no gradient from losses over tokens.

    Other backbones have no pooler. Call it before `compile`.
    """
    if hasattr(backbone, "pooled_dense"):
        backbone.pooled_dense.trainable = False
