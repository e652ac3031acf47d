"""Checks the numbers of the layers that have a memory."""

from collections.abc import Iterable

from keras_pkm.ops.arguments import positive_int


def check_memory_layers(
    memory_layers: Iterable[int], num_layers: int
) -> tuple[int, ...]:
    """Returns `memory_layers` as a sorted tuple.

    Raises:
        ValueError: they are not different numbers from 1 to `num_layers`.
    """
    try:
        memory_layers = tuple(memory_layers)
        numbers = {
            positive_int("memory_layers", each) for each in memory_layers
        }
        is_right = len(numbers) == len(memory_layers) and all(
            number <= num_layers for number in numbers
        )
    except (TypeError, ValueError):
        is_right = False
    if not is_right:
        raise ValueError(
            "`memory_layers` must be different numbers from 1 to `num_layers`, "
            "counted from 1 as in the paper. Received: "
            f"memory_layers={memory_layers!r}, num_layers={num_layers}."
        )
    return tuple(sorted(numbers))
