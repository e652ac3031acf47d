"""Initializers that do not repeat themselves."""

from typing import Any

import keras


def fresh_initializer(initializer: Any) -> Any:
    """Returns a copy: an initializer called twice gives the same numbers."""
    if not isinstance(initializer, keras.initializers.Initializer):
        return initializer
    return initializer.clone()
