"""The quality of every label against its frequency."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from labelweave.app.display.figures import Display, name_points, read_choices
from labelweave.app.display.given_labels import Names, model_truth, named_labels, predicted_labels
from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array, Floats
from labelweave.foundation.arrays import numbers_of
from labelweave.metrics import f1_score, precision_score, recall_score

_LIKE_FREQUENCY = 1.5  # times
_SMALLEST_WINDOW = 5  # labels
_PLACES = 60
Measures: TypeAlias = Sequence[Literal["precision", "recall", "f1"]]

_SIZE = (4.6, 4.0)  # inches, of a panel
_METRICS: dict[str, tuple[str, Callable[..., Any]]] = {
    "precision": ("Precision", precision_score),
    "recall": ("Recall", recall_score),
    "f1": ("F1", f1_score),
}
_ALL_NAMED = 12  # largest number of labels that are all named
_ENOUGH_FOR_MEDIANS = 20  # labels
_LONGEST_JOINED = 24  # characters
_FEW_POINTS = 100  # names avoid up to this many points


def running_quartiles(frequency: Floats, values: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Compute quartiles over labels within a factor of 1.5 of each of 60 frequencies, at least 5 labels."""
    places = np.unique(np.geomspace(frequency[0], frequency[-1], _PLACES))
    centers = np.searchsorted(frequency, places)
    most = max(0, len(values) - _SMALLEST_WINDOW)
    first = np.clip(centers - _SMALLEST_WINDOW // 2, 0, most)
    starts = np.minimum(np.searchsorted(frequency, places / _LIKE_FREQUENCY), first)
    ends = np.maximum(np.searchsorted(frequency, places * _LIKE_FREQUENCY, "right"), first + _SMALLEST_WINDOW)
    windows = [values[start:end] for start, end in zip(starts, ends, strict=True)]
    low, middle, high = np.transpose([np.quantile(window, [0.25, 0.5, 0.75]) for window in windows])
    return places, low, middle, high


class LabelQualityDisplay(Display):
    """Precision, recall and F1 of every label against its number of positive rows.

    Unobserved entries are not counted.  With 20 labels or more, a line shows the running median and a band
    the middle half of the labels of similar frequency; the labels farthest below the median, in standard
    errors, are named.

    Parameters
    ----------
    frequency : array-like of shape (L,)
        Positive rows of each label.
    precision, recall, f1 : array-like of shape (L,)
        The metrics, NaN where they are undefined.
    label_names : sequence of str
        One name per label.
    quantity : str, default="Positive rows"
        Name of the horizontal axis.

    Attributes
    ----------
    named_ : list of list of str
        The texts next to points of each panel: a label's name; for overlapping points all names, or one and
        the number of others.

    Examples
    --------
    >>> from labelweave.display import LabelQualityDisplay
    >>> truth, predicted = [[1, 0], [1, 1], [0, 1]], [[1, 0], [1, 0], [1, 1]]
    >>> display = LabelQualityDisplay.from_predictions(truth, predicted, label_names=["old", "new"])
    >>> display.recall.tolist()
    [1.0, 0.5]
    """

    def __init__(
        self, frequency: ArrayLike, precision: ArrayLike, recall: ArrayLike, f1: ArrayLike,
        label_names: Names, quantity: str = "Positive rows",
    ) -> None:  # fmt: skip
        self.frequency, self.precision, self.recall, self.f1 = (
            np.asarray(values, dtype=np.float64) for values in (frequency, precision, recall, f1)
        )
        self.label_names = [str(name) for name in label_names]
        self.quantity = quantity

    @classmethod
    @checked
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, frequency: Any = None, **options: Any) -> Self:
        """Plot how well a fitted model predicts the labels of some rows.

        Parameters
        ----------
        estimator : estimator or Pipeline
            A fitted model.  All displays raise TypeError if it lacks what they plot.
        X : {array-like, sparse matrix, DataFrame} of n rows
            The rows.
        y : array-like of shape (n, L) or (n,), sparse matrix, DataFrame or LabelMatrix
            Their labels, NaN where not observed, or classes.
        frequency : array-like of shape (L,) or None, default=None
            Number of positive training rows per label, by default the counts in ``y``.
        **options : dict
            Further options: see :meth:`plot`.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ValueError
            If the requested scores are missing, or the labels cannot be read.
        """
        truth = model_truth(estimator, y)
        predicted = predicted_labels(estimator, X, truth)
        return cls.from_predictions(truth, predicted, frequency=frequency, **options)

    @classmethod
    @checked
    def from_predictions(
        cls, Y_true: Any, Y_pred: Any, *, frequency: Any = None, label_names: Names | None = None,
        **options: Any,
    ) -> Self:  # fmt: skip
        """Plot the quality of given predictions.

        Parameters
        ----------
        Y_true : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
            True labels, 0/1 or -1/1, NaN where not observed.
        Y_pred : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
            Predicted labels, 0/1 or -1/1.
        frequency : array-like of shape (L,) or None, default=None
            Number of positive training rows per label, by default the counts in ``Y_true``.
        label_names : sequence of str or None, default=None
            One name per label, by default those of ``Y_true`` or the columns of ``Y_pred``.
        **options : dict
            Further options: see :meth:`plot`.

        Raises
        ------
        ValueError
            If shapes disagree, nothing was observed, or a frequency is not a number of 0 or more.
        """
        truth = named_labels(Y_true, Y_pred, label_names)
        counts = truth.positive_counts()
        values = {
            key: np.asarray(metric(truth, Y_pred, average=None, zero_division=np.nan), dtype=np.float64)
            for key, (_, metric) in _METRICS.items()
        }
        values["f1"] = np.where(counts > 0, values["f1"], np.nan)  # F1 is undefined without positives
        quantity = "Positive rows" if frequency is None else "Positive rows in training"
        known = counts if frequency is None else _read_frequency(frequency, truth.n_labels)
        return cls(known, **values, label_names=truth.words, quantity=quantity).plot(**options)

    @checked
    def plot(
        self, ax: Any = None, *, measures: Measures | str = ("precision", "recall", "f1"), n_named: int = 10,
        **point_options: Any,
    ) -> Self:  # fmt: skip
        """Plot one panel per metric.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, array-like of them or None, default=None
            The axes to plot into, one per panel; by default a new figure of suitable size.
        measures : sequence of {"precision", "recall", "f1"}, default=("precision", "recall", "f1")
            The metrics to plot.
        n_named : int, default=10
            Maximum number of labels to name in a panel, if there are more than 12.
        **point_options : dict
            Such as ``color``: see :meth:`matplotlib.axes.Axes.scatter`.

        Returns
        -------
        Self
            The display itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed, or for label graphs networkx.
        ValueError
            If a measure is unknown, or there is not one axes per measure.
        """
        chosen = read_choices("measure", measures, _METRICS)
        panels = list(zip(self._begin_panels(ax, len(chosen), *_SIZE), chosen, strict=True))
        for axis, measure in panels:
            self._draw_points(axis, measure, point_options)
        self.named_ = [self._name(axis, measure, n_named) for axis, measure in panels]
        return self

    def _shown(self, measure: str) -> Array:
        """Return the indices of the labels with this metric, rare ones first."""
        values = getattr(self, measure)
        shown = np.flatnonzero(np.isfinite(values) & (self.frequency > 0))
        return shown[np.argsort(self.frequency[shown], kind="stable")]

    def _draw_points(self, ax: Any, measure: str, options: dict[str, Any]) -> None:
        shown, values = self._shown(measure), getattr(self, measure)
        size, alpha = (28, 0.9) if len(shown) <= _ENOUGH_FOR_MEDIANS else (14, 0.55)
        chosen = {"s": size, "alpha": alpha, "linewidths": 0, "color": "#1f5a92", **options}
        ax.scatter(self.frequency[shown], values[shown], **chosen)
        _set_log_axis(ax)
        if len(shown) >= _ENOUGH_FOR_MEDIANS:
            places, low, middle, high = running_quartiles(self.frequency[shown], values[shown])
            ax.fill_between(places, low, high, color="#d9822b", alpha=0.25, linewidth=0, zorder=0)
            ax.plot(places, middle, color="#b04a2f", linewidth=1.8)
        ax.set(ylim=(-0.03, 1.03), xlabel=self.quantity, ylabel=_METRICS[measure][0])
        ax.grid(alpha=0.3)
        omitted = len(values) - len(shown)
        if omitted:
            reason = "no positive rows" if measure != "precision" else "not predicted, or no positive rows"
            ax.set_title(f"{omitted} of {len(values)} labels omitted: {reason}", fontsize="small")

    def _name(self, ax: Any, measure: str, n_named: int) -> list[str]:
        shown, values = self._shown(measure), getattr(self, measure)
        order = self._weakest_first(shown, values)
        most = len(order) if len(order) <= _ALL_NAMED else n_named
        points = np.column_stack([self.frequency[order], values[order]])
        groups = _same_places(points)[: 3 * most]
        tried = points[[group[0] for group in groups]]
        texts = [_joined([self.label_names[order[k]] for k in group]) for group in groups]
        avoid = points if len(points) <= _FEW_POINTS else tried
        written = name_points(ax, tried[:, 0], tried[:, 1], texts, most=most, avoid=avoid)
        return [texts[k] for k in written]

    def _weakest_first(self, shown: Array, values: Floats) -> Array:
        """Order by the distance below labels of like frequency, in standard errors; few labels by value."""
        if len(shown) < _ENOUGH_FOR_MEDIANS:
            return shown[np.argsort(values[shown], kind="stable")]
        places, _, middle, _ = running_quartiles(self.frequency[shown], values[shown])
        usual = np.interp(np.log(self.frequency[shown]), np.log(places), middle)
        return shown[np.argsort((values[shown] - usual) * np.sqrt(self.frequency[shown]), kind="stable")]


