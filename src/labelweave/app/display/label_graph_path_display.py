"""How a label graph was learned: the objective and the held-out loss after every round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from labelweave.app.display.figures import Display, place_legend, short_text
from labelweave.app.display.given_labels import Names, fitted_model
from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array

_HEIGHT = 4.6  # inches
_LEAST_WIDTH, _WIDTH_A_ROUND, _MOST_WIDTH = 5.6, 0.34, 12.0
_MOST_NAMED = 26  # rounds whose cliques are named
_LONGEST_NAME = 18
_OBJECTIVE, _LOSS = "#14538f", "#c0392b"


class LabelGraphPathDisplay(Display):
    """The objective and the held-out Hamming loss against the number of cliques.

    Where the rounds are few the axis says which cliques each of them added; a vertical line is where the
    model stopped.

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
    ax_, loss_ax_, figure_ : matplotlib.axes.Axes, Axes or None, and Figure
        The axes of the objective, and those of the loss over them; None where no rows were held out.
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
        """Draw how the graph of a fitted model was learned, TypeError if it was not.

        For the model see :meth:`LabelQualityDisplay.from_estimator`; the options are those of :meth:`plot`.
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
        """Draw the picture; see :meth:`LabelQualityDisplay.plot`."""
        width = min(_MOST_WIDTH, max(_LEAST_WIDTH, 2.5 + _WIDTH_A_ROUND * len(self.rounds)))
        self._begin(ax, width, _HEIGHT)
        counts = np.cumsum([len(record.cliques) for record in self.rounds])
        objectives = [record.primal for record in self.rounds]
        self.objective_line_ = _curve(self.ax_, counts, objectives, "o-", _OBJECTIVE, "Objective")
        losses = np.array([record.held_out_loss for record in self.rounds])
        self.loss_ax_ = self.loss_line_ = None
        if not np.isnan(losses).all():
            self.loss_ax_ = self.ax_.twinx()
            self.loss_line_ = _curve(self.loss_ax_, counts, losses, "s--", _LOSS, "Held-out Hamming loss")
        self._name_rounds(counts)
        curves = [line for line in (self.objective_line_, self.loss_line_) if line is not None]
        lines = list(curves)
        if self.n_kept < counts[-1]:
            label = f"model: {self.n_kept} clique{'' if self.n_kept == 1 else 's'}"
            lines.append(self.ax_.axvline(self.n_kept, color="#777777", linestyle=":", label=label))
        place_legend(self.loss_ax_ or self.ax_, curves, handles=lines)
        return self

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


def _curve(ax: Any, counts: Array, values: Any, style: str, color: str, name: str) -> Any:
    label = name[0].lower() + name[1:]
    (line,) = ax.plot(counts, values, style, color=color, markersize=4, label=label)
    ax.set_ylabel(name)
    return line
