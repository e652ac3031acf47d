"""Activations of the feed-forward networks, by name."""

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("keras_pkm", name="gelu_approximate")
def _gelu_approximate(x: tf.Tensor) -> tf.Tensor:
    """The tanh approximation, which Google's BERT uses."""
    return keras.activations.gelu(x, approximate=True)


#: Activations of the feed-forward networks.
ACTIVATIONS = {
    "gelu": keras.activations.gelu,
    "gelu_approximate": _gelu_approximate,
}