def _same_places(points: Floats) -> list[list[int]]:
    """Group overlapping points, in the order of the first ones."""
    groups = dict[tuple[float, ...], list[int]]()
    for number, point in enumerate(points.tolist()):
        groups.setdefault(tuple(point), []).append(number)
    return list(groups.values())


def _joined(names: list[str]) -> str:
    """Join the names of overlapping points: all of them if that is short."""
    together = ", ".join(names)
    is_short = len(names) == 1 or len(together) <= _LONGEST_JOINED
    return together if is_short else f"{names[0]} +{len(names) - 1}"


def _set_log_axis(ax: Any) -> None:
    """Use plain numbers as ticks, with more ticks on a short axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    ax.set_xscale("log")
    low, high = ax.get_xlim()
    locator = LogLocator(subs=(1, 2, 5) if high < 50 * low else (1,))
    ax.xaxis.set_major_locator(MaxNLocator(4) if high < 5 * low else locator)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _read_frequency(frequency: Any, n_labels: int) -> Floats:
    counts = numbers_of(frequency, "frequency").astype(np.float64)
    if counts.shape != (n_labels,) or not (np.isfinite(counts) & (counts >= 0)).all():
        raise ValueError(
            f"frequency has shape {counts.shape} for {n_labels} labels; pass one number per label, 0 or more."
        )
    return counts
