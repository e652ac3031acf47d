"""What training changes besides the trainable variables."""

import keras


def moving_statistics(model: keras.Model) -> list[keras.Variable]:
    """Returns the moving means and variances of a model's batch norms."""
    return [
        variable
        for layer in model._flatten_layers()
        if isinstance(layer, keras.layers.BatchNormalization)
        for variable in (layer.moving_mean, layer.moving_variance)
    ]
