"""Functions of the gradients of a step, those of tables among them."""

from collections.abc import Sequence

from keras import ops

from keras_pkm.ops.backend import backend
from keras_pkm.ops.tensors import Gradient
from keras_pkm.ops.tensors import Tensor


def all_finite(gradients: Sequence[Gradient]) -> Tensor:
    """Whether no entry of any gradient is NaN or infinite, a bool scalar."""
    return ops.all(
        ops.stack(
            [
                ops.all(ops.isfinite(backend.entries(gradient)))
                for gradient in gradients
            ]
        )
    )


def clip(
    gradients: list[Gradient],
    clipnorm: float | None,
    global_clipnorm: float | None,
    clipvalue: float | None,
) -> list[Gradient]:
    """Clips gradients by the first of these arguments that is set.

    Args:
        gradients: Their rows must be deduplicated.
        clipnorm: The largest norm of each gradient.
        global_clipnorm: The largest norm of all gradients together.
        clipvalue: The largest absolute value of an entry.
    """
    entries = list(map(backend.entries, gradients))
    if clipnorm:
        clipped = [
            each * clipnorm / ops.maximum(_norm([_squares(each)]), clipnorm)
            for each in entries
        ]
    elif global_clipnorm:
        norm = _norm(list(map(_squares, entries)))
        # In the order of Keras and TensorFlow, whose roundings it shares.
        factor = global_clipnorm * ops.minimum(1 / norm, 1 / global_clipnorm)
        clipped = [each * ops.cast(factor, each.dtype) for each in entries]
    elif clipvalue:
        clipped = [ops.clip(each, -clipvalue, clipvalue) for each in entries]
    else:
        return gradients
    return list(map(backend.with_entries, gradients, clipped))


def _squares(entries: Tensor) -> Tensor:
    return ops.sum(ops.square(entries))


def _norm(squares: list[Tensor]) -> Tensor:
    """The root of a sum of squares."""
    return ops.sqrt(ops.sum(ops.stack(squares)))
