"""F1, precision and recall against the threshold, with the chosen one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from labelweave.app.display import given_labels
from labelweave.app.display.figures import Display, legend_text, place_legend, read_choices
from labelweave.app.display.given_labels import Names
from labelweave.decisions.label_scores import decision_level
from labelweave.decisions.layers import shown_thresholds
from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array, Floats
from labelweave.foundation.arrays import numbers_of
from labelweave.labels import LabelMatrix
from labelweave.labels.targets import has_many_labels
from labelweave.metrics.known_labels import label_scores

Measures: TypeAlias = Sequence[Literal["f1", "precision", "recall"]]
Response: TypeAlias = Literal["auto", "decision_function", "predict_proba"]

_MOST_CUTS = 1000  # with more positive entries a curve skips cuts
_EVEN_STEPS = 200
_SIZE = (5.6, 4.2)  # inches
_NAMES = {"f1": "F1", "precision": "Precision", "recall": "Recall"}
_LINE_STYLES = {"f1": "-", "precision": "--", "recall": ":"}


def scores_and_thresholds(estimator: Any, X: Any, n_labels: int, response: str) -> tuple[Array, Array | None]:
    """Score rows as the model compares them with thresholds; thresholds are None if on another scale."""
    model = given_labels.last_step(estimator)
    own = getattr(model, "thresholds_", getattr(model, "threshold_", None))
    has_probabilities = hasattr(model, "predict_proba")
    if own is not None and has_probabilities and response == "auto":
        response = "predict_proba"
    scores = label_scores(estimator, X, n_labels, response)
    if own is None:
        if hasattr(model, "k_"):  # it predicts a number of labels
            return scores, None
        return scores, np.full(n_labels, decision_level(model, response))
    thresholds = np.broadcast_to(np.asarray(own, dtype=np.float64), (n_labels,))
    if not np.isfinite(thresholds).all():
        raise ValueError(
            f"A threshold of the {type(model).__name__} is infinite: it predicts a label always or never; "
            "plot the scores of the estimator inside it with from_predictions."
        )
    if has_probabilities:
        return scores, thresholds if response == "predict_proba" else None
    return scores + thresholds.min(), thresholds


def _decides_by_rows(model: Any, y: Any) -> bool:
    """Whether not thresholds decide, but the scores of a whole row: its best class, a hierarchy."""
    form = getattr(model, "_form", None)
    if form is None:
        return not has_many_labels(y) and len(model.classes_) > 2
    return form.is_ranked or shown_thresholds(model) is None


@dataclass(frozen=True)
class ThresholdCurve:
    """Metrics by threshold, of one label or of several together.

    name: the curve's name in the legend.
    thresholds (m,): ascending; higher scores are predicted.
    precision, recall, f1 (m,): the metrics; precision is NaN where nothing is predicted.
    chosen: the model's threshold, one of ``thresholds``.
    """

    name: str
    thresholds: Floats
    precision: Floats
    recall: Floats
    f1: Floats
    chosen: float | None

    def at_chosen(self, measure: str) -> float:
        """Return a metric at the chosen threshold; NaN without one."""
        if self.chosen is None:
            return float("nan")
        values = getattr(self, measure)
        return float(values[min(np.searchsorted(self.thresholds, self.chosen), len(values) - 1)])


def threshold_curve(name: str, labels: LabelMatrix, scores: Floats, chosen: float | None) -> ThresholdCurve:
    """Count observed entries above thresholds: all relevant ones up to 1000 positives, and a chosen one."""
    rows = np.repeat(np.arange(len(labels)), np.diff(labels.positives.indptr))
    positives = scores[rows, labels.positives.indices]
    if not len(positives):
        raise ValueError(
            f"No observed entry of {name} is positive, so there is no F1 at any threshold; choose labels "
            "with positive entries."
        )
    cuts = _cuts(positives, scores, chosen)
    hits, predicted = _above(cuts, positives), _above(cuts, scores[labels.to_signs() != 0])
    precision = hits / np.where(predicted > 0, predicted, np.nan)
    f1 = 2.0 * hits / (predicted + len(positives))
    return ThresholdCurve(name, cuts, precision, hits / len(positives), f1, chosen)


def _cuts(positives: Floats, scores: Floats, chosen: float | None) -> Floats:
    """Return thresholds right below positive scores, where F1 has its peaks, and at even steps."""
    found = np.unique(positives[np.isfinite(positives)])
    if len(found) > _MOST_CUTS:
        found = found[np.linspace(0, len(found) - 1, _MOST_CUTS).astype(np.intp)]
    finite = scores[np.isfinite(scores)]
    if not len(finite):
        raise ValueError("scores are all infinite, so there is no threshold between them; pass finite ones.")
    even = np.linspace(finite.min(), finite.max(), _EVEN_STEPS)
    return np.unique(np.concatenate([np.nextafter(found, -np.inf), even, [] if chosen is None else [chosen]]))


def _above(cuts: Floats, scores: Floats) -> Floats:
    places = np.bincount(np.searchsorted(cuts, scores, side="left"), minlength=len(cuts) + 1)
    return np.cumsum(places[:0:-1])[::-1].astype(np.float64)


class ThresholdCurveDisplay(Display):
    """F1, precision and recall of label sets against the threshold on the scores.

    Unobserved entries are not counted.  The legend shows F1 at the model's threshold and at the best one on
    these rows.  The curves are ``lines_``, in the axes ``ax_`` of ``figure_``.

    Parameters
    ----------
    curves : sequence of ThresholdCurve
        One for all labels together, or one per label.
    quantity : str, default="Threshold"
        Name of the horizontal axis.

    See Also
    --------
    labelweave.TunedThresholdClassifier : Choose thresholds on held-out rows.

    Examples
    --------
    >>> from labelweave.display import ThresholdCurveDisplay
    >>> Y, scores = [[1, 0], [1, 1], [0, 0]], [[0.9, 0.4], [0.3, 0.8], [0.2, 0.1]]
    >>> display = ThresholdCurveDisplay.from_predictions(Y, scores, thresholds=0.5)
    >>> round(display.curves[0].at_chosen("recall"), 2)
    0.67
    """

    def __init__(self, curves: Sequence[ThresholdCurve], quantity: str = "Threshold") -> None:
        self.curves = list(curves)
        self.quantity = quantity

    @classmethod
    @checked
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, response_method: Response = "auto", **options: Any
    ) -> Self:
        """Plot the curves of a fitted model on some rows.

        For model, rows and errors see :meth:`LabelQualityDisplay.from_estimator`.

        Parameters
        ----------
        response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
            The scores; "auto" uses those of the model's ``thresholds_``: probabilities if it has them, else
            decision scores.
        **options : dict
            Further options, ``thresholds`` excepted: see :meth:`from_predictions`.
        """
        truth = given_labels.model_truth(estimator, y)
        scores, thresholds = scores_and_thresholds(estimator, X, truth.n_labels, response_method)
        thresholds = None if _decides_by_rows(given_labels.last_step(estimator), y) else thresholds
        return cls.from_predictions(truth, scores, thresholds=thresholds, **options)

    @classmethod
    @checked
    def from_predictions(
        cls, Y_true: Any, scores: Any, *, labels: Any = None, thresholds: Any = None,
        label_names: Names | None = None, **options: Any,
    ) -> Self:  # fmt: skip
        """Plot the curves of given scores.

        Parameters
        ----------
        Y_true : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
            True labels, 0/1 or -1/1, NaN where not observed.
        scores : DataFrame, sparse matrix or array-like of shape (n, L)
            Higher scores mean more likely labels.
        labels : sequence of str or int, or one of them, default=None
            Names or numbers of the labels to plot; by default all are combined.
        thresholds : float or array-like of shape (L,), default=None
            The thresholds in use, to mark.  If they differ, labels are combined by the distance of scores
            from thresholds.
        label_names : sequence of str or None, default=None
            One name per label, by default those of ``Y_true`` or the columns of ``scores``.
        **options : dict
            Further options: see :meth:`plot`.

        Raises
        ------
        ValueError
            If shapes disagree, a label is unknown, or nothing positive was observed.
        """
        truth = given_labels.named_labels(Y_true, scores, label_names)
        table, given = given_labels.score_table(scores, truth), _read_thresholds(thresholds, truth.n_labels)
        quantity = "Threshold"
        if labels is None and len(set(given)) > 1:
            table, given, quantity = table - np.asarray(given), [0.0], f"{quantity}, minus the label's own"
        parts = given_labels.parts_to_draw(truth, table, labels)
        curves = [threshold_curve(name, part, values, given[k[0]]) for name, part, values, k in parts]
        return cls(curves, quantity).plot(**options)

    @checked
    def plot(self, ax: Any = None, *, measures: Measures | str | None = None, **options: Any) -> Self:
        """Plot the curves; for ``ax`` see :meth:`LabelQualityDisplay.plot`.

        Parameters
        ----------
        measures : sequence of {"f1", "precision", "recall"} or None, default=None
            The metrics to plot, by default all three of one curve, and F1 of several.
        **options : dict
            Such as ``linewidth``: see :meth:`matplotlib.axes.Axes.plot`.
        """
        several = len(self.curves) > 1
        chosen = read_choices("measure", measures or (("f1",) if several else _NAMES), _NAMES)
        self._begin(ax, *_SIZE)
        self.lines_ = list[Any]()
        for number, (curve, measure) in enumerate(product(self.curves, chosen)):
            color = f"C{(number // len(chosen) if several else number) % 10}"
            self._draw(curve, measure, {"color": color, "linestyle": _LINE_STYLES[measure], **options})
        self._label_axes(chosen)
        return self

    def _draw(self, curve: ThresholdCurve, measure: str, options: dict[str, Any]) -> None:
        values = getattr(curve, measure)
        called = curve.name if len(self.curves) > 1 else _NAMES[measure]
        (line,) = self.ax_.plot(curve.thresholds, values, drawstyle="steps-post", **options)
        line.set_label(legend_text(called, _at_threshold(curve, measure)))
        self.lines_.append(line)
        if curve.chosen is not None:
            self.ax_.plot([curve.chosen], [curve.at_chosen(measure)], "o", color=line.get_color(), ms=5)

    def _label_axes(self, measures: list[str]) -> None:
        if len(self.curves) == 1 and self.curves[0].chosen is not None:
            self.ax_.axvline(self.curves[0].chosen, color="0.4", linewidth=0.8, zorder=1)
        several = len(self.curves) > 1
        self.ax_.set(xlim=_range_of_interest(self.curves), ylim=(0.0, 1.02), yticks=np.linspace(0.0, 1.0, 6))
        ylabel = " and ".join(_NAMES[m] for m in measures) if several else "Value"
        self.ax_.set(xlabel=self.quantity, ylabel=ylabel)
        self.ax_.grid(alpha=0.3)
        place_legend(self.ax_, self.lines_, title=None if several else self.curves[0].name)


def _at_threshold(curve: ThresholdCurve, measure: str) -> str:
    value = curve.at_chosen(measure)
    words = [] if np.isnan(value) else [f"{value:.3f}"]
    if measure == "f1":
        words.append(f"{curve.f1.max():.3f} at best")
    return ", ".join(words)


def _range_of_interest(curves: Sequence[ThresholdCurve]) -> tuple[float, float]:
    """The range from where recall decreases to the highest score, and around the chosen thresholds."""
    marks = [curve.chosen for curve in curves if curve.chosen is not None]
    falls = [curve.thresholds[curve.recall >= 0.99].max(initial=curve.thresholds[0]) for curve in curves]
    low, high = float(min([*falls, *marks])), float(max([*marks, *(c.thresholds[-1] for c in curves)]))
    margin = 0.04 * (high - low) or 0.5
    return low - margin, high + margin


def _read_thresholds(thresholds: Any, n_labels: int) -> Sequence[float | None]:
    if thresholds is None:
        return [None] * n_labels
    given = numbers_of(thresholds, "thresholds").astype(np.float64)
    if given.shape not in ((), (n_labels,)) or not np.isfinite(given).all():
        raise ValueError(
            f"thresholds have shape {given.shape} for {n_labels} labels; pass one finite number, or one per "
            "label."
        )
    return [float(value) for value in np.broadcast_to(given, n_labels)]
