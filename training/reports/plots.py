"""Plots of how memories are used."""

import math
from itertools import cycle
from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter
from matplotlib.ticker import PercentFormatter
from matplotlib.ticker import StrMethodFormatter

from keras_pkm.metrics.memory_staleness import NEVER
from training.measuring.memory_reads import MemoryReads

# Okabe and Ito's colours, which colour-blind readers can distinguish, too.
COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7"),
    *("#E69F00", "#56B4E9", "#000000", "#F0E442"),
)
# Markers distinguish curves of the same colour.
_MARKERS = "os^D"
_GREY = "#777777"
_SIZE = (6.4, 4.0)


def plot_slot_counts(memories: dict[int, MemoryReads]) -> Figure:
    """Draws how often slots were read, sorted from most to least read."""
    figure, axes = new_figure(
        "slots, the most read first",
        "share of all reads",
        "Slots by how often they are read",
    )
    for colour, (number, reads) in zip(cycle(COLOURS), memories.items()):
        for name, style, label in (
            ("reads", "-", "all reads"),
            ("top1", ":", "best of a head"),
        ):
            counts = np.sort(reads.counts[name])[::-1]
            counts = counts[counts > 0] / max(counts.sum(), 1)
            axes.loglog(
                np.arange(1, len(counts) + 1),
                counts,
                style,
                color=colour,
                label=f"layer {number}, {label}",
            )
        even = 1 / reads.num_slots
    axes.axhline(even, color=_GREY, linewidth=0.8)
    axes.annotate("even use", (1, even), color=_GREY, va="bottom", fontsize=8)
    axes.legend(frameon=False)
    return figure


def _square(values: np.ndarray) -> np.ndarray:
    """Values as a square, the end of which may be empty."""
    side = math.isqrt(len(values) - 1) + 1
    rest = side**2 - len(values)
    return np.pad(values, (0, rest), constant_values=np.nan).reshape(side, side)


def plot_grids(memories: dict[int, MemoryReads]) -> Figure:
    """Draws the reads of each slot, row by row.

    With product keys, there is a row and a column for each sub-key.
    """
    figure = Figure(
        figsize=(3.6 * len(memories) + 0.8, 3.9), layout="constrained"
    )
    all_axes = figure.subplots(1, len(memories), squeeze=False)[0]
    grids = {
        number: _square(np.log10(1 + reads.counts["reads"]))
        for number, reads in memories.items()
    }
    most = max(np.nanmax(grid) for grid in grids.values())
    for axes, (number, grid) in zip(all_axes, grids.items()):
        image = axes.imshow(
            grid,
            vmin=0,
            vmax=most,
            cmap="viridis",
            interpolation="nearest",
            rasterized=True,
        )
        axes.set_title(f"layer {number}", fontsize=10)
        axes.set_xlabel("slots, row by row (second sub-key)")
    all_axes[0].set_ylabel("rows (first sub-key)")
    figure.colorbar(image, ax=list(all_axes), label="log10 (reads + 1)")
    return figure


def plot_coverage(memories: dict[int, MemoryReads]) -> Figure:
    """Draws the share of slots that have been read, by the number of tokens."""
    figure, axes = new_figure(
        "tokens read", "slots used", "Slots that some text reads"
    )
    for colour, (number, reads) in zip(cycle(COLOURS), memories.items()):
        tokens = [point["tokens"] for point in reads.coverage]
        for name, style, label in (
            ("mu", "-", "all reads"),
            ("top1_mu", ":", "best of a head"),
        ):
            axes.semilogx(
                tokens,
                [point[name] for point in reads.coverage],
                style,
                color=colour,
                label=f"layer {number}, {label}",
            )
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.legend(frameon=False)
    return figure


def plot_staleness(histograms: dict[int, dict]) -> Figure:
    """Draws when slots were last a head's best slot (figure 2)."""
    figure = Figure(
        figsize=(3.6 * len(histograms) + 1.4, 3.9), layout="constrained"
    )
    all_axes = figure.subplots(1, len(histograms), squeeze=False, sharey=True)
    for axes, (number, by_step) in zip(all_axes[0], histograms.items()):
        steps = list(by_step)
        shades = np.linspace(0.15, 0.85, max(len(steps), 2))
        bottom = np.zeros(len(steps))
        for place, last in enumerate([*reversed(steps), NEVER]):
            shares = np.array([by_step[step].get(last, 0) for step in steps])
            colour = "#DDDDDD" if last < 0 else _sequential(1 - shades[place])
            label = "never" if last < 0 else f"{last:,}"
            axes.bar(
                range(len(steps)),
                shares,
                bottom=bottom,
                color=colour,
                label=label,
                width=0.85,
            )
            bottom += shares
        axes.set_title(f"layer {number}", fontsize=10)
        axes.set_xticks(range(len(steps)), [f"{step:,}" for step in steps])
        axes.set_xlabel("checkpoint, steps")
    all_axes[0][0].set_ylabel("slots")
    all_axes[0][0].yaxis.set_major_formatter(PercentFormatter(1))
    figure.legend(
        *all_axes[0][0].get_legend_handles_labels(),
        title="last read at",
        loc="outside right center",
        frameon=False,
    )
    return figure


def plot_curves(runs: dict[str, dict]) -> Figure:
    """Draws the perplexities of several runs while they trained (figure 3)."""
    figure, axes = new_figure("steps", "perplexity", "Training")
    styles = cycle(product(_MARKERS, COLOURS))
    for (marker, colour), (name, curves) in zip(styles, runs.items()):
        if curves["training"]:
            axes.loglog(
                *zip(*curves["training"]),
                color=colour,
                alpha=0.35,
                linewidth=0.9,
            )
        axes.loglog(
            *zip(*curves["held_out"]),
            f"{marker}-",
            color=colour,
            markersize=3,
            label=name,
        )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.set_minor_formatter(
            _WholeNumbers(labelOnlyBase=False, minor_thresholds=(1, 0.5))
        )
    axes.legend(frameon=False, title="dots: held-out; thin: training")
    return figure


def plot_classes(classes: dict[str, dict]) -> Figure:
    """Draws how differently two classes read, by model (figure 4)."""
    figure = Figure(figsize=_SIZE, layout="constrained")
    for axes, name, title in zip(
        figure.subplots(1, 2),
        ("kl", "iou"),
        ("KL divergence, nats", "intersection over union"),
    ):
        width = 0.8 / len(classes)
        for place, (model, layers) in enumerate(classes.items()):
            axes.bar(
                np.arange(len(layers))
                + width * (place - (len(classes) - 1) / 2),
                [figures[name] for figures in layers.values()],
                width,
                color=COLOURS[place],
                label=model,
            )
        axes.set_xticks(range(len(layers)), list(layers))
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("layer")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.2)
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=len(classes),
        frameon=False,
    )
    return figure


class _WholeNumbers(LogFormatter):
    """Labels the same ticks, like `StrMethodFormatter("{x:,.0f}")`."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return super().__call__(x, pos) and f"{x:,.0f}"


def new_figure(x: str, y: str, title: str = "") -> tuple[Figure, Axes]:
    """Returns a figure with one pair of axes."""
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, fontsize=10)
    axes.set(xlabel=x, ylabel=y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.2)
    return figure, axes


def _sequential(share: float) -> str:
    """A blue, the darker the larger."""
    light, dark = np.array([214, 229, 240]), np.array([0, 68, 120])
    red, green, blue = (light + share * (dark - light)).astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"
