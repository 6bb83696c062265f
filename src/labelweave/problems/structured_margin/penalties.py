r"""What the weights of cliques are penalised by, beside half the squared weights of labels.

With z the image of the dual point in the features' space, and w the weights:

- ridge, for a given graph: ``1/2 sum_c ||w_c||^2``, so w = z;
- by rounds, for a graph that is learned r cliques at a time (Tan et al. 2015, equation 10):
  ``1/2 (sum_k ||w_k||)^2`` over the groups of cliques chosen in the same round.

The second is ``min over shares d >= 0, sum d = 1, of 1/2 sum_k ||w_k||^2 / d_k``, which for given shares is a
ridge penalty again with w_k = d_k z_k, and for given weights has the shares ``||w_k|| / sum ||w_k||``; its
conjugate is ``1/2 max_k ||z_k||^2``.  So the constraints of the dual stay exact, and so does the gap.

The shares belong to the point; penalties do not change.  ``squares`` (cliques,) are squared norms of z.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from labelweave.array_types import Array

__all__ = ["CliquePenalty", "RidgePenalty", "RoundPenalty", "grown_shares"]


_SMALLEST_SHARE = 1e-12


class CliquePenalty(Protocol):
    """A penalty of the weights of cliques."""

    def first_shares(self) -> Array:
        """Give equal shares."""

    def scales(self, shares: Array) -> Array:
        """Give the multiplier of every clique's z."""

    def primal(self, squares: Array, shares: Array) -> float:
        """Compute the penalty of the weights."""

    def dual(self, squares: Array) -> float:
        """Compute the conjugate at z."""

    def rebalance(self, squares: Array, shares: Array) -> None:
        """Write the best shares for the weights."""


class RidgePenalty:
    """Half the squared weights."""

    def __init__(self, n_cliques: int) -> None:
        self.n_cliques = n_cliques

    def first_shares(self) -> Array:
        """Give none."""
        return np.zeros(0)

    def scales(self, shares: Array) -> Array:
        """Give ones."""
        return np.ones(self.n_cliques)

    def primal(self, squares: Array, shares: Array) -> float:
        """Compute the penalty."""
        return 0.5 * float(squares.sum())

    def dual(self, squares: Array) -> float:
        """Compute the conjugate, which is the penalty."""
        return 0.5 * float(squares.sum())

    def rebalance(self, squares: Array, shares: Array) -> None:
        """Do nothing."""


class RoundPenalty:
    """Half the square of the summed norms of rounds.

    rounds (cliques,): the round of every clique, from 0.
    """

    def __init__(self, rounds: Any = ()) -> None:
        self.rounds = np.asarray(rounds, np.int64)
        self.n_rounds = int(self.rounds.max(initial=-1)) + 1

    def first_shares(self) -> Array:
        """Give equal shares."""
        return np.full(self.n_rounds, 1.0 / max(1, self.n_rounds))

    def scales(self, shares: Array) -> Array:
        """Give the share of every clique's round."""
        return shares[self.rounds]

    def round_squares(self, squares: Array) -> Array:
        """Sum over the cliques of rounds."""
        return np.bincount(self.rounds, squares, minlength=self.n_rounds)

    def primal(self, squares: Array, shares: Array) -> float:
        """Compute the penalty of the weights."""
        return 0.5 * float(self._norms(squares, shares).sum()) ** 2

    def dual(self, squares: Array) -> float:
        """Compute the conjugate: half the largest squared norm of a round."""
        return 0.5 * float(self.round_squares(squares).max(initial=0.0))

    def rebalance(self, squares: Array, shares: Array) -> None:
        """Write the best shares for the weights."""
        norms = self._norms(squares, shares)
        if norms.sum() > 0:
            shares[:] = np.maximum(norms / norms.sum(), _SMALLEST_SHARE)

    def _norms(self, squares: Array, shares: Array) -> Array:
        return shares * np.sqrt(self.round_squares(squares))


def grown_shares(shares: Array) -> Array:
    """Give the shares with one more round, which takes an equal one."""
    return np.append(shares * (len(shares) / (len(shares) + 1.0)), 1.0 / (len(shares) + 1.0))
