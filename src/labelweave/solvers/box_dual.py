"""Box-constrained quadratic duals: objectives, the best points of a run, and the interface of problems.

With A positive semi-definite and S = A B the scores,

    dual(V)   = <T, V> - 1/2 <V, A V>,                          V within the box,
    primal(B) = 1/2 <B, A B> + sum max(lower (T - S), upper (T - S)),     any B.

The sum is the box's support function, for a margin dual the hinge loss: no point's
dual value exceeds any point's primal value.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.foundation.arrays import namespace
from labelweave.foundation.arrays.linear_algebra import column_products, inner_product, like
from labelweave.solvers.frame import (
    MEASURED,
    Certificate,
    Round,
    Solver,
    State,
    Status,
    TraceRecord,
    checked_round,
    relative_gap,
)

WRONG = 1e-3  # a gap this far below 0 is more than rounding of the last digits


class BoxTerms(Protocol):
    """The arrays that define the objectives, each of shape (n, L)."""

    targets: Array
    """T."""
    lower: Array
    """The lower bounds, at most 0."""
    upper: Array
    """The upper bounds, at least 0."""


class BoxProblem(BoxTerms, Protocol):
    """The minimum interface for any solver: products with A, and objectives."""

    def scores(self, *variables: RowsByLabels) -> tuple[Array, ...]:
        """Compute ``A variables`` for each array, in its precision."""

    def objectives(self, variables: RowsByLabels) -> tuple[float, float]:
        """Compute primal and dual value at variables within the box."""

    def settled(self, free: Array, boxed: Array, tol: float, weights: Array | None = None) -> Settled:
        """Return the result at B and V with its scores in double precision.

        tol: the gap allowed for the point kept instead of B.
        weights (r, L): replaces ``G^T B``, where G is the low-rank factor.
        """


class FreeSystems(BoxProblem, Protocol):
    """A problem with explicit linear systems between some variables."""

    is_semidefinite: bool
    """Whether A is made of products of features, so that nothing but rounding makes ``<V, A V>`` negative."""

    def coupled_labels(self) -> list[Array]:
        """Return the sets of labels that A couples, each an ndarray of int."""

    def newton_work(self, sizes: list[int]) -> float:
        """Estimate the operations to solve systems of these sizes; infinite if they cannot be."""

    def system(self, rows: Array, labels: Array) -> Array:
        """Return A as a dense matrix between the variables (rows[k], labels[k]), shape (k, k)."""


@dataclass
class Settled:
    """A result in double precision with its problem, each array of shape (n, L).

    targets, lower, upper: the problem's.
    kept, kept_scores: the stored primal point, B or one near it, and its scores.
    boxed, boxed_scores: the dual point V and its scores.
    weights (r, L): if A is made from features, those that yield the kept scores, before labels are coupled.
    squares: ``<B, A B>`` and ``<V, A V>``.
    """

    targets: Array
    lower: Array
    upper: Array
    kept: Array
    kept_scores: Array
    boxed: Array
    boxed_scores: Array
    weights: Array | None = None
    squares: tuple[float, float] | None = None

    def values(self) -> tuple[float, float]:
        pairs = (self.kept, self.kept_scores), (self.boxed, self.boxed_scores)
        square, dual_square = self.squares or tuple(inner_product(*pair) for pair in pairs)
        primal = square / 2 + box_loss(self, self.kept_scores)
        return primal, inner_product(self.targets, self.boxed) - dual_square / 2


class ShiftedSolves(Protocol):
    """Solves with ``H + rho I`` for ``H = (N + rest I) (x) R``, which is, or is near, ``K (x) R``."""

    is_exact: bool
    """Whether H is ``K (x) R``."""
    penalty_changes_are_cheap: bool
    smallest_penalty: float
    """Beneath it rounding spoils the solves."""
    first_rest: float
    """What the rest is to begin with."""

    def solve(self, right: RowsByLabels, penalty: float, rest: float) -> RowsByLabels:
        """Solve ``(H + penalty) B = right``; the factorization of the last penalty and rest is cached."""

    def near_product(self, variables: RowsByLabels) -> RowsByLabels:
        """Compute ``(N (x) R) variables``."""

    def rest_product(self, variables: RowsByLabels) -> RowsByLabels:
        """Compute ``(I (x) R) variables``."""


class SplitDual(FreeSystems, Protocol):
    """The problem of :class:`AlternatingDirections`."""

    solves: ShiftedSolves

    def round_work(self) -> float:
        """Estimate the operations of a round."""

    def low_rank_factor(self) -> Array | None:
        """Return a thin G in double precision with ``A = G G^T`` for every label, or None."""

    def first_penalty(self) -> float:
        """Estimate the initial penalty."""


@dataclass(frozen=True)
class LocalEnd:
    """The best points of a local method.

    free: B, the best primal point.
    boxed: V, the best dual point.
    gradient: of the dual, at B.
    gap: the relative duality gap between them.
    weights (r, L): ``G^T B`` for a factor G, if the method has it more exactly than the product.
    """

    free: RowsByLabels
    boxed: RowsByLabels
    gradient: RowsByLabels
    gap: float
    weights: Array | None = None


@dataclass(frozen=True)
class BestPoints:
    """The best primal and dual points of a run, and the gap between them.

    A run starts with the point 0, which is both, so the relative gap is never above 1.  A dual
    point V may be shrunk toward 0, which stays within the box: for labels not coupled to others the best
    multiple of V is min(1, <T, V> / <V, A V>) over their entries.

    weights: those of the primal point, if a local method returned them.
    """

    free: RowsByLabels
    boxed: RowsByLabels
    primal: float
    dual: float
    weights: Array | None = None

    @classmethod
    def at_zero(cls, terms: BoxTerms) -> BestPoints:
        zero = namespace(terms.targets).zeros_like(terms.targets)
        return cls(zero, zero, primal_value(terms, zero, zero), 0.0)

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.dual)

    def with_primal(self, terms: FreeSystems, free: RowsByLabels, scores: RowsByLabels) -> BestPoints:
        primal = primal_value(terms, free, scores)
        if primal >= self.primal or _is_rounding(terms, primal, self.dual):
            return self
        return replace(self, primal=primal, free=free, weights=None)

    def with_dual(
        self, terms: FreeSystems, boxed: RowsByLabels, scores: RowsByLabels
    ) -> tuple[BestPoints, float]:
        """Update the best dual point, and return the dual value at V itself."""
        linear, quadratic = column_products(terms.targets, boxed), column_products(boxed, scores)
        shares = np.ones(len(linear))
        for group in terms.coupled_labels():
            up, down = linear[group].sum(), quadratic[group].sum()
            if up < down:
                shares[group] = max(up, 0.0) / down
        value = float((linear - quadratic / 2).sum())
        dual = float((shares * linear - shares * shares * quadratic / 2).sum())
        if dual <= self.dual or _is_rounding(terms, self.primal, dual):
            return self, value
        shrunk = boxed if (shares == 1).all() else boxed * like(shares, boxed)
        return replace(self, dual=dual, boxed=shrunk), value


def _is_rounding(terms: FreeSystems, primal: float, dual: float) -> bool:
    """Return whether rounding makes the objectives inconsistent, as for features near 1e40."""
    return terms.is_semidefinite and relative_gap(primal, dual) < -WRONG


def primal_value(terms: BoxTerms, variables: RowsByLabels, scores: RowsByLabels) -> float:
    """Compute the primal objective, an upper bound of the optimum."""
    return inner_product(variables, scores) / 2 + box_loss(terms, scores)


def box_loss(terms: BoxTerms, scores: RowsByLabels) -> float:
    """Compute the support function of the box, for a margin dual the sum of hinge losses."""
    short = terms.targets - scores
    xp = namespace(short)
    loss = xp.maximum(terms.lower * short, terms.upper * short)
    return float(xp.sum(loss, dtype=xp.float64))


def dual_value(terms: BoxTerms, boxed: RowsByLabels, scores: RowsByLabels) -> float:
    """Compute the dual objective, a lower bound of the optimum."""
    return inner_product(terms.targets, boxed) - inner_product(boxed, scores) / 2


def dual_value_above(terms: BoxTerms, near: RowsByLabels, scores: RowsByLabels, boxed: RowsByLabels) -> float:
    """Bound the dual objective at V from above by its tangent at B, of known scores: it is concave."""
    return inner_product(terms.targets - scores, boxed) + inner_product(near, scores) / 2


def _protect(problem: BoxTerms) -> None:
    problem.targets.flags.writeable = problem.lower.flags.writeable = problem.upper.flags.writeable = False


class MeasuredSolver(Solver[BoxProblem, State]):
    """Run a user's solver that returns dual variables (n, L), to a tolerance and limit that are passed to it.

    Callbacks receive the objectives that it reports.  The result is measured here, in double precision: the
    gap of a fit is independent of the solver.  A run has converged if the measured gap is small enough, and
    continues if only the gap reported by the solver is.  The problem's arrays become read-only.
    """

    def __init__(self, own: Solver[Any, Any], tol: float, max_iter: int) -> None:
        self.own, self.tol, self.max_iter = copy(own), tol, max_iter
        for name, value in (("tol", tol), ("max_iter", max_iter)):
            object.__setattr__(self.own, name, value)  # also of a frozen dataclass
        self.name = type(own).__name__

    def start(self, problem: BoxProblem, dual: RowsByLabels | None = None) -> State:
        """Start at dual variables (n, L), by default those of the solver."""
        own: Any = self.own
        _protect(problem)
        state = own.start(problem) if dual is None else own.start(problem, self._variables(problem, dual))
        if not isinstance(state, State):
            raise TypeError(f"{self.name}.start returned a {type(state).__name__}; it must return a State.")
        return state

    def state_template(self, problem: BoxProblem, state: State) -> State:
        return self.own.state_template(problem, state)

    def recover(self, problem: BoxProblem, state: State) -> State:
        return self.own.recover(problem, state)

    def round(self, problem: BoxProblem, state: State) -> Round[State]:
        done = state.rounds
        _protect(problem)  # of a run that continues too
        found = checked_round(self.own, self.own.round(problem, state))
        if found.status is None and found.state.rounds != done + 1:
            raise ValueError(
                f"{self.name}.round returned a state with rounds={found.state.rounds} after {done}; add one "
                "per round."
            )
        if found.status not in MEASURED:
            return found
        answer = self._answer(problem, found.state, found.status) if found.answer is None else found.answer
        otherwise = None if found.status is Status.CONVERGED else Status.SETTLED
        record, status, settled = self._measured(problem, answer, otherwise)
        return found._replace(record=record, status=status, answer=settled)

    def certify(self, problem: BoxProblem, state: State, status: Status) -> Certificate:
        return self._measured(problem, self._answer(problem, state, status), status)

    def _answer(self, problem: BoxProblem, state: State, status: Status) -> Any:
        found = self.own.certify(problem, state, status)
        if not isinstance(found, tuple) or len(found) != 3:
            raise TypeError(f"{self.name}.certify must return (record, status, answer).")
        return found[2]

    def _measured(self, problem: BoxProblem, answer: Any, otherwise: Any) -> Certificate:
        variables = self._variables(problem, answer)
        settled: Settled = problem.settled(variables, variables, self.tol)
        record = TraceRecord.of(*settled.values())
        return Certificate(record, Status.CONVERGED if record.gap <= self.tol else otherwise, settled)

    def _variables(self, problem: BoxProblem, answer: Any) -> RowsByLabels:
        shape = problem.targets.shape
        if not isinstance(answer, np.ndarray) or answer.shape != shape or answer.dtype.kind != "f":
            kind = f"{getattr(answer, 'dtype', type(answer).__name__)} {getattr(answer, 'shape', '')}".strip()
            raise TypeError(
                f"{self.name} returned {kind} as answer; it must be the dual variables, a float array "
                f"{shape}."
            )
        if not np.isfinite(answer).all():
            raise ValueError(f"{self.name} returned an answer that is not finite.")
        return np.clip(answer, problem.lower, problem.upper)
