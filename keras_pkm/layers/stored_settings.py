"""Settings in files of weights, which say what these weights mean."""

import json
from collections.abc import Mapping
from collections.abc import MutableMapping
from typing import TYPE_CHECKING
from typing import Any
from typing import TypeAlias

import keras
import numpy as np

# For type checkers the mixin is a layer.
if TYPE_CHECKING:
    _Layer: TypeAlias = keras.layers.Layer
else:
    _Layer = object
_NAME = "settings"


class StoredSettings(_Layer):
    """Mixin for layers that refuse weights of a layer with other settings.

    Keras compares the shapes of weights alone. The names of layers do not tell
    either: Keras counts the layers of each class.
    """

    # The settings in a file that does not fit.
    _refused: str | None = None

    def stored_settings(self) -> dict[str, Any]:
        """Returns what must be equal for the same weights to mean the same."""
        return {}

    def save_own_variables(self, store: MutableMapping[str, Any]) -> None:
        super().save_own_variables(store)
        if settings := self._settings():
            store[_NAME] = np.frombuffer(settings.encode(), "uint8")

    def load_own_variables(self, store: Mapping[str, Any]) -> None:
        stored = {name: store[name] for name in store.keys()}
        own = self._settings()
        if _NAME in stored:
            settings = np.asarray(stored.pop(_NAME)).tobytes().decode()
            self._refused = None if settings == own else settings
        # Files of earlier versions have no settings. Nor is there anything at
        # other paths to the same layer, at which Keras tries again.
        if self._refused is not None:
            raise ValueError(
                f"The weights of '{self.name}' must be of a layer with the "
                f"same settings, {own or 'none'}. Received: weights of one "
                f"with {self._refused}. Make the layer, or its model, with "
                "these."
            )
        super().load_own_variables(stored)

    def _settings(self) -> str:
        settings = self.stored_settings()
        return json.dumps(settings, sort_keys=True) if settings else ""
