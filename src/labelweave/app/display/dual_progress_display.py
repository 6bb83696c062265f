"""Convergence of fits: the objective, its lower bound and the duality gap against time or rounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from labelweave.app.display.figures import Display, legend_text, place_legend, read_choices
from labelweave.app.display.given_labels import fitted_model, last_step
from labelweave.foundation.arguments import checked, shown
from labelweave.foundation.array_types import Floats

_UPPER = ("primal", "objective")  # names of the objective in traces
_ROUNDS = ("iteration", "round")
_SIZE = (4.8, 3.8)  # inches, of a panel
_FEW_POINTS = 40  # shorter lines have markers
_WIDE = 30.0  # ratio of durations from which the axis is logarithmic
_REACH = 1.5  # times the third quartile of distances from the last objective: the visible range


@dataclass(frozen=True)
class Progress:
    """The records of one fit.

    name: its name in the legend.
    primal (m,): the objective, which is minimized.
    dual (m,): its lower bound, NaN where the solver has none.
    gap (m,): the relative duality gap or, without a dual, the decrease of the objective in the last round,
        relative to the objective.
    Shapes: rounds (m,), seconds (m,).
    """

    name: str
    rounds: Floats
    seconds: Floats
    primal: Floats
    dual: Floats
    gap: Floats

    @property
    def has_dual(self) -> bool:
        return bool(np.isfinite(self.dual).any())

    def places(self, against: str) -> Floats:
        return self.seconds if against == "time" else self.rounds

    def unit(self, is_share: bool) -> float:
        """Return the unit of objectives: for shares the size of the last one."""
        return float(abs(self.primal[-1])) or 1.0 if is_share else 1.0


def read_trace(name: str, trace: Sequence[Any]) -> Progress:
    """Read records with a round, a time, an objective and, optionally, a dual value and a gap."""
    if not isinstance(trace, Iterable):
        raise TypeError(f"The trace of {name} is {shown(trace)}; pass the trace_ of a fitted model.")
    records = list(trace)
    if not records:
        raise ValueError(
            f"The trace of {name} is empty, so there is no progress to plot; pass a model that is fitted in "
            "rounds."
        )
    if not any(hasattr(records[0], field) for field in _UPPER):
        raise TypeError(
            f"The trace of {name} has records of type {type(records[0]).__name__} without an objective; pass "
            "the trace_ of a fitted model."
        )
    rounds, primal = _column(records, *_ROUNDS), _column(records, *_UPPER)
    gap = _column(records, "decrease", "gap")
    return Progress(name, rounds, _column(records, "time"), primal, _column(records, "dual"), gap)


def trace_of(name: str, estimator: Any) -> Progress:
    """Read the trace of a fitted model, or of the model inside it."""
    model = fitted_model(estimator)
    for holder in (model, last_step(getattr(model, "estimator_", None))):
        if hasattr(holder, "trace_"):
            return read_trace(name, holder.trace_)
    raise TypeError(
        f"{type(model).__name__} has no trace_ to plot; pass one of the library's models that are fitted in "
        "rounds."
    )


def named_models(models: Any) -> dict[str, Any]:
    """Name models by the keys of a mapping, else by their classes, with numbers if classes repeat."""
    if isinstance(models, Mapping):
        return {str(name): model for name, model in models.items()}
    named = dict[str, Any]()
    for model in models if isinstance(models, (list, tuple)) else [models]:
        name = type(last_step(model)).__name__
        same = sum(other.split(" ")[0] == name for other in named)
        named[f"{name} {same + 1}" if same else name] = model
    return named


def _column(records: Sequence[Any], *fields: str) -> Floats:
    """Return the first of the fields with values in the records, else NaN."""
    column: Floats = np.full(len(records), np.nan)
    for field in fields:
        if np.isnan(column).all() and hasattr(records[0], field):
            column = np.asarray([getattr(record, field) for record in records], dtype=np.float64)
    return column


class DualProgressDisplay(Display):
    """Objective, dual and duality gap of one or several fits, from their traces.

    The optimum lies between the objective (primal, a solid line) and the dual (dashed).  The gap is (primal -
    dual) / abs(primal).  A model without a dual shows its objective and, dotted instead of the gap, the
    decrease per round.  All lines are ``lines_``, in the axes ``ax_`` of ``figure_``.

    Parameters
    ----------
    fits : sequence of Progress
        The fits.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave import MaxMarginClassifier
    >>> from labelweave.display import DualProgressDisplay
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> model = MaxMarginClassifier().fit(X, (X > 0).astype(int))
    >>> display = DualProgressDisplay.from_estimator(model)
    >>> bool(display.fits[0].gap[-1] <= 1e-3)
    True
    """

    def __init__(self, fits: Sequence[Progress]) -> None:
        self.fits = list(fits)

    @classmethod
    @checked
    def from_estimator(cls, estimator: Any, **options: Any) -> Self:
        """Plot the progress of fitted models; for errors see :meth:`LabelQualityDisplay.from_estimator`.

        Parameters
        ----------
        estimator : estimator, sequence of estimators, or mapping of str to estimator
            Fitted, with a ``trace_``; the keys of a mapping are their names.
        **options : dict
            Further options: see :meth:`plot`.
        """
        models = named_models(estimator)
        return cls([trace_of(name, model) for name, model in models.items()]).plot(**options)

    @classmethod
    @checked
    def from_traces(cls, traces: Mapping[str, Sequence[Any]] | Sequence[Any], **options: Any) -> Self:
        """Plot traces; TypeError if records lack an objective, ValueError if there are none.

        Parameters
        ----------
        traces : list of records, or mapping of str to such lists
            One ``trace_``, or several by name.
        **options : dict
            Further options: see :meth:`plot`.
        """
        named = traces if isinstance(traces, Mapping) else {"fit": traces}
        return cls([read_trace(str(name), trace) for name, trace in named.items()]).plot(**options)

    @checked
    def plot(
        self, ax: Any = None, *, panels: Sequence[Literal["objective", "gap"]] | str = ("objective", "gap"),
        against: Literal["time", "rounds"] = "time", relative: bool | None = None, **line_options: Any,
    ) -> Self:  # fmt: skip
        """Plot one panel for the objective and one for the gap; ``ax`` see :meth:`LabelQualityDisplay.plot`.

        Parameters
        ----------
        panels : sequence of {"objective", "gap"}, default=("objective", "gap")
            The panels to plot.
        against : {"time", "rounds"}, default="time"
            The horizontal axis: seconds, or rounds of the solver.
        relative : bool or None, default=None
            Whether to divide objectives and duals by the last objective of their fit.  None does so for
            several fits, since their objectives differ in scale.
        **line_options : dict
            Such as ``linewidth``: see :meth:`matplotlib.axes.Axes.plot`.
        """
        if not self.fits:
            raise ValueError("There are no fits to plot; pass at least one fitted model, or a trace.")
        chosen = read_choices("panel", panels, ("objective", "gap"))
        if against not in ("time", "rounds"):
            raise ValueError(f"against is {against!r}; it must be 'time' or 'rounds'.")
        axes, self.lines_ = self._begin_panels(ax, len(chosen), *_SIZE), list[Any]()
        is_share = len(self.fits) > 1 if relative is None else relative
        for axis, panel in zip(axes, chosen, strict=True):
            for number, fit in enumerate(self.fits):
                options = {"color": f"C{number % 10}", "linewidth": 1.6, **line_options}
                if panel == "gap":
                    self._draw_gap(axis, fit, fit.places(against), options)
                else:
                    self._draw_objective(axis, fit, fit.places(against), fit.unit(is_share), options)
            self._label_axes(axis, panel, against, is_share)
        return self

    def _draw_objective(
        self, ax: Any, fit: Progress, places: Floats, unit: float, options: dict[str, Any]
    ) -> None:
        several = len(self.fits) > 1
        self._line(ax, places, fit.primal / unit, fit.name if several else "Objective (primal)", options)
        if fit.has_dual:
            name = None if several else "Lower bound (dual)"
            self._line(ax, places, fit.dual / unit, name, {**options, "linestyle": "--"})

    def _draw_gap(self, ax: Any, fit: Progress, places: Floats, options: dict[str, Any]) -> None:
        shown = np.isfinite(fit.gap) & (fit.gap > 0)
        if not shown.any():
            return
        names = ["Gap", fit.name]
        if not fit.has_dual:
            names = ["Decrease per round", f"{fit.name} (decrease per round)"]
            options = {**options, "linestyle": ":"}
        self._line(ax, places[shown], fit.gap[shown], names[len(self.fits) > 1], options)

    def _line(self, ax: Any, x: Floats, y: Floats, name: str | None, options: dict[str, Any]) -> None:
        marks = {"marker": "o", "markersize": 3} if len(x) <= _FEW_POINTS else {}
        (line,) = ax.plot(x, y, **{**marks, **options})
        line.set_label(legend_text(name, longest=48) if name else "_dual")
        self.lines_.append(line)

    def _label_axes(self, ax: Any, panel: str, against: str, is_share: bool) -> None:
        ends = [float(fit.places(against)[-1]) for fit in self.fits]
        if min(ends) > 0 and max(ends) / min(ends) > _WIDE:
            ax.set_xscale("log")
        elif against == "rounds":
            ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel("Seconds" if against == "time" else "Rounds")
        if panel == "gap":
            ax.set(yscale="log", ylabel="Relative duality gap")
        else:
            ylabel = "Share of the last objective" if is_share else "Objective"
            ax.set(ylim=_limits(self.fits, is_share), ylabel=ylabel)
        ax.grid(alpha=0.3)
        if ax.lines:
            place_legend(ax, ax.lines)


def _limits(fits: Sequence[Progress], is_share: bool) -> tuple[float, float]:
    """Exclude distant first values, such as the objective at zero weights, which would flatten the rest."""
    low, high = np.inf, -np.inf
    for fit in fits:
        unit = fit.unit(is_share)
        values = np.concatenate([fit.primal, fit.dual[np.isfinite(fit.dual)]]) / unit
        last = fit.primal[-1] / unit
        reach = _REACH * float(np.quantile(np.abs(values - last), 0.75)) or 0.05 * abs(last) or 1.0
        low, high = min(low, max(values.min(), last - reach)), max(high, min(values.max(), last + reach))
    margin = 0.05 * (high - low) or 1.0
    return float(low - margin), float(high + margin)
