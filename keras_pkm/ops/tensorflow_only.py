"""What only TensorFlow has: errors where it is used on another backend."""

from typing import Any

import keras


def require_tensorflow(what: str) -> None:
    """Checks that Keras uses TensorFlow.

    Args:
        what: The subject of the message: what is being used.

    Raises:
        RuntimeError: Keras uses another backend.
    """
    name = keras.backend.backend()
    if name != "tensorflow":
        raise RuntimeError(
            f"{what} needs the TensorFlow backend of Keras. Received: "
            f"'{name}'. Set the environment variable KERAS_BACKEND=tensorflow, "
            "or `backend` in ~/.keras/keras.json, before Keras is imported."
        )


def stand_in(name: str) -> Any:
    """Returns a class that stands for one that only TensorFlow has.

    Args:
        name: The name of the class. Making an object of it raises an error.
    """

    def refuse(*_: Any, **__: Any) -> None:
        require_tensorflow(f"`{name}`")

    return type(name.rpartition(".")[2], (), {"__init__": refuse})
