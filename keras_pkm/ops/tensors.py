"""Names for the types of tensors in signatures."""

from typing import Any
from typing import TypeAlias

#: A tensor of Keras' backend, or one of `keras.KerasTensor`.
Tensor: TypeAlias = Any
#: The gradient of a variable: a tensor, or rows of one for a table.
Gradient: TypeAlias = Any
#: The slots and the weights of a read.
MemoryAccess: TypeAlias = tuple[Tensor, Tensor]


def keras_mask(inputs: Tensor) -> Tensor | None:
    """Returns the mask that a layer such as `Embedding` gave to its outputs.

    Keras passes it to a layer's argument `mask`, but only where the layer is
    called with a single tensor.
    """
    return getattr(inputs, "_keras_mask", None)
