"""What all metrics of a memory take."""


def check_num_slots(num_slots: int) -> int:
    """Returns the number of slots as an int.

    Raises:
        ValueError: it is not positive.
    """
    if num_slots < 1:
        raise ValueError(
            "`num_slots` must be a positive integer. "
            f"Received: num_slots={num_slots}."
        )
    return int(num_slots)
