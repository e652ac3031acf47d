"""Finds the memories and the tables of any model."""

import keras

from keras_pkm.layers.memory import Memory
from keras_pkm.layers.value_table import ValueTable


def memories(model: keras.layers.Layer) -> dict[int, Memory]:
    """Returns the memories of a model by number, the lowest first.

    Args:
        model: Any Keras model or layer.

    Returns:
        A dict. A memory in a Transformer block of the model, or of its
        `backbone`, has the number of the block, counted from 1. If several
        blocks share it, it has the number of the first. All other memories
        follow in the order of the model's layers. In a model without such
        blocks the memories themselves are counted from 1.

    Example:

    >>> model = keras.Sequential(
    ...     [
    ...         keras.Input((16,)),
    ...         keras_pkm.layers.ProductKeyMemory(8, top_k=4, key_dim=8),
    ...     ]
    ... )
    >>> memory = keras_pkm.models.memories(model)[1]
    >>> memory.num_slots
    64
    """
    backbone = getattr(model, "backbone", model)
    blocks = getattr(backbone, "transformer_layers", None) or ()
    found: dict[int, Memory] = {}
    for number, block in enumerate(blocks, 1):
        if isinstance(block, keras.layers.Layer):
            for memory in _memories_below(block)[:1]:
                # One that several blocks share has the number of the first.
                if memory not in found.values():
                    found[number] = memory
    known = {id(memory) for memory in found.values()}
    others = [each for each in _memories_below(model) if id(each) not in known]
    first = len(blocks) + 1 if found else 1
    return {**found, **dict(enumerate(others, first))}


def memories_for(model: keras.Model, purpose: str) -> dict[int, Memory]:
    """Returns the memories of a model, which must have some.

    Args:
        model: Any Keras model.
        purpose: What they are needed for, for the error.
    """
    found = memories(model)
    if not found:
        raise ValueError(
            f"`model` must have a memory {purpose}. Received: a "
            f"`{type(model).__name__}` without one."
        )
    return found


def tables(model: keras.layers.Layer) -> dict[int, ValueTable]:
    """Returns the value tables of a model, each of them once.

    Args:
        model: Any Keras model or layer, whose memories are built.

    Returns:
        A dict. The key is the lowest number of a memory that reads the table,
        see `memories`.

    Raises:
        ValueError: a memory is not built.

    Example:

    >>> model = keras.Sequential(
    ...     [
    ...         keras.Input((16,)),
    ...         keras_pkm.layers.ProductKeyMemory(8, top_k=4, key_dim=8),
    ...     ]
    ... )
    >>> table = keras_pkm.models.tables(model)[1]
    >>> tuple(table.values.shape)
    (64, 16)
    """
    found: dict[int, ValueTable] = {}
    known = set()
    for number, memory in memories(model).items():
        if not memory.built:
            raise ValueError(
                f"`model` must be built, so that its memory '{memory.name}' "
                "has values. Call it, or `model.build(input_shape)`. "
                f"Received: a `{type(model).__name__}` that is not."
            )
        if id(memory.table) not in known:
            known.add(id(memory.table))
            found[number] = memory.table
    return found


def _memories_below(layer: keras.layers.Layer) -> list[Memory]:
    layers = layer._flatten_layers()
    found = (each for each in layers if isinstance(each, Memory))
    return list(dict.fromkeys(found))
