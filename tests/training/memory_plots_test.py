"""Plots draw all that they are given, however much it is."""

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from training.memory_plots import plot_curves  # noqa: E402


def test_more_curves_than_colours():
    curves = {
        f"run {i}": {"training": [], "held_out": [(1, 9.0), (2, 8.0 - i / 99)]}
        for i in range(30)
    }
    (axes,) = plot_curves(curves).axes
    assert [line.get_label() for line in axes.lines] == list(curves)
    styles = {(line.get_color(), line.get_marker()) for line in axes.lines}
    assert len(styles) == len(curves)
