"""The hook by which `from_preset` reads checkpoints of other libraries."""

from collections.abc import Callable
from typing import Protocol

import keras


class CheckpointReader(Protocol):
    """A checkpoint of another library, for one kind of model.

    Attributes:
        path: The path of the checkpoint.
    """

    path: object

    def backbone_config(self) -> dict:
        """Returns the arguments of the backbone."""

    def load_weights(self, model: keras.Model, optional: tuple = ()) -> None:
        """Copies the checkpoint's weights to a backbone or to a task.

        Args:
            model: A model of this kind.
            optional: Beginnings of paths of weights that may be missing.
        """


_OPENERS: list[Callable] = []


def register_checkpoint_opener(opener: Callable) -> Callable:
    """Lets `from_preset` read one more format of checkpoints.

    Args:
        opener: A function of a path and of the kind of model. It returns a
            `CheckpointReader`, or None where the path holds another format.

    Returns:
        The same function, so that this can be used as a decorator.
    """
    _OPENERS.append(opener)
    return opener


def open_checkpoint(path: str, kind: str) -> CheckpointReader | None:
    """Opens a checkpoint of another library.

    Args:
        path: What `from_preset` was called with.
        kind: The kind of model: `hugging_face_family` of the backbone.

    Returns:
        A `CheckpointReader`, or None where no registered format fits.

    Raises:
        ValueError: it is a checkpoint of another kind of model.
    """
    for opener in _OPENERS:
        reader = opener(path, kind)
        if reader is not None:
            return reader
    return None
