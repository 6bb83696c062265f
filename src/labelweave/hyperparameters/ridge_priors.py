"""Priors of ridge regression: one kernel for all labels, and one lambda.

The ridge penalty ``lambda / 2 |u|^2`` in the space of ``K + c^2`` is the prior ``(K + c^2) / lambda`` for
every label: the hyper-parameters are lambda and those of K, while c, the constant feature, is given.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array
from labelweave.features import Kernel
from labelweave.hyperparameters.prior_family import PriorFamily, PriorSlopes
from labelweave.labels.covariance.factor import FactorCovariance
from labelweave.problems.score_prior import PriorTerm, ScorePrior

__all__ = ["RidgePriors"]


_WIDEST = np.log(1e6)  # how far a parameter may go from its start, as a factor


class RidgePriors(PriorFamily):
    """The priors.

    kernel: the kernel to start from, its parameters numbers; None for a kernel matrix that was given.
    regularization: lambda to start from, positive.
    ties_labels: whether all labels of a fit are solved for together, as suits labels that are all observed.
    """

    learns_covariance = False

    def __init__(
        self,
        kernel: Kernel | None,
        regularization: float,
        constant: float,
        n_labels: int,
        *,
        ties_labels: bool,
    ) -> None:
        self.kernel, self.constant, self.n_labels = kernel, constant, n_labels
        self.ties_labels = ties_labels
        self.names = ["regularization", *([] if kernel is None else kernel.parameter_names())]
        shape = np.empty(0) if kernel is None else kernel.log_parameters()
        self.start = np.concatenate([[np.log(regularization)], shape])
        self.bounds = [(value - _WIDEST, value + _WIDEST) for value in self.start.tolist()]

    def kernel_at(self, theta: Array) -> Kernel | None:
        """Give the kernel.

        Returns the kernel; None for a kernel matrix that was given.
        Shapes: theta (p,).
        """
        return None if self.kernel is None else self.kernel.with_log_parameters(theta[1:])

    def prior(self, theta: Array) -> ScorePrior:
        variance = float(np.exp(-theta[0]))
        covariance = FactorCovariance(np.empty((self.n_labels, 0)), np.full(self.n_labels, variance))
        return ScorePrior((PriorTerm(self.kernel_at(theta), covariance),), variance * self.constant**2)

    def slope(self, theta: Array, slopes: PriorSlopes) -> npt.NDArray[np.float64]:
        term = slopes.terms[0]
        by_variances = term.covariance if term.covariance.ndim == 1 else term.covariance.diagonal()
        by_variance = by_variances.sum() + self.constant**2 * slopes.intercept_variance
        return np.concatenate([[-np.exp(-theta[0]) * by_variance], term.kernel])

    def retreated(self, theta: Array) -> npt.NDArray[np.float64]:
        return np.concatenate([[theta[0] + np.log(10.0)], theta[1:]])

    def values(self, theta: Array) -> dict[str, float]:
        return dict(zip(self.names, np.exp(theta).tolist(), strict=True))
