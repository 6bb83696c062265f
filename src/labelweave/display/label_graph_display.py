"""A picture of a label graph: who is tied to whom, how strongly, with which sign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from labelweave.display.figures import axes_of_size
from labelweave.display.graph_layout import Layout, lay_out
from labelweave.display.label_texts import short_text
from labelweave.display.shown_cliques import LONGEST_NAME, names_of, strongest, what_is_left_out
from labelweave.labels.clique_graph import CliqueGraph

__all__ = ["LabelGraphDisplay"]

Array = npt.NDArray[Any]

_LETTER = np.array([0.58, 1.35])  # width of a letter and height of a line, in font sizes
_PADDING = np.array([8.0, 6.0])
_FONTS = ((30, 10.0), (60, 8.5))  # up to so many names this size
_SMALL_FONT = 7.5
_LEAST_FONT = 5.0
_MARGINS = np.array([24.0, 64.0])  # points around the graph: sideways, and for legend and note
_SMALLEST = np.array([340.0, 220.0])
_LEGEND_ENTRY = 130.0
_WIDTHS = (0.7, 5.0)
_KINDS: dict[
    int, tuple[str, Any, str]
] = {  # colour, line and words of a sign; lines differ in print without colours too
    1: ("#14538f", "solid", "together"),
    -1: ("#c0392b", (0, (4, 2)), "apart"),
    0: ("#777777", (0, (1, 1.5)), "depends on the row"),
}


class LabelGraphDisplay:
    """Labels as names and their cliques as lines, wide for strong ones.

    Make one with :meth:`from_graph` or :meth:`from_estimator`; both draw it.  A clique of more than two
    labels is a point with a line to each of them.

    Parameters
    ----------
    graph : CliqueGraph
        The graph to draw, with the cliques in the order of their strength.
    label_names : sequence of str
        One name a label.
    note : str, default=""
        A remark to stand below the picture.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes of the picture.
    figure_ : matplotlib.figure.Figure
        Its figure.
    texts_ : dict of int to matplotlib.text.Text
        The name of every label that is drawn.
    lines_ : list of matplotlib.lines.Line2D
        The lines of the cliques.

    Examples
    --------
    >>> from labelweave import CliqueGraph
    >>> from labelweave.display import LabelGraphDisplay
    >>> graph = CliqueGraph(4, [(0, 1), (1, 2)], ["sea", "beach", "city", "road"], [2.0, 1.0], [1, -1])
    >>> display = LabelGraphDisplay.from_graph(graph)
    >>> display.note
    'without ties: road'
    """

    def __init__(self, graph: CliqueGraph, label_names: Sequence[str] | Array, note: str = "") -> None:
        self.graph, self.label_names, self.note = graph, label_names, note

    @classmethod
    def from_graph(
        cls,
        graph: CliqueGraph,
        label_names: Sequence[str] | Array | None = None,
        *,
        max_cliques: int = 50,
        **plot_options: Any,
    ) -> LabelGraphDisplay:
        """Draw a graph.

        Parameters
        ----------
        graph : CliqueGraph
            The graph.
        label_names : sequence of str or None, default=None
            One name a label; by default those it carries, else the labels' numbers.
        max_cliques : int, default=50
            The most cliques to show; of more, the strongest, or the first where strengths are not known.
        **plot_options : dict
            What :meth:`plot` takes.

        Returns
        -------
        LabelGraphDisplay
            The picture.

        Raises
        ------
        ImportError
            If matplotlib or networkx is not installed.
        ValueError
            If there are no cliques to draw, or the names are not one a label.
        """
        if max_cliques < 1:
            raise ValueError(f"max_cliques is {max_cliques}; it must be at least 1.")
        if not graph.n_cliques:
            raise ValueError("The graph has no cliques; there is nothing to draw.")
        names = names_of(graph, label_names)
        shown = strongest(graph, max_cliques)
        return cls(shown, names, what_is_left_out(graph, shown, names)).plot(**plot_options)

    @classmethod
    def from_estimator(cls, estimator: Any, **options: Any) -> LabelGraphDisplay:
        """Draw the graph of a fitted model.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted, with a ``label_graph_``.
        **options : dict
            What :meth:`from_graph` takes.

        Returns
        -------
        LabelGraphDisplay
            The picture.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        TypeError
            If it has no label graph.
        """
        model = estimator[-1] if isinstance(estimator, Pipeline) else estimator
        check_is_fitted(model)
        graph = getattr(model, "label_graph_", None)
        if not isinstance(graph, CliqueGraph):
            raise TypeError(
                f"{type(model).__name__} has no label_graph_ to draw; give a LabelGraphClassifier, or draw a "
                "graph with from_graph."
            )
        return cls.from_graph(graph, **options)

    def plot(self, ax: Any = None, *, legend: bool = True) -> LabelGraphDisplay:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; by default a new figure of a size that suits the number of labels.
        legend : bool, default=True
            Whether to explain lines and widths.

        Returns
        -------
        LabelGraphDisplay
            This display.

        Raises
        ------
        ImportError
            If matplotlib or networkx is not installed.
        """
        labels, lines, hubs = _drawing(self.graph)
        texts = [short_text(self.label_names[label], LONGEST_NAME) for label in labels]
        font = next((size for most, size in _FONTS if len(texts) <= most), _SMALL_FONT)
        layout = lay_out([pair for pair, _ in lines], _boxes(texts, hubs, font), _SMALLEST)
        size = layout.size + _MARGINS
        self.ax_ = axes_of_size(*(size / 72)) if ax is None else ax
        self.figure_ = self.ax_.figure
        self._set_limits(layout)
        self._draw_lines(layout, lines, len(texts))
        self._write_names(layout, labels, texts, font if ax is None else self._fitting_font(layout, font))
        if legend:
            self._explain(max(1, int(size[0] / _LEGEND_ENTRY)))
        if self.note:
            self.ax_.set_xlabel("\n".join(_wrapped(self.note, size[0])), fontsize="small")
        return self

    def _set_limits(self, layout: Layout) -> None:
        self.ax_.set_xlim(0.0, layout.size[0])
        self.ax_.set_ylim(0.0, layout.size[1])
        self.ax_.set_xticks([])
        self.ax_.set_yticks([])
        self.ax_.spines[:].set_visible(False)

    def _fitting_font(self, layout: Layout, font: float) -> float:
        """Shrink names for axes that are smaller than the graph would like."""
        frame = self.ax_.get_window_extent()
        points = np.array([frame.width, frame.height]) * 72 / self.figure_.dpi
        return float(max(_LEAST_FONT, font * min(1.0, (points / layout.size).min())))

    def _draw_lines(self, layout: Layout, lines: list[tuple[tuple[int, int], int]], n_labels: int) -> None:
        widths = _line_widths(self.graph)
        signs = self.graph.signs
        self.lines_ = []
        for pair, clique in lines:
            color, style, _ = _KINDS[1 if signs is None else int(signs[clique])]
            color = "#444444" if signs is None else color
            x, y = layout.places[list(pair)].T
            self.lines_ += self.ax_.plot(
                x, y, color=color, linestyle=style, linewidth=widths[clique], zorder=1
            )
        hubs = layout.places[n_labels:]
        if len(hubs):
            self.ax_.plot(*hubs.T, "D", color="#777777", markersize=5, zorder=2)

    def _write_names(self, layout: Layout, labels: list[int], texts: list[str], font: float) -> None:
        box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": "#999999", "linewidth": 0.7}
        self.texts_ = {
            label: self.ax_.text(*place, text, ha="center", va="center", fontsize=font, bbox=box, zorder=3)
            for label, place, text in zip(labels, layout.places, texts, strict=False)
        }
        for text in self.texts_.values():
            text.set_in_layout(False)  # they are inside the axes, whose size they must not change

    def _explain(self, columns: int) -> None:
        from matplotlib.lines import Line2D

        kinds = [] if self.graph.signs is None else [k for k in (1, -1, 0) if k in self.graph.signs.tolist()]
        handles = [
            Line2D([], [], color=_KINDS[k][0], linestyle=_KINDS[k][1], linewidth=2, label=_KINDS[k][2])
            for k in kinds
        ]
        weights = self.graph.weights
        if weights is not None and weights.max() > 0:
            widest = f"widest line: weight {weights.max():.3g}"
            handles.append(Line2D([], [], color="#444444", linewidth=_WIDTHS[1], label=widest))
        if handles:
            self.ax_.legend(
                handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0),
                ncols=min(columns, len(handles)), fontsize="small", frameon=False, handlelength=3.0,
            )  # fmt: skip


