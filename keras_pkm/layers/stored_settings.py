"""Settings in files of weights, which say what these weights mean."""

import json
import weakref
from collections.abc import Callable
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

    # What was refused, and the file of it.
    _refused: tuple[str, Callable[[], Any]] | None = None

    def stored_settings(self) -> dict[str, Any]:
        """Returns what must be equal for the same weights to mean the same."""
        return {}

    def save_own_variables(self, store: MutableMapping[str, Any]) -> None:
        super().save_own_variables(store)
        if settings := self.stored_settings():
            text = json.dumps(settings, sort_keys=True)
            store[_NAME] = np.frombuffer(text.encode(), "uint8")

    def load_own_variables(self, store: Mapping[str, Any]) -> None:
        stored = {name: store[name] for name in store.keys()}
        if _NAME in stored:
            text = np.asarray(stored.pop(_NAME)).tobytes().decode()
            wrong = _differences(self.stored_settings(), json.loads(text))
            self._refused = (wrong, _reference(store)) if wrong else None
        # Files of earlier versions have no settings. Nor is there anything at
        # other paths to the same layer, at which Keras tries again.
        if self._refused is not None and self._refused[1]() is store:
            raise ValueError(
                f"The weights of '{self.name}' must be of a layer with the "
                f"same settings. Received: weights of one with "
                f"{self._refused[0]}. Make the layer, or its model, as it was."
            )
        super().load_own_variables(stored)


def _differences(own: dict[str, Any], other: dict[str, Any]) -> str:
    """What another layer has, and what this one has instead."""
    own = json.loads(json.dumps(own))
    return ", ".join(
        f"{name}={_short(other.get(name))} instead of {_short(own.get(name))}"
        for name in {**own, **other}
        if own.get(name) != other.get(name)
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _reference(store: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(store)
    except TypeError:  # a dict, which is asked once
        return lambda: store
