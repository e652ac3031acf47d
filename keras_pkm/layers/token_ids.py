"""The token ids that some kinds of memory need besides a layer's inputs."""

import contextlib
import contextvars

import keras
from keras import ops

from keras_pkm.ops.contexts import setting
from keras_pkm.ops.tensors import Tensor

# A variable of the context, since replicas are computed in threads.
_current: contextvars.ContextVar[Tensor | None] = contextvars.ContextVar(
    "token_ids", default=None
)


def token_ids_of_layers(
    token_ids: Tensor,
) -> contextlib.AbstractContextManager[None]:
    """Passes token ids to the memories that are called in this context.

    Decoding with a cache calls the layers of a backbone one by one, without
    the ids.

    Args:
        token_ids: int tensor of shape `(batch, before + length)`: the ids of
            the tokens that the layers are called with, and of those before.
    """
    return setting(_current, token_ids)


def current_token_ids(name: str) -> Tensor:
    """Returns the token ids of the context.

    Args:
        name: The name of the memory that needs them, for the error.

    Raises:
        ValueError: there are none.
    """
    token_ids = _current.get()
    if token_ids is None:
        raise ValueError(
            f"`token_ids` must be given to '{name}', whose slots are those of "
            "n-grams of tokens. Received: none. Pass them, as "
            "`memory(inputs, token_ids=token_ids)`; the backbones and tasks "
            "that `keras_pkm.models.add_memory` returns do so."
        )
    return token_ids


def known_ids(inputs: Tensor, token_ids: Tensor, mask: Tensor | None) -> Tensor:
    """Returns the ids as int32, with -1 at padding: it is in no n-gram.

    Args:
        inputs: tensor of shape `(batch, length, dim)`.
        token_ids: int tensor of shape `(batch, length)`, or longer: the last
            ids are those of `inputs`.
        mask: optional bool or int tensor of shape `(batch, length)`, false or
            0 at padding.
    """
    _check_ids(inputs, token_ids)
    token_ids = ops.cast(token_ids, "int32")
    if mask is None:
        return token_ids
    before = ops.shape(token_ids)[1] - ops.shape(inputs)[1]
    of_tokens = ops.where(ops.cast(mask, "bool"), token_ids[:, before:], -1)
    return ops.concatenate([token_ids[:, :before], of_tokens], axis=1)


def last_ids(inputs: Tensor, token_ids: Tensor, size: int) -> Tensor:
    """Returns the ids of each token and of those before it.

    Args:
        inputs: tensor of shape `(batch, length, dim)`.
        token_ids: int tensor of shape `(batch, length)`, or longer: the last
            ids are those of `inputs`.
        size: int. How many ids to return for each token.

    Returns:
        An int32 tensor of shape `(batch, length, size)`, in the order of the
        text. It is -1 before the first of the ids.
    """
    _check_ids(inputs, token_ids)
    length = ops.shape(inputs)[1]
    padded = ops.pad(
        ops.cast(token_ids, "int32"),
        [[0, 0], [size - 1, 0]],
        constant_values=-1,
    )
    first = ops.shape(padded)[1] - length - size + 1
    return ops.stack(
        [
            padded[:, first + place : first + place + length]
            for place in range(size)
        ],
        axis=-1,
    )


def _check_ids(inputs: Tensor, token_ids: Tensor) -> None:
    if len(inputs.shape) != 3 or len(token_ids.shape) != 2:
        raise ValueError(
            "`inputs` must be of shape (batch, length, dim) and `token_ids` of "
            "shape (batch, length). Received: inputs of shape "
            f"{tuple(inputs.shape)}, token_ids of shape "
            f"{tuple(token_ids.shape)}."
        )
    dtype = keras.backend.standardize_dtype(token_ids.dtype)
    if "int" not in dtype:
        raise ValueError(
            "`token_ids` must be integers: Keras would round others to the "
            "dtype that a layer computes in, such as bfloat16. Received: "
            f"token_ids of dtype {dtype}. Cast them, or make their input with "
            '`keras.Input(shape, dtype="int32")`.'
        )
    known = inputs.shape[1], token_ids.shape[1]
    if None not in known and known[1] < known[0]:
        raise ValueError(
            "`token_ids` must have an id for each token of `inputs`. Received: "
            f"{known[1]} ids for {known[0]} tokens."
        )
