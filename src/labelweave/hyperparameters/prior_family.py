"""Families of priors: what hyper-parameters there are, and the prior that values of them give.

A family maps a vector theta to a :class:`~labelweave.problems.score_prior.ScorePrior` and the
derivatives of any function of the prior back to theta (the chain rule's last link).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from labelweave.problems.score_prior import ScorePrior

__all__ = ["PriorFamily", "PriorSlopes", "TermSlopes"]

Array = npt.NDArray[Any]


class TermSlopes(NamedTuple):
    """Derivatives of a function of the prior by one term ``K_g ⊗ R_g``.

    Parameters
    ----------
    kernel : ndarray of float64, shape (p,)
        By the logarithms of the kernel's parameters, in the order of its ``parameter_names``.
    covariance : ndarray of float64, shape (L, L) or (L,)
        By the entries of R_g, symmetric; by its diagonal alone where R_g is diagonal
        and stays so.
    """

    kernel: Array
    covariance: Array


class PriorSlopes(NamedTuple):
    """Derivatives of a function of the prior.

    Parameters
    ----------
    terms : list of TermSlopes
        By every term.
    intercept_variance : float
        By the variance of the intercepts.
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

        Parameters
        ----------
        theta : ndarray of shape (p,)
            The hyper-parameters, mostly logarithms.

        Returns
        -------
        ScorePrior
            The prior.
        """

    def slope(self, theta: Array, slopes: PriorSlopes) -> npt.NDArray[np.float64]:
        """Turn the derivatives by every term of the prior into those by theta.

        Parameters
        ----------
        theta : ndarray of shape (p,)
            The hyper-parameters.
        slopes : PriorSlopes
            The derivatives.

        Returns
        -------
        ndarray of float64, shape (p,)
            The derivatives by theta.
        """

    def coarser(self) -> PriorFamily | None:
        """Tie all hyper-parameters that are apart, for a first search.

        Returns
        -------
        PriorFamily or None
            A family of fewer hyper-parameters; None if there is none.
        """
        return None

    def from_coarser(self, theta: Array) -> npt.NDArray[np.float64]:
        """Give the hyper-parameters that stand for those of the coarser family.

        Parameters
        ----------
        theta : ndarray of shape (q,)
            Hyper-parameters of :meth:`coarser`.

        Returns
        -------
        ndarray of float64, shape (p,)
            Those of this family with the same prior.
        """
        return theta

    def retreated(self, theta: Array) -> npt.NDArray[np.float64]:
        """Lower all prior variances tenfold, which makes fits easier.

        Parameters
        ----------
        theta : ndarray of shape (p,)
            The hyper-parameters.

        Returns
        -------
        ndarray of float64, shape (p,)
            Other ones.
        """

    def values(self, theta: Array) -> dict[str, float]:
        """Give the hyper-parameters themselves.

        Parameters
        ----------
        theta : ndarray of shape (p,)
            The hyper-parameters, mostly logarithms.

        Returns
        -------
        dict of str to float
            Their values by name.
        """
