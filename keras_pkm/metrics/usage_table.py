"""The table of memory usage."""

#: The columns of the table after the one that names the memory.
COLUMNS = (
    "slots",
    "used %",
    "top-1 used %",
    "per token %",
    "KL_u",
    "KL_w",
    "top-1 reads",
)


def memory_usage_cells(figures: dict[str, float], num_slots: int) -> list[str]:
    """Returns the cells of one memory, one for each of `COLUMNS`.

    Args:
        figures: dict. The result of `keras_pkm.metrics.MemoryUsage`, as Python
            numbers.
        num_slots: int. Slots of the memory.
    """
    return [
        f"{num_slots:,}",
        f"{100 * figures['mu']:.1f}",
        f"{100 * figures['top1_mu']:.1f}",
        f"{100 * figures['top1_token_mu']:.1f}",
        f"{figures['kl_u']:.2f}",
        f"{figures['kl_w']:.2f}",
        f"{figures['top1_reads']:,.0f}",
    ]


def has_few_reads(figures: dict[str, float], num_slots: int) -> bool:
    """Whether there are too few reads to tell how much of a memory is used."""
    return figures["top1_reads"] < 5 * num_slots


def format_memory_usage(
    usage: dict[int, dict[str, float]], num_slots: int
) -> list[str]:
    """Returns the lines of a table of memory usage.

    Args:
        usage: dict. The results of `keras_pkm.metrics.MemoryUsage`, as Python
            numbers, by the number of the memory's layer.
        num_slots: int. Slots of each memory.

    Returns:
        A list of str, the lines of a Markdown table; an empty list if there is
        no memory.

    Example:

    >>> metric = keras_pkm.metrics.MemoryUsage(num_slots=4)
    >>> slots = [[[0, 1]], [[0, 3]]]
    >>> metric.update_state(slots, [[[0.75, 0.25]], [[0.5, 0.5]]])
    >>> usage = {2: {k: float(v) for k, v in metric.result().items()}}
    >>> keras_pkm.metrics.format_memory_usage(usage, num_slots=4)[3]
    '| 2 | 4 | 75.0 | 25.0 | 25.0 | 0.35 | 0.49 | 2 |'
    """
    if not usage:
        return []
    lines = [
        "",
        f"| {' | '.join(('memory layer', *COLUMNS))} |",
        f"|{'---:|' * (1 + len(COLUMNS))}",
    ]
    for layer, figures in usage.items():
        cells = memory_usage_cells(figures, num_slots)
        lines.append(f"| {' | '.join((str(layer), *cells))} |")
    if any(has_few_reads(figures, num_slots) for figures in usage.values()):
        lines += [
            "",
            "Fewer than five top-1 reads a slot: usage would be higher on more "
            "held-out text.",
        ]
    return lines
