"""The hook by which `from_preset` reads checkpoints of other libraries."""

import pathlib
from collections.abc import Callable
from typing import Any
from typing import Protocol
from typing import TypeAlias

import keras
import keras_hub


class CheckpointReader(Protocol):
    """A checkpoint of another library, for one kind of model.

    Attributes:
        path: The path of the checkpoint.
    """

    path: pathlib.Path

    def backbone_config(self, **arguments: Any) -> dict[str, Any]:
        """Returns the arguments of the backbone; those that are given win."""

    def classifier_config(self, **arguments: Any) -> dict[str, Any]:
        """Returns the arguments of a text classifier; those given win."""

    def make_tokenizer(
        self, vocabulary_size: int
    ) -> keras_hub.tokenizers.Tokenizer:
        """Returns the tokenizer of the checkpoint."""

    def load_weights(self, model: keras.Model) -> None:
        """Copies the checkpoint's weights to a backbone or to a task.

        Args:
            model: A model of this kind.
        """


# Takes a path and the kind of model.
_Opener: TypeAlias = Callable[[str, str | None], CheckpointReader | None]
_OPENERS: list[_Opener] = []


def register_checkpoint_opener(opener: _Opener) -> _Opener:
    """Lets `from_preset` read one more format of checkpoints.

    Args:
        opener: A function of a path and of the kind of model. It returns a
            `CheckpointReader`, or None if the path has another format.

    Returns:
        The same function, so that this can be used as a decorator.
    """
    _OPENERS.append(opener)
    return opener


def open_checkpoint(path: str, kind: str | None) -> CheckpointReader | None:
    """Opens a checkpoint of another library.

    Args:
        path: The argument of `from_preset`.
        kind: The kind of model: `hugging_face_family` of the backbone, or None
            for a class that takes any backbone.

    Returns:
        A `CheckpointReader`, or None if no registered format fits.

    Raises:
        ValueError: it is a checkpoint of another kind of model, or `kind` is
            None.
    """
    for opener in _OPENERS:
        reader = opener(path, kind)
        if reader is not None:
            return reader
    return None
