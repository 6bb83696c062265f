"""Priors whose intercepts' variance is learned beside the other hyper-parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array
from labelweave.hyperparameters.prior_family import PriorFamily, PriorSlopes
from labelweave.problems.score_prior import ScorePrior

__all__ = ["LearnedIntercepts"]


_WIDEST = np.log(1e6)  # how far the variance may go from its start, as a factor


class LearnedIntercepts(PriorFamily):
    """The priors of a family, with one more hyper-parameter.

    Rare labels have intercepts far below 0.  A variance too small for them makes the kernel
    take their place.

    family: the family; its own variance of the intercepts is where the search starts.
    """

    def __init__(self, family: PriorFamily) -> None:
        self.family = family
        start = np.log(family.prior(family.start).intercept_variance)
        self.names = [*family.names, "intercept_variance"]
        self.start = np.append(family.start, start)
        self.bounds = [*family.bounds, (start - _WIDEST, start + _WIDEST)]
        self.ties_labels, self.learns_covariance = family.ties_labels, family.learns_covariance

    def prior(self, theta: Array) -> ScorePrior:
        return replace(self.family.prior(theta[:-1]), intercept_variance=float(np.exp(theta[-1])))

    def slope(self, theta: Array, slopes: PriorSlopes) -> npt.NDArray[np.float64]:
        by_logarithm = np.exp(theta[-1]) * slopes.intercept_variance
        return np.append(self.family.slope(theta[:-1], slopes), by_logarithm)

    def coarser(self) -> LearnedIntercepts | None:
        coarse = self.family.coarser()
        return None if coarse is None else LearnedIntercepts(coarse)

    def from_coarser(self, theta: Array) -> npt.NDArray[np.float64]:
        return np.append(self.family.from_coarser(theta[:-1]), theta[-1])

    def retreated(self, theta: Array) -> npt.NDArray[np.float64]:
        return np.append(self.family.retreated(theta[:-1]), theta[-1] - np.log(10.0))

    def values(self, theta: Array) -> dict[str, float]:
        return {**self.family.values(theta[:-1]), "intercept_variance": float(np.exp(theta[-1]))}
