"""Learning hyper-parameters: a quasi-Newton search for the least cross-validation loss.

SciPy's L-BFGS-B does the search.  Where the inner fits fail, as they can at extreme values, the
value there is not known (Seeger 2008, section 4).  The search is then told that the criterion rises
along the step as fast as it had promised to fall, which makes its line search come back: the
failed step is a bracket on the right.  Inner fits start from the last success.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from labelweave.hyperparameters.cross_validation import Evaluation

__all__ = ["LearnedParameters", "SearchRecord", "learn"]

Array = npt.NDArray[Any]


class SearchRecord(NamedTuple):
    """One evaluation of the criterion.

    Parameters
    ----------
    evaluation : int
        Its number, from 1.
    time : float
        Seconds since the search began.
    value : float
        The mean held-out loss; NaN where the inner fits failed.
    slope : float
        The largest entry of the gradient.
    gap : float
        The relative duality gap of the inner fits.
    products : float
        Kernel products taken.
    """

    evaluation: int
    time: float
    value: float
    slope: float
    gap: float
    products: float


@dataclass(frozen=True)
class LearnedParameters:
    """The end of a search.

    Parameters
    ----------
    theta : ndarray of float64, shape (p,)
        The best hyper-parameters met.
    value : float
        Their mean held-out loss.
    status : {"converged", "iteration_limit", "stalled", "interrupted"}
        Why the search ended.
    trace : list of SearchRecord
        Every evaluation.
    """

    theta: Array
    value: float
    status: str
    trace: list[SearchRecord]


def learn(
    criterion: Callable[[Array], Evaluation],
    start: Array,
    bounds: list[tuple[float | None, float | None]],
    *,
    max_iter: int = 50,
    tol: float = 1e-4,
    first_step: float = 1.0,
    on_record: Callable[[SearchRecord], bool] | None = None,
) -> LearnedParameters:
    """Minimise the criterion.

    Parameters
    ----------
    criterion : callable
        Value and gradient at hyper-parameters.
    start : ndarray of shape (p,)
        Where to start.
    bounds : list of tuple
        The box.
    max_iter : int, default=50
        The largest number of quasi-Newton steps.
    tol : float, default=1e-4
        A step that lowers the mean held-out loss by a smaller share ends the search.
    first_step : float, default=1.0
        The length of the first step, in logarithms of parameters.
    on_record : callable or None, default=None
        Gets every record; a true result ends the search.

    Returns
    -------
    LearnedParameters
        The best hyper-parameters.

    Raises
    ------
    ValueError
        If the fits fail at the start already.
    """
    search = _Search(criterion, first_step, on_record)
    try:
        value, slope = search(start)
        # SciPy's first step is the gradient where that is shorter than 1, and its tolerance is absolute for
        # values below 1
        limits = {"ftol": tol * min(1.0, abs(value)), "gtol": 1e-4 * float(np.abs(slope).max(initial=0.0))}
        found = minimize(
            search, start, method="L-BFGS-B", jac=True, bounds=bounds,
            options={"maxiter": max_iter, "maxfun": 3 * max_iter, "maxls": 5, **limits},
        )  # fmt: skip
        status = {0: "converged", 1: "iteration_limit"}.get(found.status, "stalled")
    except (_Stop, KeyboardInterrupt):
        status = "interrupted"
    if search.best is None and status == "interrupted" and not search.has_failed:
        return LearnedParameters(np.asarray(start, np.float64), np.nan, status, search.trace)
    if search.best is None:
        raise ValueError(
            "The fits to the folds did not converge at the first hyper-parameters; start from a smaller "
            "scale, or give hyperparameters='fixed'."
        )
    return LearnedParameters(search.best[0], search.best[1].value, status, search.trace)


class _Stop(Exception):
    """A caller asked to end the search."""


class _Search:
    """The criterion as SciPy calls it."""

    def __init__(
        self,
        criterion: Callable[[Array], Evaluation],
        first_step: float,
        on_record: Callable[[SearchRecord], bool] | None,
    ) -> None:
        self.criterion, self.on_record = criterion, on_record or (lambda record: False)
        self.first_step, self.factor, self.has_failed = first_step, 0.0, False
        self.last: tuple[Array, Evaluation] | None = None
        self.trace: list[SearchRecord] = []
        self.best: tuple[Array, Evaluation] | None = None
        self.begin = time.perf_counter()

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Give value and gradient, scaled so that the first step has its length."""
        found = self._evaluate(theta)
        if not self.factor:
            self.factor = self.first_step / max(float(np.linalg.norm(found.slope)), 1e-12)
        value, slope = (found.value, found.slope) if found.converged else self._bracket(theta)
        return self.factor * value, self.factor * slope

    def _evaluate(self, theta: Array) -> Evaluation:
        if self.last is not None and np.array_equal(theta, self.last[0]):
            return self.last[1]  # SciPy begins where the scaling was found
        found = self.criterion(theta)
        self.last = theta.copy(), found
        self.has_failed |= not found.converged
        if found.converged and (self.best is None or found.value < self.best[1].value):
            self.best = theta.copy(), found
        self.trace.append(
            SearchRecord(
                len(self.trace) + 1,
                time.perf_counter() - self.begin,
                found.value,
                float(np.abs(found.slope).max(initial=0.0)),
                found.gap,
                found.products,
            )
        )
        if self.on_record(self.trace[-1]) or (self.best is None and not found.converged):
            raise _Stop
        return found

    def _bracket(self, theta: Array) -> tuple[float, Array]:
        """Pretend that the criterion rises along the failed step as it had promised to fall."""
        assert self.best is not None, "the search ends if the first evaluation fails"
        known, at = self.best
        promised = abs(float(at.slope @ (theta - known)))
        return at.value + promised, -at.slope
