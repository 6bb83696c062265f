"""Plots of label graphs: edges with their strengths and signs; and the growth of learned graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from labelweave.app.display import figures, graph_drawing
from labelweave.app.display.given_labels import Names, fitted_model
from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.labels.clique_graph import CliqueGraph

_MARGINS = np.array([24.0, 64.0])  # points around the graph: sideways, and for legend and note
_LEGEND_ENTRY = 130.0
# color, line and words of a sign; lines must also differ in print without colors
_KINDS: dict[int, tuple[str, Any, str]] = {
    1: ("#14538f", "solid", "together"),
    -1: ("#c0392b", (0, (4, 2)), "apart"),
    0: ("#777777", (0, (1, 1.5)), "depends on the row"),
}
_HEIGHT = 4.6  # inches
_LEAST_WIDTH, _WIDTH_A_ROUND, _MOST_WIDTH = 5.6, 0.34, 12.0
_MOST_NAMED = 26  # largest number of rounds whose cliques are named
_LONGEST_NAME = 18
_OBJECTIVE, _LOSS = "#14538f", "#c0392b"
_LOSS_NAMES = {"hamming": "Hamming loss", "subset": "subset 0/1 loss", "f1": "F1 loss"}


class LabelGraphDisplay(figures.Display):
    """Labels as names and their cliques as lines, wider for stronger ones.

    A clique of more than two labels is a point with a line to each label.

    Parameters
    ----------
    graph : CliqueGraph
        The graph to plot, with the cliques in the order of their strength.
    label_names : sequence of str
        One name per label.
    note : str, default=""
        A note below the plot.

    Attributes
    ----------
    ax_, figure_, lines_ : matplotlib.axes.Axes, Figure and list of Line2D
        The plot's axes and figure, and the lines of the cliques.
    texts_ : dict of int to matplotlib.text.Text
        The name of every plotted label.

    Examples
    --------
    >>> from labelweave import CliqueGraph
    >>> from labelweave.display import LabelGraphDisplay
    >>> graph = CliqueGraph(4, [(0, 1), (1, 2)], ["sea", "beach", "city", "road"], [2.0, 1.0], [1, -1])
    >>> display = LabelGraphDisplay.from_graph(graph)
    >>> display.note
    'without edges: road'
    """

    def __init__(self, graph: CliqueGraph, label_names: Names, note: str = "") -> None:
        self.graph, self.label_names, self.note = graph, label_names, note
        self._whole = graph

    @classmethod
    @checked
    def from_graph(
        cls, graph: CliqueGraph, label_names: Names | None = None, *, max_cliques: int = 50, **options: Any
    ) -> Self:
        """Plot a graph.

        Parameters
        ----------
        graph : CliqueGraph
            The graph.
        label_names : sequence of str or None, default=None
            One name per label; by default those of the graph, else the labels' numbers.
        max_cliques : int, default=50
            Maximum number of cliques to show: the strongest, or the first if strengths are unknown.
        **options : dict
            Further options: see :meth:`plot`.

        Raises
        ------
        ValueError
            If there are no cliques to plot, or there is not one name per label.
        """
        if max_cliques < 1:
            raise ValueError(f"max_cliques is {max_cliques}; it must be at least 1.")
        if not graph.n_cliques:
            raise ValueError("The graph has no cliques to plot.")
        names = graph_drawing.names_of(graph, label_names)
        shown = graph_drawing.strongest(graph, max_cliques)
        display = cls(shown, names, graph_drawing.omitted_note(graph, shown, names))
        display._whole = graph
        return display.plot(**options)

    @classmethod
    @checked
    def from_estimator(cls, estimator: Any, **options: Any) -> Self:
        """Plot the ``label_graph_`` of a fitted model; TypeError if it has none.

        For the model see :meth:`LabelQualityDisplay.from_estimator`; the options are those of
        :meth:`from_graph`.
        """
        model = fitted_model(estimator)
        graph = getattr(model, "label_graph_", None)
        if not isinstance(graph, CliqueGraph):
            raise TypeError(
                f"{type(model).__name__} has no label_graph_ to plot; pass a LabelGraphClassifier, or plot a "
                "graph with from_graph."
            )
        return cls.from_graph(graph, **options)

    @checked
    def plot(self, ax: Any = None, *, legend: bool = True) -> Self:
        """Plot the graph; for ``ax`` see :meth:`LabelQualityDisplay.plot`.

        Axes that are too small for all names show only the strongest cliques, with a note.

        Parameters
        ----------
        legend : bool, default=True
            Whether to add a legend of lines and widths.
        """
        if ax is None:
            drawing = graph_drawing.graph_drawing(self.graph, self.label_names)
            size = drawing.size + _MARGINS
        else:
            size = np.array(figures.size_in_points(figures.checked_axes(ax)))
            drawing = graph_drawing.fitting_drawing(self.graph, self.label_names, size)
        self._begin(ax, *(size / 72))
        self.ax_.set(xlim=(0.0, drawing.size[0]), ylim=(0.0, drawing.size[1]), xticks=[], yticks=[])
        self.ax_.spines[:].set_visible(False)
        self._draw_lines(drawing)
        self._write_names(drawing)
        if legend:
            self._explain(drawing.graph, max(1, int(size[0] / _LEGEND_ENTRY)))
        note = self.note
        if drawing.graph.n_cliques < self.graph.n_cliques:
            note = graph_drawing.omitted_note(self._whole, drawing.graph, np.asarray(self.label_names))
        if note:
            self.ax_.set_xlabel(figures.wrapped_text(note, size[0]), fontsize="small")
        return self

    def _draw_lines(self, drawing: graph_drawing.GraphDrawing) -> None:
        widths = graph_drawing.line_widths(drawing.graph)
        signs, places = drawing.graph.signs, drawing.places
        self.lines_ = []
        for pair, clique in drawing.lines:
            color, style, _ = _KINDS[1 if signs is None else int(signs[clique])]
            color = "#444444" if signs is None else color
            options = {"color": color, "linestyle": style, "linewidth": widths[clique], "zorder": 1}
            self.lines_ += self.ax_.plot(*places[list(pair)].T, **options)
        hubs = places[len(drawing.labels) :]
        if len(hubs):
            self.ax_.plot(*hubs.T, "D", color="#777777", markersize=5, zorder=2)

    def _write_names(self, drawing: graph_drawing.GraphDrawing) -> None:
        box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": "#999999", "linewidth": 0.7}
        options = {"ha": "center", "va": "center", "fontsize": drawing.font, "bbox": box, "zorder": 3}
        options["in_layout"] = False  # they are inside the axes and must not change their size
        self.texts_ = {
            label: self.ax_.text(*place, figures.short_text(text, graph_drawing.LONGEST_NAME), **options)
            for label, place, text in zip(drawing.labels, drawing.places, drawing.texts, strict=False)
        }

    def _explain(self, graph: CliqueGraph, columns: int) -> None:
        from matplotlib.lines import Line2D

        kinds = [] if graph.signs is None else [k for k in (1, -1, 0) if k in graph.signs.tolist()]
        handles = [
            Line2D([], [], color=_KINDS[k][0], linestyle=_KINDS[k][1], linewidth=2, label=_KINDS[k][2])
            for k in kinds
        ]
        weights = graph.weights
        if weights is not None and weights.max() > 0:
            widest = f"widest line: weight {weights.max():.3g}"
            handles.append(Line2D([], [], color="#444444", linewidth=graph_drawing.WIDEST_LINE, label=widest))
        if handles:
            self.ax_.legend(
                handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0),
                ncols=min(columns, len(handles)), fontsize="small", frameon=False, handlelength=3.0,
            )  # fmt: skip


class LabelGraphPathDisplay(figures.Display):
    """The objective and the held-out loss against the number of cliques.

    If there are few rounds, the axis names the cliques that each of them added; a vertical line marks the
    fitted model.

    Parameters
    ----------
    rounds : sequence of GraphRecord
        The rounds, the first one without cliques.
    label_names : sequence of str
        One name per label.
    n_kept : int
        The number of cliques of the model.
    loss : str, default="Hamming loss"
        The name of the held-out loss.

    Attributes
    ----------
    ax_, loss_ax_, figure_ : matplotlib.axes.Axes, Axes or None, and Figure
        The axes of the objective, and those of the loss over them; None if no rows were held out.
    objective_line_, loss_line_ : matplotlib.lines.Line2D or None
        The two curves.

    Examples
    --------
    >>> from labelweave import GraphGrowth, LabelGraphClassifier
    >>> from labelweave.datasets import make_clique_toy
    >>> from labelweave.display import LabelGraphPathDisplay
    >>> data, _ = make_clique_toy(200)
    >>> model = LabelGraphClassifier(GraphGrowth(max_rounds=2), 0.01, tol=0.05)
    >>> display = LabelGraphPathDisplay.from_estimator(model.fit(data.X, data.Y))
    >>> display.objective_line_.get_xdata().tolist()
    [0, 1, 2]
    """

    def __init__(
        self, rounds: Sequence[Any], label_names: Names, n_kept: int, loss: str = "Hamming loss"
    ) -> None:
        self.rounds, self.label_names, self.n_kept, self.loss = rounds, label_names, n_kept, loss

    @classmethod
    @checked
    def from_estimator(cls, estimator: Any, **options: Any) -> Self:
        """Plot how the graph of a fitted model was learned; TypeError if it was not learned.

        For the model see :meth:`LabelQualityDisplay.from_estimator`; the options are those of :meth:`plot`.
        """
        model = fitted_model(estimator)
        rounds = getattr(model, "graph_trace_", None)
        if not rounds:
            raise TypeError(
                f"This {type(model).__name__} has no learned graph, so there are no rounds to plot; fit a "
                'LabelGraphClassifier(graph="learn").'
            )
        graph = model.label_graph_
        loss = _LOSS_NAMES[model.loss]
        return cls(rounds, graph.shown_labels(), graph.n_cliques, loss).plot(**options)

    @checked
    def plot(self, ax: Any = None) -> Self:
        """Plot the curves; see :meth:`LabelQualityDisplay.plot`."""
        width = min(_MOST_WIDTH, max(_LEAST_WIDTH, 2.5 + _WIDTH_A_ROUND * len(self.rounds)))
        self._begin(ax, width, _HEIGHT)
        known: set[tuple[int, ...]] = set()
        counts = np.array([len(known := known.union(record.cliques)) for record in self.rounds])
        objectives = [record.primal for record in self.rounds]
        self.objective_line_ = _curve(self.ax_, counts, objectives, "o-", _OBJECTIVE, "Objective")
        losses = np.array([record.held_out_loss for record in self.rounds])
        self.loss_ax_ = self.loss_line_ = None
        if not np.isnan(losses).all():
            self.loss_ax_ = self.ax_.twinx()
            self.loss_line_ = _curve(self.loss_ax_, counts, losses, "s--", _LOSS, f"Held-out {self.loss}")
        self._name_rounds(counts)
        curves = [line for line in (self.objective_line_, self.loss_line_) if line is not None]
        lines = list(curves)
        if self.n_kept < counts[-1]:
            label = f"model: {self.n_kept} clique{'' if self.n_kept == 1 else 's'}"
            lines.append(self.ax_.axvline(self.n_kept, color="#777777", linestyle=":", label=label))
        figures.place_legend(self.loss_ax_ or self.ax_, curves, handles=lines)
        return self

    def _name_rounds(self, counts: Array) -> None:
        if len(self.rounds) > _MOST_NAMED or any(len(record.cliques) > 1 for record in self.rounds):
            self.ax_.set_xlabel("Cliques in the graph")
            return
        texts = [f"{self._words(record)}  {count}" for record, count in zip(self.rounds, counts, strict=True)]
        self.ax_.set_xticks(counts, texts, rotation=90, fontsize="small")
        self.ax_.set_xlabel("Cliques, and the one added in each round")

    def _words(self, record: Any) -> str:
        labels = record.cliques[0] if record.cliques else ()
        return (
            ", ".join(figures.short_text(self.label_names[label], _LONGEST_NAME) for label in labels)
            or "none"
        )


def _curve(ax: Any, counts: Array, values: Any, style: str, color: str, name: str) -> Any:
    label = name[0].lower() + name[1:]
    (line,) = ax.plot(counts, values, style, color=color, markersize=4, label=label)
    ax.set_ylabel(name)
    return line
