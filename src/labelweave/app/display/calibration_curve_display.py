"""Reliability diagrams of label probabilities: predicted against observed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from labelweave.app.display import given_labels
from labelweave.app.display.figures import Display, legend_text, place_legend
from labelweave.app.display.given_labels import Names
from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Floats
from labelweave.labels import LabelMatrix
from labelweave.metrics import expected_calibration_error
from labelweave.metrics.known_labels import label_probabilities
from labelweave.metrics.probabilities import CALIBRATION_FROM, calibration_bins

_SIZE = (5.2, 5.2)  # inches
_MARKERS = "osD^vPX<>"
_FEW = 10  # entries; bins with fewer are unreliable and have a hollow marker
_BAND_BOTTOM, _BAND_HEIGHT = -0.3, 0.2  # band for the numbers of entries
_MOST_WRITTEN = 12  # largest number of bins with written numbers


@dataclass(frozen=True)
class CalibrationCurve:
    """Bins of probability, of one label or of several together.

    name: the curve's name in the legend.
    counts (bins,): observed entries of each bin of equal width.
    predicted (bins,): their mean probability, NaN in an empty bin.
    observed (bins,): the share of positive entries, NaN in an empty bin.
    """

    name: str
    counts: Floats
    predicted: Floats
    observed: Floats
    error: float


def calibration_curve(
    name: str, labels: LabelMatrix, table: Floats, n_bins: int, least: float
) -> CalibrationCurve:
    """Bin observed entries (n, L) by their probability, if it is above ``least``; all labels together."""
    if not labels.observed_counts().any():
        raise ValueError(f"{name} has no observed entry to compare with; choose other labels.")
    error = expected_calibration_error(labels, table, n_bins=n_bins, least=least)
    counts, probabilities, positives = calibration_bins(labels, table, n_bins, least).sum(axis=1)
    if not counts.any():
        raise ValueError(
            f"{name} has no observed entry with a probability above {least:g}; use a lower least."
        )
    filled = np.where(counts > 0, counts, np.nan)
    return CalibrationCurve(name, counts, probabilities / filled, positives / filled, float(error))


class CalibrationCurveDisplay(Display):
    """Reliability diagram: the share of positive entries against the mean probability, in equal bins.

    Unobserved entries are omitted, and by default also entries of probabilities up to 0.05, almost all of
    which are true negatives if there are many labels.  Bars below the curves show the numbers of entries, on
    a logarithmic scale; bins with fewer than 10 have hollow markers.  The curves are ``lines_``, in the axes
    ``ax_`` of ``figure_``.

    Parameters
    ----------
    curves : sequence of CalibrationCurve
        One for all labels together, or one per label.
    least : float, default=0.0
        Lower bound of the probabilities of their entries.

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

    def __init__(self, curves: Sequence[CalibrationCurve], least: float = 0.0) -> None:
        self.curves, self.least = list(curves), least

    @classmethod
    @checked
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Self:
        """Plot the curves of a fitted model on some rows; TypeError if it has no ``predict_proba``.

        For model, rows and errors see :meth:`LabelQualityDisplay.from_estimator`; the options are those of
        :meth:`from_predictions`.
        """
        given_labels.fitted_model(estimator, " to compare; wrap it in a CalibratedLabelClassifier")
        truth = given_labels.model_truth(estimator, y)
        return cls.from_predictions(truth, label_probabilities(estimator, X, truth.n_labels), **options)

    @classmethod
    @checked
    def from_predictions(
        cls, Y_true: Any, probabilities: Any, *, labels: Any = None, n_bins: int = 10,
        least: float = CALIBRATION_FROM, label_names: Names | None = None, **options: Any,
    ) -> Self:  # fmt: skip
        """Plot the curves of given probabilities.

        For true labels, their selection, names and errors see :meth:`ThresholdCurveDisplay.from_predictions`.

        Parameters
        ----------
        probabilities : DataFrame, sparse matrix or array-like of shape (n, L)
            Probabilities of the labels, from 0 to 1.
        n_bins : int, default=10
            The number of bins.
        least : float, default=0.05
            Only entries of a higher probability are shown and included in the error; 0 shows all.
        **options : dict
            Further options: see :meth:`plot`.
        """
        truth = given_labels.named_labels(Y_true, probabilities, label_names, is_soft=True)
        parts = given_labels.parts_to_draw(truth, given_labels.score_table(probabilities, truth), labels)
        return cls([calibration_curve(*part[:3], n_bins, least) for part in parts], least).plot(**options)

    @checked
    def plot(self, ax: Any = None, *, name: str | None = None, counts: bool = True, **options: Any) -> Self:
        """Plot the curves; for ``ax`` see :meth:`LabelQualityDisplay.plot`.

        Parameters
        ----------
        name : str or None, default=None
            Name of a single curve in the legend, such as the name of the model.
        counts : bool, default=True
            Whether to plot the numbers of entries below.
        **options : dict
            Such as ``color``: see :meth:`matplotlib.axes.Axes.plot`.
        """
        self._begin(ax, *_SIZE)
        if not self.ax_.lines:
            self.ax_.plot([0, 1], [0, 1], color="0.6", linewidth=1, zorder=1)
            self.ax_.set_ylim(bottom=-0.02)
        only = name if len(self.curves) == 1 else None
        self.lines_ = [self._draw(curve, only or curve.name, options) for curve in self.curves]
        self.ax_.set(xlabel="Mean predicted probability", ylabel="Observed share of positives")
        self.ax_.set(xlim=(-0.02, 1.02), yticks=np.linspace(0.0, 1.0, 6))
        self.ax_.set_ylim(top=1.02)
        self.ax_.grid(alpha=0.3)
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
        few = shown & (curve.counts < _FEW)
        hollow = {"color": line.get_color(), "markerfacecolor": "white", "linestyle": "none"}
        marks = {"marker": line.get_marker(), "markersize": line.get_markersize()}
        self.ax_.plot(curve.predicted[few], curve.observed[few], **hollow, **marks)
        return line

    def _draw_counts(self) -> None:
        """Plot bars in a band below 0, with their numbers if there is one curve."""
        from matplotlib.transforms import blended_transform_factory

        most = max(curve.counts.max() for curve in self.curves)
        is_alone = len(self.curves) == 1
        for line, curve in zip(self.lines_, self.curves, strict=True):
            tops = _BAND_BOTTOM + _BAND_HEIGHT * np.log1p(curve.counts) / np.log1p(most)
            edges = np.linspace(0.0, 1.0, len(tops) + 1)
            options = {"color": line.get_color(), "fill": is_alone, "alpha": 0.6}
            self.ax_.stairs(tops, edges, baseline=_BAND_BOTTOM, **options)
            for k in np.flatnonzero(curve.counts) if is_alone and len(tops) <= _MOST_WRITTEN else ():
                place, text = 0.5 * (edges[k + 1] + edges[k]), _short_count(curve.counts[k])
                self.ax_.text(place, _BAND_BOTTOM + 0.02, text, ha="center", fontsize=6)
        words = f"Entries above {self.least:g}" if self.least else "Entries"
        text = f"{words} (log scale)" if is_alone else f"{words} (log scale, up to {most:,.0f})"
        transform = blended_transform_factory(self.ax_.transAxes, self.ax_.transData)
        top = _BAND_BOTTOM + 1.12 * _BAND_HEIGHT
        self.ax_.text(0.98, top, text, transform=transform, ha="right", fontsize="x-small")
        self.ax_.set_ylim(bottom=_BAND_BOTTOM)


def _short_count(count: float) -> str:
    """Return a number as at most four characters, up to millions."""
    unit, sign = (1e6, "M") if count >= 1e6 else (1e3, "k") if count >= 1e3 else (1.0, "")
    return f"{count / unit:.{int(unit > 1 and count < 10 * unit)}f}{sign}"
