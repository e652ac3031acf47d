"""Finds the memories of any model."""

import keras

from keras_pkm.layers.product_key_memory import ProductKeyMemory


def find_memories(model: keras.Model) -> dict[int, ProductKeyMemory]:
    """Returns the memories of a model by number, from the lowest on.

    Args:
        model: Any Keras model, or layer.

    Returns:
        A dict. In backbones of `keras_pkm.models`, and tasks around them, the
        numbers are those of the encoder layers, counted from 1; in all other
        models memories are counted from 1 as they were made.
    """
    backbone = getattr(model, "backbone", model)
    layers = getattr(backbone, "transformer_layers", ())
    found = {
        number: layer.product_key_memory
        for number, layer in enumerate(layers, 1)
        if getattr(layer, "product_key_memory", None) is not None
    }
    if found:
        return found
    memories = [
        layer
        for layer in model._flatten_layers()
        if isinstance(layer, ProductKeyMemory)
    ]
    return dict(enumerate(dict.fromkeys(memories), 1))
