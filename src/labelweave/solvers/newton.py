"""Newton's method with conjugate gradients for penalised likelihoods of kernel models.

The problem (Seeger 2008, equation 1) is, for every group of columns on its own,

    minimise  Phi(a) = sum_i loss_i(u_i) + 1/2 <a, K a>,   u = K a,

with K the prior covariance of the scores u and a the dual variables.  With
``r = -loss'(u) - a`` the gradient of Phi in the function space of K is ``-r``, so its length there
is a certificate:

    Phi(a) - Phi* <= 1/2 <r, K r>,

which is the duality gap between a and the dual point ``-loss'(u)``.  A Newton step solves
``(I + W K) d = r`` with W the curvature of the loss.

The system is self-adjoint in the inner product ``<a, K b>``.  Conjugate gradients in it
(:class:`~labelweave.solvers.function_gradients.FunctionGradients`) minimise Newton's quadratic
model of Phi at every step, so a direction that is cut short is one of descent; a factor of W,
and divisions by small probabilities, are not needed.  Each iteration takes one product with K, of
W times the direction, and the images of all vectors follow by recurrence.  That gives the scores'
direction K d with d, so a line search takes no products (the pair optimisation of section 5.1.2).
The paper's symmetric system (5) and its exact solution (appendix C) are there beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labelweave.array_types import Array, GroupedColumns
from labelweave.arrays import RowPanels
from labelweave.solvers.function_gradients import FunctionGradients
from labelweave.solvers.line_search import search_along
from labelweave.solvers.newton_problem import NewtonProblem
from labelweave.solvers.newton_system import Inner, LinearSolver, NewtonPoint, NewtonSystem, inner_products
from labelweave.solvers.result import SolverResult, Status
from labelweave.solvers.trace import TraceRecord

__all__ = ["NewtonConjugateGradient", "NewtonResult", "NewtonState"]


# residual reductions asked of conjugate gradients; with looser ones steps go astray where scores are sure
_LOOSEST, _TIGHTEST = 0.25, 0.1
_FOLLOWED = 2.0  # times what the last step did to the gap (Eisenstat and Walker, choice 2)
_SHORTEST_STEP = 1e-8


@dataclass
class NewtonState:
    """Where a fit stands; a fit can go on from here."""

    dual: GroupedColumns
    scores: GroupedColumns

    @classmethod
    def at(cls, dual: GroupedColumns) -> NewtonState:
        """Give a state to start from; the solver computes its scores.

        dual: the dual variables, changed in place by the fit.
        Returns the state, its scores yet to be computed.
        """
        return cls(dual, np.zeros_like(dual))


@dataclass(frozen=True)
class NewtonResult:
    """The end of a fit.

    result: why it stopped, and the trace over all groups together.
    gaps (groups,): the duality gap of each group, not relative.
    Shapes: values (groups,).
    """

    result: SolverResult
    gaps: Array
    values: Array


class NewtonConjugateGradient:
    """The solver.

    tol: the relative duality gap to reach, all groups together.
    max_iter: the largest number of Newton steps.
    max_inner: the largest number of conjugate gradient iterations in a step.
    on_check: gets every trace record; a true result ends the fit.
    directions: how linear systems are solved; by default :class:`FunctionGradients`.
    """

    def __init__(
        self,
        tol: float,
        max_iter: int,
        max_inner: int = 500,
        on_check: Callable[[TraceRecord], bool] | None = None,
        directions: LinearSolver | None = None,
    ) -> None:
        self.tol, self.max_iter, self.max_inner = tol, max_iter, max_inner
        self.on_check = on_check or (lambda record: False)
        self.directions: LinearSolver = directions or FunctionGradients()

    def solve(
        self, problem: NewtonProblem, state: NewtonState | None = None
    ) -> tuple[NewtonResult, NewtonState]:
        """Minimise.

        state: where to start, changed in place; by default at 0.
        """
        run = _Run(self, problem, state or NewtonState.at(np.zeros(problem.shape)))
        try:
            status = run.to_the_end()
        except KeyboardInterrupt:
            status = run.after_an_interrupt()
        result = SolverResult(status, run.steps, run.trace)
        return NewtonResult(result, run.gaps, run.values), run.state


class _Run:
    """One fit."""

    def __init__(self, solver: NewtonConjugateGradient, problem: NewtonProblem, state: NewtonState) -> None:
        self.solver, self.problem, self.state = solver, problem, state
        n_groups = problem.shape[1]
        self.every = np.arange(n_groups)
        self.gaps, self.values = np.full(n_groups, np.inf), np.full(n_groups, np.inf)
        self.last_gaps = np.full(n_groups, np.inf)
        self.active = self.every
        self.trace: list[TraceRecord] = []
        self.steps, self.begin = 0, time.perf_counter()
        self.is_fresh = not state.dual.any()  # whether the scores are K a to rounding

    def to_the_end(self) -> Status:
        """Take steps until a reason to stop."""
        if not self.is_fresh:
            self.refresh()  # a state may come from a fit with another K
        while True:
            system, residual, image = self.check()
            finished = self.gaps <= self.targets()
            if finished[self.active].all():
                if self.is_fresh:
                    return self.ended(Status.CONVERGED)
                self.refresh()  # of all groups: those that were done may owe more as the targets fall
                continue
            if self.ask():
                return self.ended(Status.INTERRUPTED)
            if self.steps >= self.solver.max_iter:
                return self.ended(Status.ITERATION_LIMIT)
            was_fresh = self.is_fresh
            longest = self.step(system, residual, image, np.flatnonzero(~finished[self.active]))
            if longest < _SHORTEST_STEP:
                if was_fresh:
                    return self.ended(Status.STALLED)
                self.refresh()

    def check(self) -> tuple[NewtonSystem, Array, Array]:
        """Evaluate the objective, its gradient and the gap of the active groups."""
        problem, active = self.problem, self.active
        dual, scores = self.state.dual[:, active], self.state.scores[:, active]
        values, residual, curvature = problem.evaluate(scores, active)
        residual -= dual
        image = problem.product(residual, active)
        inner = Inner(RowPanels(problem.workers, len(dual), dual[0].size))
        squares, energies = inner_products(inner, (residual, image), (dual, scores))
        self.last_gaps[active] = self.gaps[active]
        self.gaps[active] = np.maximum(squares, 0.0) / 2
        self.values[active] = values + energies / 2
        self.record()
        return NewtonSystem(problem, curvature, active, inner), residual, image

    def targets(self) -> Array:
        """Share the gap that is allowed among the groups, half by their values and half evenly."""
        total = max(1.0, float(np.abs(self.values).sum()))
        return np.asarray(self.solver.tol * (np.abs(self.values) + total / len(self.every)) / 2)

    def step(self, system: NewtonSystem, residual: Array, image: Array, which: Array) -> float:
        """Take a Newton step in the groups that need one; the longest step length is given."""
        if len(which) < len(self.active):
            self.active = self.active[which]
            system = system.restricted(which)
            residual, image = residual[:, which], image[:, which]
        active = self.active
        dual, scores = self.state.dual[:, active], self.state.scores[:, active]
        point = NewtonPoint(dual, scores, residual, image, self.values[active])
        solver = self.solver
        direction, along = solver.directions.direction(system, point, self.forcing(), solver.max_inner)
        lengths = search_along(system, point, direction, along)
        self.is_fresh = False  # first, for an interrupt between the next two lines
        self.state.dual[:, active] = dual + lengths[:, None] * direction
        self.state.scores[:, active] = scores + lengths[:, None] * along
        self.steps += 1
        return float(lengths.max())

    def forcing(self) -> Array:
        """Say how far the linear systems are solved: further as the gaps fall, but not past the target."""
        active = self.active
        gaps, last = self.gaps[active], self.last_gaps[active]
        tightening = np.where(np.isinf(last), _LOOSEST, _FOLLOWED * gaps / np.maximum(last, 1e-300))
        enough = 0.3 * np.sqrt(self.targets()[active] / np.maximum(gaps, 1e-300))
        return np.asarray(np.clip(np.maximum(tightening, enough), _TIGHTEST, _LOOSEST))

    def refresh(self) -> None:
        """Compute the scores of all groups anew."""
        self.active = self.every
        self.state.scores[:] = self.problem.product(self.state.dual, self.every)
        self.is_fresh = True

    def record(self) -> None:
        """Note objective and gap over all groups."""
        primal, gap = float(self.values.sum()), float(self.gaps.sum())
        relative = gap / max(1.0, abs(primal))
        share = len(self.active) / len(self.every)
        seconds = time.perf_counter() - self.begin
        self.trace.append(TraceRecord(self.steps, seconds, primal, primal - gap, relative, share))

    def ask(self) -> bool:
        """Tell the caller where the fit is."""
        return bool(self.solver.on_check(self.trace[-1]))

    def ended(self, status: Status) -> Status:
        """Make sure that the certificate holds for the variables themselves."""
        if not self.is_fresh or not self.trace:
            self.refresh()
            self.check()
        self.ask()
        return status

    def after_an_interrupt(self) -> Status:
        """End where the last whole step left off."""
        self.active = self.every
        return self.ended(Status.INTERRUPTED)
