"""Plots of recall, capacity and forgetting, for light and dark pages."""

import math
from collections.abc import Iterable
from collections.abc import Mapping
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from matplotlib.ticker import StrMethodFormatter

from training.reports.plots import new_figure

# Okabe and Ito's colours, without black, which is invisible on dark pages.
_COLOURS = (
    *("#0072B2", "#E69F00", "#CC79A7", "#009E73", "#D55E00", "#56B4E9"),
)
# Their number differs from that of the colours, so that pairs rarely repeat.
_MARKERS = "os^DvpX"
_LINES = ("-", "--", ":", "-.")
# What fits into the legend of a figure of the usual size: characters of a name
# in each of two columns, and lines; others make the figure higher, by inches.
_WIDE, _LINES_FIT, _LINE = 40, 5, 0.19
# Text and lines that stand out from white and from black.
_INK = "#808080"

Curves = Mapping[str, Iterable[tuple[float, float]]]


def plot_recall(curves: Curves) -> Figure:
    """Draws the share of facts that models know during training."""
    figure, axes = _draw(curves, "seconds of training", "facts known")
    axes.set_xlim(left=0)
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    return figure


def plot_capacity(curves: Curves) -> Figure:
    """Draws the bits that models know, by the number of facts."""
    # Both axes are linear: models that know all facts are then on one line.
    figure, axes = _draw(curves, "facts", "bits known")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    return figure


def plot_forgetting(curves: Curves, of: str = "facts") -> Figure:
    """Draws what models learn and keep with several teaching methods."""
    names = {
        "facts": ("old facts kept", "new facts known"),
        "text": ("old text: perplexity before / after", "new text: learned"),
    }
    figure, axes = _draw(curves, *names[of])
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1))
    return figure


def _draw(curves: Curves, x: str, y: str) -> tuple[Figure, Axes]:
    figure, axes = new_figure(x, y)
    figure.set_facecolor("none")
    axes.set_facecolor("none")
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set_color(_INK)
    axes.tick_params(colors=_INK, which="both")
    axes.spines[["left", "bottom"]].set_color(_INK)
    axes.grid(alpha=0.25, color=_INK)
    styles = zip(cycle(_COLOURS), cycle(_MARKERS))
    for number, (name, points) in enumerate(curves.items()):
        colour, marker = next(styles)
        axes.plot(
            *zip(*points),
            marker=marker,
            # Once all colours have been used, they return with dashes.
            linestyle=_LINES[number // len(_COLOURS) % len(_LINES)],
            color=colour,
            markersize=4,
            label=name,
        )
    columns = 2 if max(map(len, curves), default=0) <= _WIDE else 1
    lines = math.ceil(len(curves) / columns)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + _LINE * max(0, lines - _LINES_FIT))
    # Below the axes, where it does not hide a curve.
    figure.legend(
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        labelcolor=_INK,
        fontsize=9,
    )
    return figure, axes
