"""Learning hyper-parameters: a quasi-Newton search for the least cross-validation loss.

SciPy's L-BFGS-B does the search.  Where the inner fits fail, as they can at extreme values, the
value there is not known (Seeger 2008, section 4).  The search is then told that the criterion rises
along the step as fast as it had promised to fall, which makes its line search come back: the
failed step is a bracket on the right.  Inner fits start from the last success.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from labelweave.array_types import Array
from labelweave.hyperparameters.cross_validation import Evaluation

__all__ = ["LearnedParameters", "SearchRecord", "SearchSettings", "learn"]


Box = list[tuple[float | None, float | None]]

_MOST_STARTS, _MOST_FAILURES = 20, 7
_WORSE = 1.01  # times the best loss: the search does not go on to where it is higher
_FAR = 1e8


class SearchRecord(NamedTuple):
    """One evaluation of the criterion.

    time: seconds since the search began.
    value: the mean held-out loss; NaN where the inner fits failed.
    slope: the largest entry of the gradient.
    gap: the relative duality gap of the inner fits.
    stage: the number of the stage, for a search in stages; values of different stages are not comparable, as
        each may have its own rows and hyper-parameters.
    """

    evaluation: int
    time: float
    value: float
    slope: float
    gap: float
    products: float
    stage: int = 1


@dataclass(frozen=True)
class LearnedParameters:
    """The end of a search.

    trace: every evaluation, those of earlier stages first.
    Shapes: theta (p,).
    """

    theta: Array
    value: float
    status: str
    trace: list[SearchRecord]

    def followed_by(self, later: LearnedParameters) -> LearnedParameters:
        """Join the result of a search that went on where this one ended.

        Returns the better point, the end of the second search and the trace of both.
        """
        best = later if later.value < self.value else self
        return LearnedParameters(best.theta, best.value, later.status, _joined(self.trace, later.trace))

    def after(self, earlier: list[SearchRecord], stage: int) -> LearnedParameters:
        """Put the trace of earlier stages before the one of this search.

        earlier: the evaluations of earlier stages.
        stage: the number of this one.
        Returns the same end, with the whole trace.
        """
        own = [record._replace(stage=stage) for record in self.trace]
        return replace(self, trace=_joined(earlier, own))


def _joined(first: list[SearchRecord], second: list[SearchRecord]) -> list[SearchRecord]:
    """Count evaluations and seconds of one search on from those of another."""
    if not first:
        return second
    number, seconds = first[-1].evaluation, first[-1].time
    return first + [
        record._replace(evaluation=record.evaluation + number, time=record.time + seconds)
        for record in second
    ]


@dataclass(frozen=True)
class SearchSettings:
    """How to search.

    max_iter: the largest number of evaluations.
    tol: A step that lowers the mean held-out loss by a smaller share ends the search.
    first_step: the length of the first step, in logarithms of parameters.
    on_record: gets every record; a true result ends the search.
    """

    max_iter: int = 50
    tol: float = 1e-4
    first_step: float = 1.0
    on_record: Callable[[SearchRecord], bool] | None = None


def learn(
    criterion: Callable[[Array], Evaluation],
    start: Array,
    bounds: Box,
    settings: SearchSettings | None = None,
    *,
    retreat: Callable[[Array], Array] | None = None,
) -> LearnedParameters:
    """Minimise the criterion.

    criterion: value and gradient at hyper-parameters.
    settings: how to search; None for the defaults.
    retreat: gives easier hyper-parameters to start from where the fits fail; the box moves along.
    Shapes: start (p,).
    Raises ValueError if the fits fail wherever the search starts.
    """
    settings = SearchSettings() if settings is None else settings
    search = _Search(criterion, settings)
    try:
        search.first(start, retreat)
        status = _minimise(search, _moved(bounds, search.known()[0] - start), settings)
    except _LimitReachedError:
        status = "iteration_limit"
    except (_EndOfSearchError, KeyboardInterrupt):
        status = "interrupted"
    if search.best is None:
        return LearnedParameters(np.array(start, np.float64), np.nan, status, search.trace)
    return LearnedParameters(search.best[0], search.best[1].value, status, search.trace)


def _moved(bounds: Box, step: Array) -> list[tuple[float, float]]:
    """Move a box; sides that are open become far ones, for SciPy takes other first steps without a box."""
    return [
        (-_FAR if low is None else low + by, _FAR if high is None else high + by)
        for (low, high), by in zip(bounds, step.tolist(), strict=True)
    ]


def _minimise(search: _Search, box: list[tuple[float, float]], settings: SearchSettings) -> str:
    """Search from the best point that was evaluated first."""
    start, _ = search.known()
    value, slope = search(start)
    # SciPy's tolerance is absolute for values below 1
    limits = {
        "ftol": settings.tol * min(1.0, abs(value)),
        "gtol": 1e-4 * float(np.abs(slope).max(initial=0.0)),
        "maxiter": settings.max_iter,
        "maxfun": settings.max_iter,
        "maxls": 5,
    }
    found = minimize(search, start, method="L-BFGS-B", jac=True, bounds=box, options=limits)
    return {0: "converged", 1: "iteration_limit"}.get(found.status, "stalled")


class _LimitReachedError(Exception):
    """As many evaluations were made as are allowed."""


class _EndOfSearchError(Exception):
    """A caller asked to end the search."""


class _Search:
    """The criterion as SciPy calls it."""

    def __init__(self, criterion: Callable[[Array], Evaluation], settings: SearchSettings) -> None:
        self.criterion, self.settings = criterion, settings
        self.factor = 0.0
        self.last: tuple[Array, Evaluation] | None = None
        self.trace: list[SearchRecord] = []
        self.best: tuple[Array, Evaluation] | None = None
        self.begin = time.perf_counter()

    def first(self, start: Array, retreat: Callable[[Array], Array] | None) -> None:
        """Evaluate where the search starts; if that fails, go on to easier points while they are better."""
        theta, failures = np.array(start, np.float64), 0
        for _ in range(_MOST_STARTS):
            found = self._evaluate(theta)
            failures += not found.converged
            if self._has_started(found) or retreat is None or failures > _MOST_FAILURES:
                break
            theta = retreat(theta)
        if self.best is None:
            raise ValueError(
                "The fits to the folds did not converge at the first hyper-parameters; scale the features, "
                "start from a smaller scale, or give hyperparameters='fixed'."
            )

    def _has_started(self, found: Evaluation) -> bool:
        is_first = len(self.trace) == 1
        return found.converged and (is_first or found.value > _WORSE * self.known()[1].value)

    def known(self) -> tuple[Array, Evaluation]:
        """Give the best point met."""
        assert self.best is not None, "the search ends if the first evaluation fails"
        return self.best

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Give value and gradient, scaled so that the first step has its length."""
        found = self._evaluate(theta)
        if not self.factor:
            self.factor = self.settings.first_step / max(float(np.linalg.norm(found.slope)), 1e-12)
        value, slope = (found.value, found.slope) if found.converged else self._bracket(theta)
        return self.factor * value, self.factor * slope

    def _evaluate(self, theta: Array) -> Evaluation:
        for met in (self.last, self.best):
            if met is not None and np.array_equal(theta, met[0]):
                return met[1]  # SciPy begins where the scaling was found
        if len(self.trace) >= self.settings.max_iter:
            raise _LimitReachedError
        found = self.criterion(theta)
        if not (np.isfinite(found.value) and np.isfinite(found.slope).all()):
            found = found._replace(converged=False)
        self.last = theta.copy(), found
        if found.converged and (self.best is None or found.value < self.best[1].value):
            self.best = theta.copy(), found
        self._note(found)
        if self.settings.on_record is not None and self.settings.on_record(self.trace[-1]):
            raise _EndOfSearchError
        return found

    def _note(self, found: Evaluation) -> None:
        largest = float(np.abs(found.slope).max(initial=0.0))
        seconds = time.perf_counter() - self.begin
        self.trace.append(
            SearchRecord(len(self.trace) + 1, seconds, found.value, largest, found.gap, found.products)
        )

    def _bracket(self, theta: Array) -> tuple[float, Array]:
        """Pretend that the criterion rises along the failed step as it had promised to fall."""
        known, at = self.known()
        promised = abs(float(at.slope @ (theta - known)))
        return at.value + promised, -at.slope
