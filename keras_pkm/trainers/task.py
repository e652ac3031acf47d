"""What the train steps of all backends share."""

from typing import TYPE_CHECKING
from typing import TypeAlias

import keras


def moving_statistics(model: keras.Model) -> list[keras.Variable]:
    """Returns the moving means and variances of a model's batch norms."""
    return [
        variable
        for layer in model._flatten_layers()
        if isinstance(layer, keras.layers.BatchNormalization)
        for variable in (layer.moving_mean, layer.moving_variance)
    ]


# For type checkers a mixin is a model: it calls methods of the task that
# follows it in the list of bases.
if TYPE_CHECKING:
    Task: TypeAlias = keras.Model
else:
    Task = object
