"""What alternating directions ask of a problem, and the state of a run.

The names are those of :mod:`labelweave.solvers.alternating_directions`: the dual of the operator A, solves
with an operator H that is A or near it, and the points B, V and W.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from labelweave.array_types import Array, RowsByLabels
from labelweave.solvers.active_set_newton import FreeSystems
from labelweave.solvers.box_values import BoxTerms
from labelweave.solvers.corrected_steps import NearbyOperator

__all__ = ["Settled", "SplitDual", "SplitState"]


class SplitDual(NearbyOperator, FreeSystems, Protocol):
    """What the solver asks of a problem."""

    targets: Array
    """T, shape (n, L)."""
    lower: Array
    """At most 0."""
    upper: Array
    """At least 0."""
    steps_a_round: int
    """Steps between renewals of the correction; 1 when solves are exact."""
    is_exact: bool
    """Whether solves are with A itself."""
    penalty_changes_are_cheap: bool
    smallest_penalty: float
    """Beneath it rounding spoils the solves."""

    def round_work(self) -> float:
        """Estimate the operations of a round."""

    def low_rank_factor(self) -> Array | None:
        """Give a thin G in double precision with ``A = G G^T`` for every label, if there is one."""

    def first_penalty(self) -> float:
        """Guess the penalty to begin with."""

    def set_penalty(self, penalty: float) -> None:
        """Get ready for solves at a penalty."""

    def solve(self, right: RowsByLabels) -> RowsByLabels:
        """Solve ``(H + penalty) B = right``."""

    def scores(self, *variables: RowsByLabels) -> tuple[Array, ...]:
        """Compute ``A variables`` for each array, in its precision.

        Shapes: result (n, L).
        """

    def settled(self, free: RowsByLabels, boxed: RowsByLabels, tol: float) -> Settled:
        """Keep a result, B and V, and give it with its scores in double precision.

        tol: the gap that the point kept in place of B may have.
        """


class Settled(BoxTerms, Protocol):
    """A result in double precision with the problem that it solves, each array of shape (n, L)."""

    @property
    def kept(self) -> Array:
        """The primal point that is kept, B or one near it."""

    @property
    def kept_scores(self) -> Array:
        """Its scores."""

    @property
    def boxed(self) -> Array:
        """The dual point V."""

    @property
    def boxed_scores(self) -> Array:
        """Its scores."""


@dataclass
class SplitState:
    """Where a run stands; another run can go on from it.

    free: B, not confined to the box.
    """

    free: RowsByLabels
    boxed: RowsByLabels
    shift: RowsByLabels
    penalty: float
