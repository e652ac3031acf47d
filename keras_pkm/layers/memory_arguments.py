"""Checks the arguments of a product-key memory."""

from typing import Any


def check_memory_sizes(memory: Any) -> None:
    """Checks that the sizes of a memory fit each other.

    Args:
        memory: has `num_sub_keys`, `top_k` and `key_dim`.

    Raises:
        ValueError: they do not.
    """
    if memory.num_sub_keys**2 >= 2**31:
        raise ValueError(
            "`num_sub_keys` must be at most 46,340, because slots are "
            "numbered in int32. Received: "
            f"num_sub_keys={memory.num_sub_keys}."
        )
    if memory.top_k > memory.num_sub_keys:
        raise ValueError(
            "`top_k` must be at most `num_sub_keys`, because each half of "
            "a query has no more sub-keys to choose from. Received: "
            f"top_k={memory.top_k}, num_sub_keys={memory.num_sub_keys}."
        )
    if memory.key_dim % 2:
        raise ValueError(
            "`key_dim` must be even, because each half of a query has its "
            f"own sub-keys. Received: key_dim={memory.key_dim}."
        )


def known_width(inputs_shape: tuple[int | None, ...]) -> int:
    """Returns the last dimension of the inputs' shape.

    Raises:
        ValueError: it is not known.
    """
    width = inputs_shape[-1]
    if width is None:
        raise ValueError(
            "The last dimension of the inputs of `ProductKeyMemory` must be "
            f"known. Received: inputs_shape={inputs_shape}."
        )
    return width
