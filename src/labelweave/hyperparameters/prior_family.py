"""Families of priors: what hyper-parameters there are, and the prior that values of them give.

A family maps a vector theta to a :class:`~labelweave.problems.score_prior.ScorePrior` and the
derivatives of any function of the prior back to theta (the chain rule's last link).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array, LabelsByLabels
from labelweave.problems.score_prior import ScorePrior

__all__ = ["PriorFamily", "PriorSlopes", "TermSlopes"]


class TermSlopes(NamedTuple):
    """Derivatives of a function of the prior by one term ``K_g ⊗ R_g``.

    kernel (p,): by the logarithms of the kernel's parameters, in the order of its ``parameter_names``.
    covariance: by the entries of R_g, symmetric; by its diagonal alone where R_g is diagonal and stays so.
    """

    kernel: Array
    covariance: LabelsByLabels


class PriorSlopes(NamedTuple):
    """Derivatives of a function of the prior.

    intercept_variance: by the variance of the intercepts.
    """

    terms: list[TermSlopes]
    intercept_variance: float


class PriorFamily(Protocol):
    """Priors with hyper-parameters."""

    names: list[str]
    """What the entries of theta are, for people."""
    start: npt.NDArray[np.float64]
    """Where to start."""
    bounds: list[tuple[float | None, float | None]]
    """The box in which theta is sought."""
    ties_labels: bool
    """Whether some prior of the family ties labels together."""
    learns_covariance: bool
    """Whether :meth:`slope` needs derivatives by all entries of label covariances, also where they are 0."""

    def prior(self, theta: Array) -> ScorePrior:
        """Make the prior.

        Shapes: theta (p,).
        """

    def slope(self, theta: Array, slopes: PriorSlopes) -> npt.NDArray[np.float64]:
        """Turn the derivatives by every term of the prior into those by theta.

        Shapes: theta (p,), result (p,).
        """

    def coarser(self) -> PriorFamily | None:
        """Tie all hyper-parameters that are apart, for a first search.

        Returns A family of fewer hyper-parameters; None if there is none.
        """
        return None

    def from_coarser(self, theta: Array) -> npt.NDArray[np.float64]:
        """Give the hyper-parameters that stand for those of the coarser family.

        Returns (p,): those of this family with the same prior.
        Shapes: theta (q,).
        """
        return theta

    def retreated(self, theta: Array) -> npt.NDArray[np.float64]:
        """Lower all prior variances tenfold, which makes fits easier.

        Shapes: theta (p,), result (p,).
        """

    def values(self, theta: Array) -> dict[str, float]:
        """Give the hyper-parameters themselves.

        Shapes: theta (p,).
        """
