"""The features that a backbone takes, of those of a task."""

from typing import Any

import keras


def features_of(backbone: keras.Model, features: Any) -> dict[str, Any]:
    """Returns the inputs of a backbone by name.

    Args:
        backbone: A functional model with named inputs.
        features: A dict, which may have more, or a list or tuple in the order
            of the inputs.
    """
    inputs = backbone.input
    if not isinstance(features, dict):
        features = keras.tree.pack_sequence_as(
            inputs, keras.tree.flatten(features)
        )
    return {name: features[name] for name in inputs}
