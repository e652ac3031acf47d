"""Checks the numbers of the layers that have a memory."""

from collections.abc import Iterable


def check_memory_layers(
    memory_layers: Iterable[int], num_layers: int
) -> tuple[int, ...]:
    """Returns `memory_layers` as a sorted tuple.

    Raises:
        ValueError: they are not different numbers from 1 to `num_layers`.
    """
    memory_layers = tuple(memory_layers)
    if any(
        number != int(number) or not 1 <= number <= num_layers
        for number in memory_layers
    ) or len(set(memory_layers)) < len(memory_layers):
        raise ValueError(
            "`memory_layers` must be different numbers from 1 to `num_layers`, "
            "counted from 1 as in the paper. Received: "
            f"memory_layers={memory_layers}, num_layers={num_layers}."
        )
    return tuple(sorted(int(number) for number in memory_layers))
