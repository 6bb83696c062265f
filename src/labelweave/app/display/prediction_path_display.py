"""The predicted classes of one row, with their ancestors and the next most probable classes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from labelweave.app.display.figures import Display, short_text, spread
from labelweave.app.display.given_labels import fitted_model, names_list
from labelweave.app.display.taxonomy_display import taxonomy_of_model
from labelweave.foundation.arguments import checked
from labelweave.foundation.arrays import numbers_of
from labelweave.labels import Taxonomy
from labelweave.labels.label_names import checked_names

_MOST_NODES = 60
_BOX_WIDTH, _BOX_HEIGHT = 0.8, 0.74  # of a column and a line
_COLUMN, _LINE = 1.9, 0.42  # inches
_LETTERS = 22  # of a name in a box
_DARK = 0.7  # probability from which letters are white
_EDGE, _DIM = "0.35", "0.7"
_STRONGEST = 0.75  # of the color map, so that letters are readable


class PredictionPathDisplay(Display):
    """The predicted nodes of one row, from left to right, with their probabilities.

    Each node is a box, darker if it is more probable; nodes that are not predicted have a dashed frame.
    Lines connect a node to its children.

    Parameters
    ----------
    taxonomy : Taxonomy
        The hierarchy.
    probabilities : dict of str to float
        The probability of each plotted node.
    predicted : set of str
        The predicted nodes.

    See Also
    --------
    TaxonomyDisplay : The errors of many rows at every node.
    labelweave.postprocessing.term_lists : The same as text, of many rows.

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
    def from_estimator(cls, estimator: Any, X: Any, *, taxonomy: Any = None, **options: Any) -> Self:
        """Plot the prediction of a fitted model for a row; TypeError if it has no ``predict_proba``.

        For model and errors see :meth:`LabelQualityDisplay.from_estimator`; the options are those of
        :meth:`from_predictions`.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of one row
            The row.
        taxonomy : Taxonomy, or what ``Taxonomy.from_any`` reads, or None, default=None
            The hierarchy, by default that of the model.
        """
        model = fitted_model(estimator)
        graph = taxonomy_of_model(model, taxonomy)
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"The {type(model).__name__} has no probabilities; wrap it in CalibratedLabelClassifier."
            )
        table = np.asarray(estimator.predict_proba(X))
        if len(table) != 1:
            raise ValueError(f"X has {len(table)} rows; pass one row to plot its prediction.")
        names = [str(name) for name in estimator.classes_]
        return cls.from_predictions(graph, estimator.predict(X), table, names, **options)

    @classmethod
    @checked
    def from_predictions(
        cls, taxonomy: Any, y_pred: Any, probabilities: Any, label_names: Any, *, others: int = 4,
        **options: Any,
    ) -> Self:  # fmt: skip
        """Plot a given prediction.

        Parameters
        ----------
        taxonomy : Taxonomy, or what ``Taxonomy.from_any`` reads
            The hierarchy.
        y_pred : str, or array-like of shape (1,), (L,) or (1, L)
            A class, or 1 for predicted labels and 0 for others.
        probabilities : array-like of shape (L,) or (1, L)
            The probabilities of the classes or labels.
        label_names : sequence of L str
            Their names, each of a node.
        others : int, default=4
            How many of the most probable classes that are not predicted to plot too.
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
            raise ValueError(f"others is {others}; pass 0 or the number of further classes to plot.")
        if not np.isfinite(shares).all():
            raise ValueError("The probabilities are not all finite; pass finite ones.")
        under = graph.membership(names).toarray() > 0
        found, chosen = _read_prediction(y_pred, names)
        if found is None:  # a node without a label has the probability of its most probable descendant
            values = np.where(under, shares[:, None], 0.0).max(axis=0)
            values[graph._numbers(names)] = shares
        else:  # probabilities of classes add up, since a row has one class
            values = shares @ under
        predicted = under[chosen].any(axis=0)
        drawn = {graph.nodes[k]: float(values[k]) for k in _shown(under, chosen, shares, others)}
        return cls(graph, drawn, {graph.nodes[k] for k in np.flatnonzero(predicted)}).plot(**options)

    def plot(self, ax: Any = None, *, cmap: Any = "Blues") -> Self:
        """Plot the nodes; for ``ax`` see :meth:`LabelQualityDisplay.plot`.

        Parameters
        ----------
        cmap : str or Colormap, default="Blues"
            Colors from probability 0 to 1.
        """
        from matplotlib import colormaps
        from matplotlib.patches import Rectangle

        places = self._places()
        columns, lines = (max((place[k] for place in places.values()), default=0) + 1 for k in (0, 1))
        self._begin(ax, max(4.0, _COLUMN * columns), max(1.6, 0.5 + _LINE * lines))
        colors = colormaps[cmap] if isinstance(cmap, str) else cmap
        for above, below in self.taxonomy.pairs():
            if above in places and below in places:
                (x, y), end = places[above], places[below]
                color = _EDGE if {above, below} <= self.predicted else _DIM
                self.ax_.plot([x + _BOX_WIDTH, end[0]], [y, end[1]], color=color, linewidth=1, zorder=0)
        for name, (x, y) in places.items():
            share = self.probabilities[name]
            color, style = (_EDGE, "-") if name in self.predicted else (_DIM, "--")
            fill = colors(_STRONGEST * min(max(share, 0.0), 1.0))
            low, look = y - _BOX_HEIGHT / 2, {"ha": "center", "va": "center", "linespacing": 1.0}
            box = Rectangle(
                (x, low), _BOX_WIDTH, _BOX_HEIGHT, facecolor=fill, edgecolor=color, linestyle=style
            )
            self.ax_.add_patch(box)
            text, color = f"{short_text(name, _LETTERS)}\n{share:.2g}", "white" if share > _DARK else "black"
            self.ax_.text(x + _BOX_WIDTH / 2, y, text, fontsize="x-small", color=color, **look)
        self.ax_.set(xlim=(-0.05, columns - 0.15), ylim=(lines - 0.4, -0.6), xticks=[], yticks=[])
        self.ax_.spines[:].set_visible(False)
        shown = sum(name in self.predicted for name in places)
        part = f"{shown} of {len(self.predicted)}" if shown < len(self.predicted) else f"{shown}"
        self.ax_.set_title(f"{part} nodes predicted; dashed: not predicted", fontsize="medium")
        return self

    def _places(self) -> dict[str, tuple[int, float]]:
        """Return the column and line of every node: its largest depth, and a line near its descendants."""
        nodes = [name for name in self.taxonomy.nodes if name in self.probabilities]
        column: dict[str, int] = {}
        below: dict[str, list[str]] = {name: [] for name in nodes}
        for name in nodes:  # parents before their children
            parents = [up for up in self.taxonomy.parents.get(name, ()) if up in below]
            column[name] = max((column[up] + 1 for up in parents), default=0)
            for up in parents:
                below[up].append(name)
        line: dict[str, float] = {}

        def place(name: str) -> float:
            """Place leaves in a column, and other nodes in the middle of their descendants."""
            if name not in line:
                own = [place(down) for down in below[name]]
                line[name] = float(np.mean(own)) if own else float(sum(not below[other] for other in line))
            return line[name]

        for name in nodes:
            if not column[name]:
                place(name)
        for number in range(max(column.values(), default=-1) + 1):
            level = sorted((name for name in nodes if column[name] == number), key=line.__getitem__)
            ends = np.array([line[name] for name in level])
            line |= zip(level, spread(ends, 1.0, 0.0, max(len(nodes), 1.0)).tolist(), strict=True)
        return {name: (column[name], line[name]) for name in nodes}


def _read_prediction(y_pred: Any, names: list[str]) -> tuple[str | None, np.ndarray]:
    """Read a class, or a set of labels; return its name or None, and the indices of predicted nodes."""
    dense = getattr(y_pred, "to_dense", getattr(y_pred, "toarray", lambda: y_pred))
    values = np.asarray(dense(), dtype=object).ravel()
    if len(values) == 1 and str(values[0]) in names and len(names) > 1:
        return str(values[0]), np.array([names.index(str(values[0]))])
    if len(values) != len(names):
        raise ValueError(
            f"y_pred has {len(values)} values for {len(names)} names; pass one of them, or 0 or 1 for each."
        )
    return None, np.flatnonzero(values.astype(np.float64) > 0)


def _shown(under: np.ndarray, chosen: np.ndarray, shares: np.ndarray, others: int) -> np.ndarray:
    """Return the nodes to plot: the most probable predicted ones, others, and all their ancestors."""
    rest = np.setdiff1d(np.argsort(-shares, kind="stable"), chosen, assume_unique=True)
    found = np.zeros(under.shape[1], np.bool_)
    for label in [*chosen[np.argsort(-shares[chosen], kind="stable")], *rest[:others]]:
        more = found | under[label]
        if more.sum() > _MOST_NODES and found.any():
            break
        found = more
    return np.flatnonzero(found)
