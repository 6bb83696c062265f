"""The classes predicted of one row, with all that is above them and what came next."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from labelweave.app.display.figures import given_axes
from labelweave.app.display.given_labels import fitted_model, names_list
from labelweave.app.display.label_texts import short_text, spread
from labelweave.app.display.taxonomy_display import taxonomy_of_model
from labelweave.foundation.arguments import checked
from labelweave.foundation.arrays import numbers_of
from labelweave.labels import Taxonomy
from labelweave.labels.label_names import checked_names

_MOST_NODES = 60
_BOX_WIDTH, _BOX_HEIGHT = 0.8, 0.74  # of a column and a line
_COLUMN, _LINE = 1.9, 0.42  # inches
_LETTERS = 22  # of a name in a box
_DARK = 0.7  # from this probability letters are white
_EDGE, _DIM = "0.35", "0.7"
_STRONGEST = 0.75  # of the colours, so that letters can be read


class PredictionPathDisplay:
    """The nodes predicted of one row, from left to right, with their probabilities.

    A box a node, darker where it is more probable; those that are not predicted have a dashed frame. Lines go
    from a node to those right below it.  Make one with :meth:`from_estimator` or :meth:`from_predictions`,
    which draw it.

    Parameters
    ----------
    taxonomy : Taxonomy
        The hierarchy.
    probabilities : dict of str to float
        The probability of each node that is drawn.
    predicted : set of str
        Those that are predicted.

    Attributes
    ----------
    ax_, figure_ : matplotlib.axes.Axes and matplotlib.figure.Figure
        Where the picture is.

    See Also
    --------
    TaxonomyDisplay : The errors of many rows at every node.
    labelweave.inference.term_lists : The same as text, of many rows.

    Examples
    --------
    >>> from labelweave import Taxonomy
    >>> from labelweave.display import PredictionPathDisplay
    >>> tree = Taxonomy.from_nested({"animal": ["dog", "cat"], "plant": None})
    >>> names = ["dog", "cat", "plant"]
    >>> display = PredictionPathDisplay.from_predictions(tree, "dog", [0.6, 0.3, 0.1], names)
    >>> {name: round(share, 2) for name, share in display.probabilities.items()}
    {'animal': 0.9, 'dog': 0.6, 'cat': 0.3, 'plant': 0.1}
    """

    def __init__(self, taxonomy: Taxonomy, probabilities: dict[str, float], predicted: set[str]) -> None:
        self.taxonomy, self.probabilities, self.predicted = taxonomy, probabilities, predicted

    @classmethod
    @checked
    def from_estimator(
        cls, estimator: Any, X: Any, *, taxonomy: Any = None, others: int = 4, **options: Any
    ) -> Self:
        """Draw what a fitted model predicts of a row.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted, with ``predict_proba``, of classes or labels that are nodes.
        X : {array-like, sparse matrix, DataFrame} of one row
            The row.
        taxonomy : Taxonomy, or what ``Taxonomy.from_any`` reads, or None, default=None
            The hierarchy, by default the one that the model was fitted with.
        others : int, default=4
            How many classes that are not predicted are drawn too, the most probable ones.
        **options : dict
            Further options: see :meth:`plot`.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        TypeError
            If it has no taxonomy and none is given, or no probabilities.
        ValueError
            If X has not one row.
        """
        model = fitted_model(estimator)
        graph = taxonomy_of_model(model, taxonomy)
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"The {type(model).__name__} has no probabilities; put CalibratedLabelClassifier around it."
            )
        table = np.asarray(estimator.predict_proba(X))
        if len(table) != 1:
            raise ValueError(f"X has {len(table)} rows; give the one row whose prediction is to be drawn.")
        names = [str(name) for name in estimator.classes_]
        return cls.from_predictions(graph, estimator.predict(X), table, names, others=others, **options)

    @classmethod
    @checked
    def from_predictions(
        cls, taxonomy: Any, y_pred: Any, probabilities: Any, label_names: Any, *, others: int = 4,
        **options: Any,
    ) -> Self:  # fmt: skip
        """Draw a given prediction.

        Parameters
        ----------
        taxonomy : Taxonomy, or what ``Taxonomy.from_any`` reads
            The hierarchy.
        y_pred : str, or array-like of shape (1,), (L,) or (1, L)
            A class, or 1 for labels that are predicted and 0 for others.
        probabilities : array-like of shape (L,) or (1, L)
            The probabilities of the classes or labels.
        label_names : sequence of L str
            Their names, each of a node.
        others : int, default=4
            How many classes that are not predicted are drawn too, the most probable ones.
        **options : dict
            Further options: see :meth:`plot`.

        Raises
        ------
        ValueError
            If a name is no node, shapes disagree, or ``others`` is below 0.
        """
        graph, shares = Taxonomy.from_any(taxonomy), numbers_of(probabilities, "probabilities").ravel()
        names = names_list(label_names)
        checked_names(names, len(shares))
        if others < 0:
            raise ValueError(f"others is {others}; give 0 or the number of further classes to draw.")
        if not np.isfinite(shares).all():
            raise ValueError("The probabilities are not all finite; give finite ones.")
        under = graph.membership(names).toarray() > 0
        found, chosen = _read_prediction(y_pred, names)
        if found is None:  # of labels the most probable one below stands for a node without a label
            values = np.where(under, shares[:, None], 0.0).max(axis=0)
            values[graph._numbers(names)] = shares
        else:  # of classes, of which there is one, they add up
            values = shares @ under
        is_shown = _shown(under, chosen, shares, others)
        predicted = under[chosen].any(axis=0)
        nodes = np.flatnonzero(is_shown)
        drawn = {graph.nodes[k]: float(values[k]) for k in nodes}
        return cls(graph, drawn, {graph.nodes[k] for k in np.flatnonzero(predicted)}).plot(**options)

    def plot(self, ax: Any = None, *, cmap: Any = "Blues") -> Self:
        """Draw the picture; what all displays return or raise: see :meth:`LabelQualityDisplay.plot`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; by default a new figure of a size that suits it.
        cmap : str or Colormap, default="Blues"
            Colours from probability 0 to 1.
        """
        from matplotlib import colormaps
        from matplotlib.patches import Rectangle

        places = self._places()
        columns, lines = (max((place[k] for place in places.values()), default=0) + 1 for k in (0, 1))
        self.ax_ = given_axes(ax, max(4.0, _COLUMN * columns), max(1.6, 0.5 + _LINE * lines))
        self.figure_ = self.ax_.figure
        colors = colormaps[cmap] if isinstance(cmap, str) else cmap
        for above, below in self.taxonomy.pairs():
            if above in places and below in places:
                (x, y), (x_below, y_below) = places[above], places[below]
                both = {above, below} <= self.predicted
                self.ax_.plot(
                    [x + _BOX_WIDTH, x_below],
                    [y, y_below],
                    color=_EDGE if both else _DIM,
                    linewidth=1,
                    zorder=0,
                )
        for name, (x, y) in places.items():
            share, is_predicted = self.probabilities[name], name in self.predicted
            self.ax_.add_patch(
                Rectangle(
                    (x, y - _BOX_HEIGHT / 2), _BOX_WIDTH, _BOX_HEIGHT,
                    facecolor=colors(_STRONGEST * min(max(share, 0.0), 1.0)),
                    edgecolor=_EDGE if is_predicted else _DIM, linestyle="-" if is_predicted else "--",
                )
            )  # fmt: skip
            self.ax_.text(
                x + _BOX_WIDTH / 2, y, f"{short_text(name, _LETTERS)}\n{share:.2g}", ha="center", va="center",
                fontsize="x-small", color="white" if share > _DARK else "black", linespacing=1.0,
            )  # fmt: skip
        self.ax_.set(xlim=(-0.05, columns - 0.15), ylim=(lines - 0.4, -0.6), xticks=[], yticks=[])
        self.ax_.spines[:].set_visible(False)
        shown = sum(name in self.predicted for name in places)
        part = f"{shown} of {len(self.predicted)}" if shown < len(self.predicted) else f"{shown}"
        self.ax_.set_title(f"{part} nodes predicted; dashed: not predicted", fontsize="medium")
        return self

    def _places(self) -> dict[str, tuple[int, float]]:
        """Give the column and line of every node: of its longest way from a root, near what is below it."""
        parents = self.taxonomy.parents
        nodes = [name for name in self.taxonomy.nodes if name in self.probabilities]
        column: dict[str, int] = {}

        def depth(name: str) -> int:
            if name not in column:
                column[name] = max((1 + depth(up) for up in parents.get(name, ()) if up in drawn), default=0)
            return column[name]

        drawn = set(nodes)
        for name in nodes:
            depth(name)
        below: dict[str, list[str]] = {name: [] for name in nodes}
        for name in nodes:
            for up in parents.get(name, ()):
                if up in drawn:
                    below[up].append(name)
        line: dict[str, float] = {}
        for name in self._in_order(nodes, below):
            own = [line[down] for down in below[name] if down in line]
            line[name] = float(np.mean(own)) if own else float(sum(not below[other] for other in line))
        for number in range(max(column.values(), default=-1) + 1):
            level = sorted((name for name in nodes if column[name] == number), key=line.__getitem__)
            ends = np.array([line[name] for name in level])
            for name, place in zip(level, spread(ends, 1.0, 0.0, max(len(nodes), 1.0)), strict=True):
                line[name] = float(place)
        return {name: (column[name], line[name]) for name in nodes}

    @staticmethod
    def _in_order(nodes: list[str], below: dict[str, list[str]]) -> list[str]:
        """List nodes after those below them, branch by branch."""
        order: list[str] = []
        seen: set[str] = set()

        def visit(name: str) -> None:
            if name not in seen:
                seen.add(name)
                for down in below[name]:
                    visit(down)
                order.append(name)

        children = {down for downs in below.values() for down in downs}
        for name in [name for name in nodes if name not in children]:
            visit(name)
        return order


def _read_prediction(y_pred: Any, names: list[str]) -> tuple[str | None, np.ndarray]:
    """Read a class, or a set of labels; give its name or None, and the places of what is predicted."""
    if hasattr(y_pred, "to_dense") or hasattr(y_pred, "toarray"):
        y_pred = y_pred.to_dense() if hasattr(y_pred, "to_dense") else y_pred.toarray()
    values = np.asarray(y_pred, dtype=object).ravel()
    if len(values) == 1 and str(values[0]) in names and len(names) > 1:
        return str(values[0]), np.array([names.index(str(values[0]))])
    if len(values) != len(names):
        raise ValueError(
            f"y_pred has {len(values)} values for {len(names)} names; give one of them, or 0 or 1 for each."
        )
    return None, np.flatnonzero(values.astype(np.float64) > 0)


def _shown(under: np.ndarray, chosen: np.ndarray, shares: np.ndarray, others: int) -> np.ndarray:
    """Say which nodes are drawn: what is predicted, the most probable ones first, others, and all above."""
    rest = np.setdiff1d(np.argsort(-shares, kind="stable"), chosen, assume_unique=True)
    found = np.zeros(under.shape[1], np.bool_)
    for label in [*chosen[np.argsort(-shares[chosen], kind="stable")], *rest[:others]]:
        more = found | under[label]
        if more.sum() > _MOST_NODES and found.any():
            break
        found = more
    return found
