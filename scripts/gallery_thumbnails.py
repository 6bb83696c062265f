"""Draw the thumbnails of the gallery of examples.

    python scripts/gallery_thumbnails.py

They are drawn once, into ``docs/images/gallery``; an example names its own in a comment.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import ListedColormap

matplotlib.use("Agg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images" / "gallery"
INK, PALE, ACCENT = "#1f4e79", "#dce6f0", "#d9822b"
_ENTRIES = ListedColormap([PALE, INK, ACCENT])  # absent, present, unknown


def _entries(axes: Any, table: Any) -> None:
    axes.imshow(table, cmap=_ENTRIES, vmin=0, vmax=2, aspect="auto")
    axes.set_xticks(np.arange(table.shape[1]) - 0.5, [])
    axes.set_yticks(np.arange(len(table)) - 0.5, [])
    axes.grid(color="white", linewidth=2)
    axes.tick_params(length=0)


def missing_labels(axes: Any) -> None:
    """A table of labels, half of them unknown."""
    random = np.random.default_rng(1)
    table = (random.random((8, 11)) < 0.4).astype(int)
    table[random.random(table.shape) < 0.5] = 2
    _entries(axes, table)
    axes.set_title("there, not there, unknown", fontsize=15)


def few_observed_labels(axes: Any) -> None:
    """A table of labels, few of them known."""
    random = np.random.default_rng(2)
    table = (random.random((10, 14)) < 0.4).astype(int)
    table[random.random(table.shape) < 0.8] = 2
    _entries(axes, table)
    axes.set_title("one in five was looked at", fontsize=15)


def search_with_gaps(axes: Any) -> None:
    """The scores of a search over two parameters."""
    costs, widths = np.meshgrid(np.linspace(-1.5, 1.5, 7), np.linspace(-1.0, 1.0, 5))
    scores = -((costs - 0.4) ** 2) - 1.5 * (widths - 0.2) ** 2
    axes.imshow(scores, cmap="Blues", aspect="auto")
    row, column = np.unravel_index(scores.argmax(), scores.shape)
    axes.plot(column, row, marker="*", markersize=28, color=ACCENT)
    axes.set(xticks=[], yticks=[], xlabel="C", ylabel="kernel")
    axes.set_title("a grid, folds and gaps", fontsize=15)


def _words(lines: list[tuple[str, str]], title: str) -> Callable[[Any], None]:
    def draw(axes: Any) -> None:
        axes.set_axis_off()
        for place, (left, right) in enumerate(lines):
            height = 0.82 - 0.23 * place
            axes.text(0.02, height, left, fontsize=14, family="monospace", color="0.25")
            box = {"boxstyle": "round,pad=0.3", "facecolor": PALE, "edgecolor": "none"}
            axes.text(0.98, height, right, fontsize=13, color=INK, ha="right", bbox=box)
        axes.set_title(title, fontsize=15)

    return draw


def label_graph(axes: Any) -> None:
    """Labels in a circle, some of them connected."""
    angles = np.linspace(0.0, 2 * np.pi, 9)[:-1]
    x, y = np.cos(angles), np.sin(angles)
    for one, other, width in ((0, 1, 6), (1, 2, 3), (0, 3, 4), (4, 6, 7), (5, 6, 2), (2, 7, 2)):
        axes.plot(x[[one, other]], y[[one, other]], color=INK, linewidth=width, alpha=0.6)
    axes.scatter(x, y, s=500, color=PALE, edgecolor=INK, linewidth=2, zorder=3)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.margins(0.15)


def hierarchical_classes(axes: Any) -> None:
    """A tree of classes."""
    levels = [[0.5], [0.2, 0.5, 0.8], [0.08, 0.2, 0.32, 0.44, 0.56, 0.7, 0.82, 0.94]]
    above = [0, 0, 0, 1, 1, 2, 2, 2]
    for x in levels[1]:
        axes.plot([0.5, x], [2, 1], color=INK, linewidth=2)
    for x, parent in zip(levels[2], above, strict=True):
        axes.plot([levels[1][parent], x], [1, 0], color=INK, linewidth=2)
    for height, places in zip((2, 1, 0), levels, strict=True):
        axes.scatter(places, [height] * len(places), s=320, color=PALE, edgecolor=INK, linewidth=2, zorder=3)
    axes.set_axis_off()
    axes.margins(0.12)


def zero_shot_animals(axes: Any) -> None:
    """Signatures of animals, the last ones without an image."""
    table = (np.random.default_rng(5).random((9, 10)) < 0.45).astype(int)
    _entries(axes, table)
    axes.axhline(5.5, color=ACCENT, linewidth=5)
    axes.text(9.8, 5.9, "no image", fontsize=16, color=ACCENT, va="top", weight="bold", clip_on=False)
    axes.set_title("attributes of animals", fontsize=15)


DRAWINGS: dict[str, Callable[[Any], None]] = {
    "arff_folder": _words(
        [("proteins.arff", "4 labels"), ("?, 3.5, YES", "as found"), ("pages.xml", "names")], "ARFF as found"
    ),
    "few_observed_labels": few_observed_labels,
    "hierarchical_classes": hierarchical_classes,
    "label_graph": label_graph,
    "missing_labels": missing_labels,
    "search_with_gaps": search_with_gaps,
    "tag_packages": _words(
        [("vim", "use::editing"), ("nginx", "network::server"), ("gimp", "works-with::image")], "package tags"
    ),
    "ticket_table": _words(
        [("my parcel is late", "shipping"), ("refund please", "billing"), ("locked out", "?")], "tickets"
    ),
    "zero_shot_animals": zero_shot_animals,
}


def main() -> None:
    """Draw all thumbnails."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, draw in DRAWINGS.items():
        figure, axes = plt.subplots(figsize=(4, 2.8), dpi=100, layout="constrained")
        draw(axes)
        figure.savefig(FOLDER / f"{name}.png", metadata={"Software": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
