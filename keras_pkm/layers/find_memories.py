"""Finds the memories of any model."""

import keras

from keras_pkm.layers.product_key_memory import ProductKeyMemory


def find_memories(model: keras.Model) -> dict[int, ProductKeyMemory]:
    """Returns the memories of a model by number, the lowest first.

    Args:
        model: Any Keras model or layer.

    Returns:
        A dict. In backbones of `keras_pkm.models`, and in tasks around them,
        the key is the number of the encoder layer, counted from 1. In all
        other models the memories themselves are counted from 1, in the order
        of the model's layers.
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
