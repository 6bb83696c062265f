r"""What the weights of cliques are penalised by, beside half the squared weights of labels.

With z the image of the dual point in the features' space, and w the weights:

- ridge, for a given graph: ``1/2 sum_c ||w_c||^2``, so w = z;
- by rounds, for a graph that is learned r cliques at a time (Tan et al. 2015, equation 10):
  ``1/2 (sum_k ||w_k||)^2`` over the groups of cliques chosen in the same round.

The second is ``min over shares d >= 0, sum d = 1, of 1/2 sum_k ||w_k||^2 / d_k``, which for given shares is a
ridge penalty again with w_k = d_k z_k, and for given weights has the shares ``||w_k|| / sum ||w_k||``; its
conjugate is ``1/2 max_k ||z_k||^2``.  So the constraints of the dual stay exact, and so does the gap.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from labelweave.array_types import Array

__all__ = ["CliquePenalty", "RidgePenalty", "RoundPenalty"]


_SMALLEST_SHARE = 1e-12


class CliquePenalty(Protocol):
    """A penalty of the weights of cliques, by the squared norms of their z."""

    def scales(self) -> Array:
        """Give the multiplier of every clique's z.

        Shapes: result (cliques,).
        """

    def primal(self, squares: Array) -> float:
        """Compute the penalty of the weights.

        Shapes: squares (cliques,).
        """

    def dual(self, squares: Array) -> float:
        """Compute the conjugate at z.

        Shapes: squares (cliques,).
        """

    def rebalance(self, squares: Array) -> None:
        """Choose the best shares for the weights.

        Shapes: squares (cliques,).
        """

    def grown(self, count: int) -> CliquePenalty:
        """Give the penalty with a round of more cliques."""


class RidgePenalty:
    """Half the squared weights."""

    def __init__(self, n_cliques: int) -> None:
        self.n_cliques = n_cliques

    def scales(self) -> Array:
        """Give the multipliers.

        Shapes: result (cliques,).
        """
        return np.ones(self.n_cliques)

    def primal(self, squares: Array) -> float:
        """Compute the penalty.

        Shapes: squares (cliques,).
        """
        return 0.5 * float(squares.sum())

    def dual(self, squares: Array) -> float:
        """Compute the conjugate, which is the penalty.

        Shapes: squares (cliques,).
        """
        return self.primal(squares)

    def rebalance(self, squares: Array) -> None:
        """Do nothing.

        Shapes: squares (cliques,).
        """

    def grown(self, count: int) -> RidgePenalty:
        """Give the penalty with more cliques."""
        return RidgePenalty(self.n_cliques + count)


class RoundPenalty:
    """Half the square of the summed norms of rounds.

    rounds (cliques,): the round of every clique, from 0.
    shares: the shares of the rounds, equal by default.
    """

    def __init__(self, rounds: Any = (), shares: Any | None = None) -> None:
        self.rounds = np.asarray(rounds, np.int64)
        self.n_rounds = int(self.rounds.max(initial=-1)) + 1
        equal = np.full(self.n_rounds, 1.0 / max(1, self.n_rounds))
        self.shares = equal if shares is None else np.asarray(shares, np.float64)

    def scales(self) -> Array:
        """Give the share of every clique's round.

        Shapes: result (cliques,).
        """
        return self.shares[self.rounds]

    def round_squares(self, squares: Array) -> Array:
        """Sum over the cliques of rounds.

        Shapes: squares (cliques,), result (rounds,).
        """
        return np.bincount(self.rounds, squares, minlength=self.n_rounds)

    def primal(self, squares: Array) -> float:
        """Compute the penalty of the weights.

        Shapes: squares (cliques,).
        """
        return 0.5 * float(self._norms(squares).sum()) ** 2

    def dual(self, squares: Array) -> float:
        """Compute the conjugate.

        Returns half the largest squared norm of a round.
        Shapes: squares (cliques,).
        """
        return 0.5 * float(self.round_squares(squares).max(initial=0.0))

    def rebalance(self, squares: Array) -> None:
        """Choose the best shares for the weights.

        Shapes: squares (cliques,).
        """
        norms = self._norms(squares)
        if norms.sum() > 0:
            self.shares = np.maximum(norms / norms.sum(), _SMALLEST_SHARE)

    def grown(self, count: int) -> RoundPenalty:
        """Give the penalty with one more round, which takes an equal share.

        count: the number of its cliques.
        """
        rounds = np.append(self.rounds, np.full(count, self.n_rounds))
        kept = self.n_rounds / (self.n_rounds + 1.0)
        return RoundPenalty(rounds, np.append(self.shares * kept, 1.0 / (self.n_rounds + 1.0)))

    def _norms(self, squares: Array) -> Array:
        return self.shares * np.sqrt(self.round_squares(squares))
