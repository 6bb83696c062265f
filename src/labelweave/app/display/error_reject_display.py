"""The error-reject curve of class probabilities (Seeger 2008, figures 3 and 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from labelweave.app.display.figures import Display, legend_text, place_legend
from labelweave.app.display.given_labels import fitted_model
from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.metrics import error_reject_curve

_SIZE = (5.6, 4.2)  # inches
_LINE_STYLES = ("-", "--", "-.", ":")  # curves must also differ in print without colors
_FEW_POINTS = 15  # shorter curves have markers


class ErrorRejectDisplay(Display):
    """Error-reject curve: the error on predicted rows against the fraction of rejected rows.

    Rows of the smallest maximal probabilities are rejected first.  For several curves pass the axes of the
    first one as ``ax``.  The curve is ``line_``, in the axes ``ax_`` of ``figure_``.

    Parameters
    ----------
    rejected_fraction : array-like of shape (points,)
        The share of rejected rows, increasing from 0.
    error : array-like of shape (points,)
        The share of wrong predictions among the other rows.
    name : str or None, default=None
        Name of the curve in the legend.

    See Also
    --------
    labelweave.metrics.error_reject_curve : Compute the points.

    Examples
    --------
    >>> from labelweave.display import ErrorRejectDisplay
    >>> probabilities = [[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.3, 0.7]]
    >>> display = ErrorRejectDisplay.from_predictions([0, 0, 1, 1], probabilities, name="model")
    >>> display.error.tolist()
    [0.25, 0.0, 0.0, 0.0]
    """

    def __init__(self, rejected_fraction: ArrayLike, error: ArrayLike, name: str | None = None) -> None:
        self.rejected_fraction = np.asarray(rejected_fraction, dtype=np.float64)
        self.error = np.asarray(error, dtype=np.float64)
        self.name = name

    @classmethod
    @checked
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, name: str | None = None, **options: Any
    ) -> Self:
        """Plot the curve of a fitted model with ``predict_proba``, else TypeError, on some rows with classes.

        For model, rows and errors see :meth:`LabelQualityDisplay.from_estimator`.

        Parameters
        ----------
        name : str or None, default=None
            Name of the curve in the legend, by default the name of the model's class.
        **options : dict
            Further options, ``classes`` excepted: see :meth:`from_predictions`.
        """
        model = fitted_model(estimator, " to reject rows by; pass a model that has")
        name = type(model).__name__ if name is None else name
        probabilities = estimator.predict_proba(X)
        return cls.from_predictions(y, probabilities, classes=estimator.classes_, name=name, **options)

    @classmethod
    @checked
    def from_predictions(
        cls, y_true: Any, probabilities: Any, *, classes: Sequence[Any] | Array | None = None,
        sample_weight: Any = None, name: str | None = None, **options: Any,
    ) -> Self:  # fmt: skip
        """Plot the curve of given probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True classes, None or NaN where not observed.
        probabilities : DataFrame or array-like of shape (n, C)
            Probabilities of the classes; every row sums to 1.
        classes : sequence of length C or None, default=None
            The class of each column, by default a DataFrame's columns, else 0, 1, ...
        sample_weight : array-like of shape (n,) or None, default=None
            One weight per row, by default ones.
        name : str or None, default=None
            Name of the curve in the legend; without a name it is not in the legend.
        **options : dict
            Further options: see :meth:`plot`.

        Raises
        ------
        ValueError
            If shapes disagree, a row is not a distribution, a true class is unknown or nothing was observed.
        """
        curve = error_reject_curve(y_true, probabilities, classes, sample_weight=sample_weight)
        return cls(*curve, name).plot(**options)

    @checked
    def plot(
        self, ax: Any = None, *, name: str | None = None, max_rejected: float = 0.5, **options: Any
    ) -> Self:
        """Plot the curve; for ``ax`` see :meth:`LabelQualityDisplay.plot`.

        Parameters
        ----------
        name : str or None, default=None
            Name of the curve in the legend, by default the display's name.
        max_rejected : float, default=0.5
            The rejected fraction at which the plot ends, above 0 and at most 1;
            close to 1 only few rows determine the error.
        **options : dict
            Such as ``color`` and ``linestyle``: see :meth:`matplotlib.axes.Axes.plot`.
        """
        if not 0.0 < max_rejected <= 1.0:
            raise ValueError(f"max_rejected is {max_rejected}; it must be above 0 and at most 1.")
        self._begin(ax, *_SIZE)
        name = self.name if name is None else name
        fractions, errors = self._shown(max_rejected)
        style = {} if "ls" in options else {"linestyle": _LINE_STYLES[len(self.ax_.lines) % 4]}
        few = {"marker": "o", "markersize": 3.5} if len(fractions) <= _FEW_POINTS else {}
        options = {"linewidth": 1.6, **style, **few, **options}
        (self.line_,) = self.ax_.plot(fractions, errors, **options)
        self._label_axes(max_rejected)
        if name is not None:
            self.line_.set_label(legend_text(name, f"{100 * self.error[0]:.2f} %", longest=48))
            place_legend(self.ax_, self.ax_.lines, title="Error without rejection")
        return self

    def _shown(self, max_rejected: float) -> tuple[Array, Array]:
        """Truncate the curve, by interpolation between two points if necessary."""
        kept = self.rejected_fraction <= max_rejected
        fractions, errors = self.rejected_fraction[kept], self.error[kept]
        if kept.all() or fractions[-1] == max_rejected:
            return fractions, errors
        last = np.interp(max_rejected, self.rejected_fraction, self.error)
        return np.append(fractions, max_rejected), np.append(errors, last)

    def _label_axes(self, max_rejected: float) -> None:
        from matplotlib.ticker import PercentFormatter

        self.ax_.set(xlabel="Rejected rows", ylabel="Error on predicted rows")
        for axis in (self.ax_.xaxis, self.ax_.yaxis):
            axis.set_major_formatter(PercentFormatter(xmax=1.0))
        # limits without margins, which later plots may still extend
        self.line_.sticky_edges.x.extend([0.0, max_rejected])
        self.line_.sticky_edges.y.append(0.0)
        self.ax_.update_datalim([(0.0, 0.0), (max_rejected, 0.0)])
        self.ax_.autoscale_view()
        self.ax_.grid(alpha=0.3)
