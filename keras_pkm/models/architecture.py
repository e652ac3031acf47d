"""What a checkpoint may compute differently from KerasHub's class.

KerasHub's encoders have a fixed activation and a fixed epsilon. Checkpoints of
transformers may need others.
"""

import keras
import keras_hub

from keras_pkm.ops.arguments import finite
from keras_pkm.ops.arguments import one_of
from keras_pkm.ops.tensors import Tensor


@keras.saving.register_keras_serializable("keras_pkm", name="gelu_approximate")
def _gelu_approximate(x: Tensor) -> Tensor:
    """The tanh approximation, which Google's BERT uses."""
    return keras.activations.gelu(x, approximate=True)


_ACTIVATIONS = {
    "gelu": keras.activations.gelu,
    "gelu_approximate": _gelu_approximate,
}


def set_activation(backbone: keras_hub.models.Backbone, name: str) -> None:
    """Sets the activation of the feed-forward networks of an encoder.

    Raises:
        ValueError: there is no activation of that name, or the backbone has
            blocks of another class than `keras_hub.layers.TransformerEncoder`.
    """
    one_of("feedforward_activation", name, tuple(_ACTIVATIONS))
    for block in backbone.transformer_layers:
        if not isinstance(block, keras_hub.layers.TransformerEncoder):
            raise ValueError(
                "`feedforward_activation` needs blocks of the class "
                "`keras_hub.layers.TransformerEncoder`, such as those of BERT. "
                f"Received: '{block.name}', a `{type(block).__name__}`. Leave "
                "it out."
            )
        block.activation = _ACTIVATIONS[name]
        block._feedforward_intermediate_dense.activation = _ACTIVATIONS[name]


def set_epsilon(layer: keras.layers.Layer, epsilon: float) -> float:
    """Sets the epsilon of all layer normalizations in a layer; returns it.

    Raises:
        ValueError: it is no finite number of at least 0.
    """
    epsilon = finite("normalization_epsilon", epsilon, least=0)
    for each in layer._flatten_layers():
        if isinstance(each, keras.layers.LayerNormalization):
            each.epsilon = epsilon
        if isinstance(each, keras_hub.layers.TransformerEncoder):
            # Its config has the epsilon of its parts.
            each.layer_norm_epsilon = epsilon
    return epsilon
