"""Legends do not lie over curves, however small the axes."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from labelweave.app.display.figures import place_legend


def legend_on(ax, scale="linear", n_lines=4):
    x = np.linspace(0, 1, 200)
    lines = [
        ax.plot(x, 2.0 + np.sin(30 * x + k), label=f"a curve with a long name, {k}")[0]
        for k in range(n_lines)
    ]
    ax.set_yscale(scale)
    legend = place_legend(ax, lines)
    ax.figure.canvas.draw()
    return legend, lines


def is_over(legend, lines):
    box = legend.get_window_extent()
    return any(box.count_contains(line.get_transform().transform(line.get_xydata())) for line in lines)


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("size", [(3.4, 3.0), (8.0, 6.0)])
def test_room_is_made_above_curves_that_are_everywhere(scale, size):
    _, ax = plt.subplots(figsize=size, layout="constrained")
    legend, lines = legend_on(ax, scale)
    assert not is_over(legend, lines)
    assert ax.bbox.y1 >= legend.get_window_extent().y1


def test_limits_stay_where_there_is_room():
    _, ax = plt.subplots()
    (line,) = ax.plot([0, 1], [0, 1], label="a")
    limits = ax.get_ylim()
    place_legend(ax, [line])
    assert ax.get_ylim() == limits


def test_twin_axes_are_raised_together():
    _, ax = plt.subplots(figsize=(3.4, 3.0), layout="constrained")
    twin = ax.twinx()
    x = np.linspace(0, 1, 200)
    lines = [*ax.plot(x, np.sin(30 * x), label="left"), *twin.plot(x, 50 * np.cos(30 * x), label="right")]
    legend = place_legend(twin, lines, handles=lines)
    twin.figure.canvas.draw()
    assert not is_over(legend, lines)
    assert len(legend.get_texts()) == 2


def test_axes_too_small_for_any_legend_keep_their_curves():
    _, ax = plt.subplots(figsize=(2.0, 1.5))
    legend_on(ax, n_lines=8)
    assert ax.get_ylim()[1] < 4.0
