"""Reads the memories of an exported model through its signatures."""

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_pkm.probing.memory_access import MemoryAccess


class ServedModel:
    """An exported model with memory, called as its clients call it.

    Args:
        path: path of a SavedModel that `export/saved_model.py` wrote.
        preprocessor: optional path of an exported preprocessor. Encoders need
            one, because they take no text.

    Raises:
        ValueError: a path does not lead to such a model, or `preprocessor` is
            missing.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        preprocessor: str | os.PathLike[str] | None = None,
    ):
        # Kept alive, since they own the function that is called.
        self._model = _load(path)
        self._preprocessor = None
        if "memory_access" not in self._model.signatures:
            raise ValueError(
                f"'{path}' has no signature memory_access, only "
                f"{', '.join(self._model.signatures)}: export a model with "
                "memory"
            )
        self._access = self._model.signatures["memory_access"]
        self._inputs = set(self._access.structured_input_signature[1])
        if "input_word_ids" in self._inputs:
            if preprocessor is None:
                raise ValueError(
                    f"'{path}' takes no text: pass a preprocessor, the "
                    "directory of an exported one"
                )
            self._preprocessor = _load(preprocessor)
            _check_outputs(self._preprocessor, preprocessor, self._inputs)
        elif preprocessor is not None:
            raise ValueError(
                f"'{path}' takes text itself, so that '{preprocessor}' would "
                "do nothing: leave the preprocessor out"
            )

    def read(self, batches: Iterable[list[str]]) -> Iterable[MemoryAccess]:
        """Yields the memory reads of the model, batch by batch.

        Args:
            batches: lists of str. Each string is one input: a text, the context
                of a question, or the first text of a pair.
        """
        for batch in batches:
            text = tf.constant(batch)
            if self._preprocessor:
                inputs = dict(self._preprocessor(text))
            else:
                inputs = dict.fromkeys(
                    self._inputs, tf.fill(tf.shape(text), "")
                )
                name = next(
                    name
                    for name in ("sentences", "text", "context")
                    if name in self._inputs
                )
                inputs[name] = text
            yield _access_of(
                {
                    name: value.numpy()
                    for name, value in self._access(**inputs).items()
                },
                inputs.get("input_word_ids"),
            )


def _access_of(
    found: dict[str, np.ndarray], token_ids: tf.Tensor | None
) -> MemoryAccess:
    numbers = sorted(
        int(name.removeprefix("num_slots_"))
        for name in found
        if name.startswith("num_slots_")
    )
    memories = {
        number: (found[f"slots_{number}"], found[f"weights_{number}"])
        for number in numbers
    }
    is_token = found.get("is_token")
    if is_token is None:
        # An export of version 0.1.0: the weights are 0 at padding.
        is_token = np.any(
            [(w != 0).any((-2, -1)) for _, w in memories.values()], axis=0
        )
    return MemoryAccess(
        None if token_ids is None else token_ids.numpy(),
        is_token,
        memories,
        {number: int(found[f"num_slots_{number}"]) for number in numbers},
    )


def _check_outputs(
    preprocessor: Any, path: str | os.PathLike[str], inputs: set[str]
) -> None:
    """Checks that a preprocessor makes the inputs of an encoder."""
    serve = getattr(preprocessor, "signatures", {}).get("serving_default")
    found = set(serve.structured_outputs) if serve else set()
    if found != inputs:
        raise ValueError(
            f"'{path}' must be an exported preprocessor, which returns "
            f"{', '.join(sorted(inputs))}, but returns "
            f"{', '.join(sorted(found)) or 'nothing'}"
        )


def _load(path: str | os.PathLike[str]) -> Any:
    # Registers the operations of models that take text.
    import tensorflow_text  # noqa: F401

    try:
        return tf.saved_model.load(str(path))
    # The kind of error depends on where the file is damaged.
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"'{path}' is not the directory of an exported model: {reason}"
        ) from error
