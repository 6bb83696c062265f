"""Priors with one kernel and any label covariance: a given one with a scale, or a learned one.

Seeger 2008, section 7.4.1: ``u = B f`` mixes independent functions f, so the scores have the prior
``K ⊗ B B^T``.  The entries of B are hyper-parameters.  B may be square, or have fewer columns than
there are labels (factor loadings).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array
from labelweave.features import Kernel
from labelweave.hyperparameters.prior_family import PriorFamily, PriorSlopes
from labelweave.labels import LabelCovariance
from labelweave.labels.covariance.factor import FactorCovariance
from labelweave.problems.score_prior import PriorTerm, ScorePrior

__all__ = ["GivenCovariance", "LearnedCoupling"]


_WIDEST = np.log(1e6)  # how far a parameter may go from its start, as a factor


class GivenCovariance(PriorFamily):
    """``v K ⊗ R`` with R given.

    kernel: the shape to start from, its parameters numbers; None for a kernel matrix that was given.
    start_scale: the scale v to start from.
    """

    ties_labels = True
    learns_covariance = False

    def __init__(
        self,
        kernel: Kernel | None,
        covariance: LabelCovariance,
        start_scale: float,
        intercept_variance: float,
    ) -> None:
        self.kernel, self.covariance, self.intercept_variance = kernel, covariance, intercept_variance
        shape = np.empty(0) if kernel is None else kernel.log_parameters()
        self.start = np.concatenate([[np.log(start_scale)], shape])
        self.names = ["scale", *([] if kernel is None else kernel.parameter_names())]
        self.bounds = [(value - _WIDEST, value + _WIDEST) for value in self.start.tolist()]

    def prior(self, theta: Array) -> ScorePrior:
        kernel = self.kernel if self.kernel is None else self.kernel.with_log_parameters(theta[1:])
        scaled = self.covariance.scaled(float(np.exp(theta[0])))
        return ScorePrior((PriorTerm(kernel, scaled),), self.intercept_variance)

    def slope(self, theta: Array, slopes: PriorSlopes) -> npt.NDArray[np.float64]:
        (term,) = slopes.terms
        is_diagonal = term.covariance.ndim == 1
        given = self.covariance.diagonal() if is_diagonal else self.covariance.to_dense()
        by_scale = float(np.sum(term.covariance * given))
        return np.concatenate([[np.exp(theta[0]) * by_scale], term.kernel])

    def retreated(self, theta: Array) -> npt.NDArray[np.float64]:
        return np.concatenate([theta[:1] - np.log(10.0), theta[1:]])

    def values(self, theta: Array) -> dict[str, float]:
        return dict(zip(self.names, np.exp(theta).tolist(), strict=True))


class LearnedCoupling(PriorFamily):
    """``K ⊗ B B^T`` with B to be learned.

    kernel: the shape to start from, its parameters numbers; None for a kernel matrix that was given.
    label_names: the labels, for the names of the entries.
    Shapes: start (L, r).
    """

    ties_labels = True
    learns_covariance = True

    def __init__(
        self, kernel: Kernel | None, start: Array, label_names: Any, intercept_variance: float
    ) -> None:
        self.kernel, self.intercept_variance, self.size = kernel, intercept_variance, start.shape
        shape = np.empty(0) if kernel is None else kernel.log_parameters()
        self.n_shape = len(shape)
        self.start = np.concatenate([shape, start.ravel()])
        self.names = [
            *([] if kernel is None else kernel.parameter_names()),
            *(f"coupling[{name}, {factor}]" for name in label_names for factor in range(start.shape[1])),
        ]
        free: tuple[float | None, float | None] = (None, None)
        self.bounds = [(value - _WIDEST, value + _WIDEST) for value in shape.tolist()] + [free] * start.size

    def _coupling(self, theta: Array) -> Array:
        return theta[self.n_shape :].reshape(self.size)

    def prior(self, theta: Array) -> ScorePrior:
        kernel = (
            self.kernel if self.kernel is None else self.kernel.with_log_parameters(theta[: self.n_shape])
        )
        term = PriorTerm(kernel, FactorCovariance(self._coupling(theta).copy()))
        return ScorePrior((term,), self.intercept_variance)

    def slope(self, theta: Array, slopes: PriorSlopes) -> npt.NDArray[np.float64]:
        (term,) = slopes.terms
        return np.concatenate([term.kernel, 2.0 * (term.covariance @ self._coupling(theta)).ravel()])

    def retreated(self, theta: Array) -> npt.NDArray[np.float64]:
        return np.concatenate([theta[: self.n_shape], theta[self.n_shape :] / np.sqrt(10.0)])

    def values(self, theta: Array) -> dict[str, float]:
        shape = np.exp(theta[: self.n_shape]).tolist()
        return dict(zip(self.names, shape + theta[self.n_shape :].tolist(), strict=True))
