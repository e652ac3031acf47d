"""Plots draw all that they are given, however much it is."""

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from training.reports.knowledge_plots import plot_forgetting  # noqa: E402
from training.reports.plots import plot_curves  # noqa: E402


def test_more_curves_than_colours():
    curves = {
        f"run {i}": {"training": [], "held_out": [(1, 9.0), (2, 8.0 - i / 99)]}
        for i in range(30)
    }
    (axes,) = plot_curves(curves).axes
    assert [line.get_label() for line in axes.lines] == list(curves)
    styles = {(line.get_color(), line.get_marker()) for line in axes.lines}
    assert len(styles) == len(curves)


def test_steps_between_powers_of_ten_are_labelled_like_those():
    curve = [(300, 700.0), (1000, 200.0), (3000, 80.0)]
    figure = plot_curves({"run": {"training": [], "held_out": curve}})
    figure.canvas.draw()
    ticks = figure.axes[0].xaxis
    labels = [label.get_text() for label in ticks.get_minorticklabels()]
    assert {"300", "2,000", "3,000"} <= set(labels)
    assert "1,000" in [
        label.get_text() for label in ticks.get_majorticklabels()
    ]


def test_all_names_of_many_ways_are_within_the_figure():
    ways = [f"a way of teaching with so long a name, {i}" for i in range(20)]
    figure = plot_forgetting({way: [(0.5, 0.5)] for way in ways})
    figure.canvas.draw()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.width
    assert [text.get_text() for text in legend.get_texts()] == ways
    (axes,) = figure.axes
    assert axes.get_window_extent().height > figure.dpi * 2
    looks = {
        (line.get_color(), line.get_marker(), line.get_linestyle())
        for line in axes.lines
    }
    assert len(looks) == len(ways)
