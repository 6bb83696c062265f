"""How a label graph was learned: the objective and the held-out loss after every round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from labelweave.app.display.figures import given_axes, place_legend
from labelweave.app.display.given_labels import Names, fitted_model
from labelweave.app.display.label_texts import short_text
from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array

_HEIGHT = 4.6  # inches
_LEAST_WIDTH, _WIDTH_A_ROUND, _MOST_WIDTH = 5.6, 0.34, 12.0
_MOST_NAMED = 26  # rounds whose cliques are named
_LONGEST_NAME = 18
_OBJECTIVE, _LOSS = "#14538f", "#c0392b"


class LabelGraphPathDisplay:
    """The objective and the held-out Hamming loss against the number of cliques.

    Make one with :meth:`from_estimator`, which draws it.  Where the rounds are few the axis says which
    cliques each of them added; a vertical line is where the model stopped.

    Parameters
    ----------
    rounds : sequence of GraphRecord
        The rounds, the first one without cliques.
    label_names : sequence of str
        One name a label.
    n_kept : int
        The cliques that the model has.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes of the objective.
    loss_ax_ : matplotlib.axes.Axes or None
        The axes of the loss, over the same ones; None where no rows were held out.
    figure_ : matplotlib.figure.Figure
        Their figure.
    objective_line_, loss_line_ : matplotlib.lines.Line2D or None
        The two curves.

    Examples
    --------
    >>> from labelweave import LabelGraphClassifier
    >>> from labelweave.datasets import make_clique_toy
    >>> from labelweave.display import LabelGraphPathDisplay
    >>> data, _ = make_clique_toy(200)
    >>> model = LabelGraphClassifier(regularization=0.01, max_rounds=2, tol=0.05).fit(data.X, data.Y)
    >>> display = LabelGraphPathDisplay.from_estimator(model)
    >>> display.objective_line_.get_xdata().tolist()
    [0, 1, 2]
    """

    def __init__(self, rounds: Sequence[Any], label_names: Names, n_kept: int) -> None:
        self.rounds, self.label_names, self.n_kept = rounds, label_names, n_kept

    @classmethod
    @checked
    def from_estimator(cls, estimator: Any, **options: Any) -> Self:
        """Draw how the graph of a fitted model was learned.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted, with a ``graph_trace_``.
        **options : dict
            Further options: see :meth:`plot`.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        TypeError
            If its graph was not learned.
        """
        model = fitted_model(estimator)
        rounds = getattr(model, "graph_trace_", None)
        if not rounds:
            raise TypeError(
                f"This {type(model).__name__} has no learned graph, so there are no rounds to draw; fit a "
                'LabelGraphClassifier(graph="learn").'
            )
        graph = model.label_graph_
        return cls(rounds, graph.shown_labels(), graph.n_cliques).plot(**options)

    @checked
    def plot(self, ax: Any = None) -> Self:
        """Draw the picture; what all displays return or raise: see :meth:`LabelQualityDisplay.plot`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; by default a new figure.
        """
        width = min(_MOST_WIDTH, max(_LEAST_WIDTH, 2.5 + _WIDTH_A_ROUND * len(self.rounds)))
        self.ax_ = given_axes(ax, width, _HEIGHT)
        self.figure_ = self.ax_.figure
        counts = np.cumsum([len(record.cliques) for record in self.rounds])
        objectives = [record.primal for record in self.rounds]
        options = {"color": _OBJECTIVE, "markersize": 4, "label": "objective"}
        (self.objective_line_,) = self.ax_.plot(counts, objectives, "o-", **options)
        self.ax_.set_ylabel("Objective")
        self._draw_loss(counts)
        self._name_rounds(counts)
        self._mark_end(counts)
        return self

    def _draw_loss(self, counts: Array) -> None:
        losses = np.array([record.held_out_loss for record in self.rounds])
        self.loss_ax_ = self.loss_line_ = None
        if np.isnan(losses).all():
            return
        self.loss_ax_ = self.ax_.twinx()
        options = {"color": _LOSS, "markersize": 4, "label": "held-out Hamming loss"}
        (self.loss_line_,) = self.loss_ax_.plot(counts, losses, "s--", **options)
        self.loss_ax_.set_ylabel("Held-out Hamming loss")

    def _mark_end(self, counts: Array) -> None:
        curves = [line for line in (self.objective_line_, self.loss_line_) if line is not None]
        lines = list(curves)
        if self.n_kept < counts[-1]:
            label = f"model: {self.n_kept} clique{'' if self.n_kept == 1 else 's'}"
            lines.append(self.ax_.axvline(self.n_kept, color="#777777", linestyle=":", label=label))
        place_legend(self.loss_ax_ or self.ax_, curves, handles=lines)

    def _name_rounds(self, counts: Array) -> None:
        if len(self.rounds) > _MOST_NAMED or any(len(record.cliques) > 1 for record in self.rounds):
            self.ax_.set_xlabel("Cliques in the graph")
            return
        texts = [f"{self._words(record)}  {count}" for record, count in zip(self.rounds, counts, strict=True)]
        self.ax_.set_xticks(counts, texts, rotation=90, fontsize="small")
        self.ax_.set_xlabel("Cliques, and the one that each round added")

    def _words(self, record: Any) -> str:
        labels = record.cliques[0] if record.cliques else ()
        return ", ".join(short_text(self.label_names[label], _LONGEST_NAME) for label in labels) or "none"