def _drawing(graph: CliqueGraph) -> tuple[list[int], list[tuple[tuple[int, int], int]], int]:
    """List the labels, the lines between nodes with their cliques, and count the points of larger cliques."""
    labels = sorted({label for clique in graph.cliques for label in clique})
    place = {label: number for number, label in enumerate(labels)}
    lines: list[tuple[tuple[int, int], int]] = []
    hubs = 0
    for number, clique in enumerate(graph.cliques):
        nodes = [place[label] for label in clique]
        if len(nodes) == 2:
            lines.append(((nodes[0], nodes[1]), number))
        else:
            lines += [((node, len(labels) + hubs), number) for node in nodes]
            hubs += 1
    return labels, lines, hubs


def _boxes(texts: list[str], hubs: int, font: float) -> npt.NDArray[np.float64]:
    sizes = [np.array([len(text), 1.0]) * _LETTER * font + _PADDING for text in texts]
    return np.array(sizes + [_PADDING] * hubs)


def _line_widths(graph: CliqueGraph) -> npt.NDArray[np.float64]:
    if graph.weights is None or graph.weights.max() <= 0:
        return np.full(graph.n_cliques, 1.5)
    low, high = _WIDTHS
    return np.asarray(low + (high - low) * np.maximum(graph.weights, 0) / graph.weights.max())


def _wrapped(note: str, width: float) -> list[str]:
    import textwrap

    return textwrap.wrap(note, max(30, int(width / 5.2)))
