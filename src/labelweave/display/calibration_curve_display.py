"""Reliability of label probabilities: what was announced against what was observed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from labelweave.array_types import Array, Floats
from labelweave.arrays import panels
from labelweave.decisions.label_scores import label_probabilities
from labelweave.display.figures import axes_of_size, place_legend
from labelweave.display.given_labels import (
    chosen_labels,
    last_step,
    model_truth,
    named_labels,
    names_of,
    score_table,
)
from labelweave.display.label_texts import legend_text
from labelweave.labels import LabelMatrix
from labelweave.metrics import expected_calibration_error

__all__ = ["CalibrationCurve", "CalibrationCurveDisplay", "calibration_curve"]

_BLOCK_ENTRIES = 2**20
_SIZE = (5.2, 5.2)  # inches
_MARKERS = "osD^vPX<>"
_FEW = 10  # entries; a bin of fewer tells little and has a hollow marker
_BAND_BOTTOM, _BAND_HEIGHT = -0.3, 0.2  # where the numbers of entries are drawn
_MOST_WRITTEN = 12  # bins up to which they are written too


@dataclass(frozen=True)
class CalibrationCurve:
    """Bins of probability, of one label or of several together.

    name: what the legend calls the curve.
    counts (bins,): observed entries of each bin of equal width.
    predicted (bins,): their mean probability, NaN in an empty bin.
    observed (bins,): the share of positive ones, NaN in an empty bin.
    """

    name: str
    counts: Floats
    predicted: Floats
    observed: Floats
    error: float


def calibration_curve(labels: LabelMatrix, table: Floats, n_bins: int, name: str) -> CalibrationCurve:
    """Sort observed entries into bins by their probability, all labels together.

    name: what the legend calls the curve.
    Shapes: labels (n, L), table (n, L).
    Raises ValueError if no entry was observed or a probability is outside 0 to 1.
    """
    if not labels.observed_counts().any():
        raise ValueError(f"{name} has no observed entry to compare with; choose labels that have some.")
    error = expected_calibration_error(labels, table, n_bins=n_bins)
    sums = np.zeros((3, n_bins))  # of entries, probabilities and positives
    for part in panels(len(labels), max(1, _BLOCK_ENTRIES // max(1, labels.n_labels))):
        signs, block = labels[part].to_signs(), table[part]
        seen = signs != 0
        values, positive = block[seen], signs[seen] > 0
        place = np.minimum((values * n_bins).astype(np.intp), n_bins - 1)
        for number, weights in enumerate((None, values, positive)):
            sums[number] += np.bincount(place, weights, minlength=n_bins)
    predicted, observed = (
        np.divide(part, sums[0], out=np.full(n_bins, np.nan), where=sums[0] > 0) for part in sums[1:]
    )
    return CalibrationCurve(name, sums[0], predicted, observed, float(np.asarray(error)))


class CalibrationCurveDisplay:
    """The observed share of positive entries against the mean probability, in bins of equal width.

    Make a display with :meth:`from_estimator` or :meth:`from_predictions`; both draw it.  Unobserved
    entries are in no bin.  Bars below the curves show the numbers of entries, on a logarithmic scale;
    markers of bins with fewer than 10 are hollow.

    Parameters
    ----------
    curves : sequence of CalibrationCurve
        One for all labels together, or one a label.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes of the picture.
    figure_ : matplotlib.figure.Figure
        Its figure.
    lines_ : list of matplotlib.lines.Line2D
        The curves.

    See Also
    --------
    labelweave.metrics.expected_calibration_error : Compute the error in the legend.

    Examples
    --------
    >>> from labelweave.display import CalibrationCurveDisplay
    >>> Y, probabilities = [[1], [1], [0], [1]], [[0.9], [0.9], [0.9], [0.9]]
    >>> display = CalibrationCurveDisplay.from_predictions(Y, probabilities, n_bins=2)
    >>> display.curves[0].observed.tolist()
    [nan, 0.75]
    """

    def __init__(self, curves: Sequence[CalibrationCurve]) -> None:
        self.curves = list(curves)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        labels: Sequence[Any] | Any | None = None,
        n_bins: int = 10,
        **plot_options: Any,
    ) -> CalibrationCurveDisplay:
        """Draw the curves of a fitted model on some rows.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Fitted, with ``predict_proba``.
        X : {array-like, sparse matrix, DataFrame} of n rows
            The rows.
        y : array-like of shape (n, L) or (n,), sparse matrix, DataFrame or LabelMatrix
            Their labels, NaN where not observed, or classes.
        labels : sequence of str or int, or one of them, default=None
            Names or numbers of the labels to draw; by default all are taken together.
        n_bins : int, default=10
            The number of bins.
        **plot_options : dict
            What :meth:`plot` takes.

        Returns
        -------
        CalibrationCurveDisplay
            The picture.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        NotFittedError
            If the model is not fitted.
        TypeError
            If it has no ``predict_proba``.
        """
        model = last_step(estimator)
        check_is_fitted(model)
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"{type(model).__name__} has no predict_proba to be checked; wrap it in a "
                "CalibratedLabelClassifier, or draw probabilities with from_predictions."
            )
        truth = model_truth(estimator, y)
        table = label_probabilities(estimator, X, truth.n_labels)
        return cls.from_predictions(truth, table, labels=labels, n_bins=n_bins, **plot_options)

    @classmethod
    def from_predictions(
        cls,
        Y_true: Any,
        probabilities: Any,
        *,
        labels: Sequence[Any] | Any | None = None,
        n_bins: int = 10,
        label_names: Sequence[str] | Array | None = None,
        **plot_options: Any,
    ) -> CalibrationCurveDisplay:
        """Draw the curves of given probabilities.

        Parameters
        ----------
        Y_true : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
            True labels, 0/1 or -1/1, NaN where not observed.
        probabilities : DataFrame, sparse matrix or array-like of shape (n, L)
            Of the labels, each from 0 to 1.
        labels : sequence of str or int, or one of them, default=None
            Names or numbers of the labels to draw; by default all are taken together.
        n_bins : int, default=10
            The number of bins.
        label_names : sequence of str or None, default=None
            One name a label, by default those of ``Y_true`` or the columns of ``probabilities``.
        **plot_options : dict
            What :meth:`plot` takes.

        Returns
        -------
        CalibrationCurveDisplay
            The picture.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If shapes disagree, a probability is outside 0 to 1, a label is not there or nothing of it was
            observed.
        """
        truth = named_labels(Y_true, probabilities, label_names)
        table = score_table(probabilities, truth)
        names = names_of(truth)
        if labels is None:
            name = f"all {truth.n_labels} labels" if truth.n_labels > 1 else names[0]
            return cls([calibration_curve(truth, table, n_bins, name)]).plot(**plot_options)
        curves = [
            calibration_curve(truth.select_labels([k]), table[:, [k]], n_bins, names[k])
            for k in chosen_labels(truth, labels)
        ]
        return cls(curves).plot(**plot_options)

    def plot(
        self, ax: Any = None, *, name: str | None = None, counts: bool = True, **line_options: Any
    ) -> CalibrationCurveDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; by default a new figure.
        name : str or None, default=None
            What the legend calls a single curve, such as the name of the model.
        counts : bool, default=True
            Whether to draw the numbers of entries below.
        **line_options : dict
            What matplotlib's ``plot`` takes, such as ``color``.

        Returns
        -------
        CalibrationCurveDisplay
            This display.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        self.ax_ = axes_of_size(*_SIZE) if ax is None else ax
        self.figure_ = self.ax_.figure
        if not self.ax_.lines:
            self.ax_.plot([0, 1], [0, 1], color="0.6", linewidth=1, zorder=1)
            self.ax_.set_ylim(bottom=-0.02)
        only = name if len(self.curves) == 1 else None
        self.lines_ = [self._draw(curve, only or curve.name, line_options) for curve in self.curves]
        self._label_axes()
        if counts:
            self._draw_counts()
        place_legend(self.ax_, self.ax_.lines[1:], loc="upper left")
        return self

    def _draw(self, curve: CalibrationCurve, name: str, options: dict[str, Any]) -> Any:
        shown = curve.counts > 0
        marker = _MARKERS[(len(self.ax_.lines) - 1) // 2 % len(_MARKERS)]
        (line,) = self.ax_.plot(
            curve.predicted[shown], curve.observed[shown], **{"marker": marker, "markersize": 5, **options}
        )
        line.set_label(legend_text(name, f"ECE {curve.error:.3f}"))
        few = (curve.counts > 0) & (curve.counts < _FEW)
        hollow = {"color": line.get_color(), "markerfacecolor": "white", "linestyle": "none"}
        marks = {"marker": line.get_marker(), "markersize": line.get_markersize()}
        self.ax_.plot(curve.predicted[few], curve.observed[few], **hollow, **marks)
        return line

    def _label_axes(self) -> None:
        self.ax_.set_xlim(-0.02, 1.02)
        self.ax_.set_ylim(top=1.02)
        self.ax_.set_yticks(np.linspace(0.0, 1.0, 6))
        self.ax_.set_xlabel("Mean predicted probability")
        self.ax_.set_ylabel("Observed share of positives")
        self.ax_.grid(alpha=0.3)

    def _draw_counts(self) -> None:
        """Draw bars in a band below 0, with their numbers where there is one curve."""
        from matplotlib.transforms import blended_transform_factory

        most = max(curve.counts.max() for curve in self.curves)
        for line, curve in zip(self.lines_, self.curves, strict=True):
            edges = np.linspace(0.0, 1.0, len(curve.counts) + 1)
            tops = _BAND_BOTTOM + _BAND_HEIGHT * np.log1p(curve.counts) / np.log1p(most)
            options = {"color": line.get_color(), "fill": len(self.curves) == 1, "alpha": 0.6}
            self.ax_.stairs(tops, edges, baseline=_BAND_BOTTOM, **options)
            if len(self.curves) == 1 and len(curve.counts) <= _MOST_WRITTEN:
                self._write_counts(curve.counts, edges)
        text = "Entries (log scale)" if len(self.curves) == 1 else f"Entries (log scale, up to {most:,.0f})"
        place = blended_transform_factory(self.ax_.transAxes, self.ax_.transData)
        self.ax_.text(
            0.98, _BAND_BOTTOM + 1.12 * _BAND_HEIGHT, text, transform=place, ha="right", fontsize="x-small"
        )
        self.ax_.set_ylim(bottom=_BAND_BOTTOM)

    def _write_counts(self, counts: Floats, edges: Floats) -> None:
        middles = 0.5 * (edges[1:] + edges[:-1])
        for place, count in zip(middles[counts > 0], counts[counts > 0], strict=True):
            self.ax_.text(place, _BAND_BOTTOM + 0.02, _short_count(count), ha="center", fontsize=6)


def _short_count(count: float) -> str:
    """Write a number in at most four characters, up to millions."""
    for unit, sign in ((1e6, "M"), (1e3, "k")):
        if count >= unit:
            return f"{count / unit:.1f}{sign}" if count < 10 * unit else f"{count / unit:.0f}{sign}"
    return f"{count:.0f}"
