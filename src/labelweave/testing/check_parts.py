"""Checks of custom kernels and solvers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from labelweave.features import FeatureMatrix, Kernel, LinearKernel
from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import numbers_of
from labelweave.solvers.box_dual import MeasuredSolver, Settled, dual_value, primal_value
from labelweave.solvers.frame import Solver, SolverResult, State
from labelweave.testing.checks import (
    ContractError,
    called,
    require,
    require_array,
    require_close,
    require_semidefinite,
    through_file,
)

_SCALES = (1e-4, 1e-2, 1.0, 1e2)
_STEP = 1e-4  # of the logarithms of the parameters
_MOST_ROWS = 1000
_LARGEST_SINGLE = 1e6  # larger features are not checked in single precision
_TOL, _ROUNDS = 1e-3, 20_000


@checked
def check_kernel(kernel: Kernel, X: Any = None) -> None:
    """Check that a kernel meets the requirements of the models.

    The check verifies that values are symmetric, positive semi-definite and finite; that the diagonal,
    blocks, sparse rows and rows in single precision agree with the whole matrix; that derivatives **with
    respect to the logarithms of the parameters** match finite differences at parameters from 1e-4 to 100;
    that dot products of explicit features equal the kernel; that results are new arrays, which composed
    kernels overwrite; and that clones and kernels loaded from a model file equal the original.

    Parameters
    ----------
    kernel : Kernel
        The kernel; parameters that depend on data are set from X.
    X : array-like or sparse array of shape (n, d), or None, default=None
        Up to 1,000 rows to check on; by default 12 random rows with 4 features, some of them 0.

    Raises
    ------
    ContractError
        If a requirement is not met; the message names it, and the rows or the parameter.
    ValueError
        If X is not finite, or is empty or has more than 1,000 rows.

    Examples
    --------
    >>> from labelweave.testing import check_kernel
    >>> from labelweave.kernels import LaplacianKernel, RBFKernel
    >>> check_kernel(2.0 * RBFKernel(gamma=0.5) + LaplacianKernel(gamma=0.1))
    """
    rows = FeatureMatrix(_random_rows() if X is None else X if sp.issparse(X) else numbers_of(X, "X"))
    if not 0 < len(rows) <= _MOST_ROWS:
        raise ValueError(
            f"X has {len(rows)} rows; pass 1 to {_MOST_ROWS}, since all pairs of rows are checked."
        )
    dense = FeatureMatrix(rows.data.toarray() if rows.is_sparse else rows.data).astype(np.float64)
    own = kernel.resolved(dense)
    name = type(kernel).__name__
    require(isinstance(own, Kernel), f"{name}.resolved returned a {type(own).__name__}, not a kernel.")
    gram = _check_values(own, dense, name)
    _check_forms(own, dense, gram, name)
    _check_derivatives(own, dense, name)
    explicit = own.explicit_features(dense)
    if explicit is not None:
        found = LinearKernel().block(explicit, explicit)
        require_close(
            found, gram, f"a dot product of {name}'s explicit features", "the kernel is", 1e-6, 1e-9
        )
    for other, how in ((clone(own), "a clone"), (through_file(own), "a model file")):
        if other is not None:
            what = f"{name}.block, of {how},"
            require_close(other.block(dense, dense), gram, what, "the original is", 0.0, 0.0)


def _random_rows() -> Array:
    random = np.random.default_rng(0)
    table = random.normal(size=(12, 4)) * (random.random((12, 4)) < 0.7)
    table[6] = 0.0
    return table


def _check_values(kernel: Kernel, rows: FeatureMatrix, name: str) -> Array:
    n = len(rows)
    gram = kernel.block(rows, rows)
    require_array(gram, (n, n), f"{name}.block")
    require_semidefinite(gram, f"{name}.block")
    diagonal = kernel.diagonal(rows)
    require_close(diagonal, gram.diagonal(), f"{name}.diagonal", "the block's diagonal is", 1e-9, 1e-10)
    kept = gram.copy()
    gram[:] = np.nan  # callers may overwrite results
    require_close(
        kernel.block(rows, rows), kept, f"{name}.block, once its last result is overwritten,", "not", 0
    )
    return kept


def _check_forms(kernel: Kernel, rows: FeatureMatrix, gram: Array, name: str) -> None:
    some, others = np.arange(len(rows))[::2], np.arange(len(rows))[1::3]
    part = kernel.block(rows.rows(some), rows.rows(others))
    due = gram[np.ix_(some, others)]
    require_close(part, due, f"{name}.block of some rows", "the whole matrix has", 1e-9, 1e-10)
    sparse = FeatureMatrix(sp.csr_array(rows.data))
    require_close(kernel.block(sparse, sparse), gram, f"{name}.block of sparse rows", "dense", 1e-9, 1e-10)
    require_array(kernel.block(rows.rows(some[:0]), rows), (0, len(rows)), f"{name}.block of no rows")
    if np.abs(rows.data).max(initial=0.0) > _LARGEST_SINGLE:
        return
    single = rows.astype(np.float32)
    found = kernel.block(single, single)
    require(
        found.dtype == np.float32,
        f"{name}.block returned {found.dtype} for features in single precision; it must return float32.",
    )
    exact = kernel.block(single.astype(np.float64), single.astype(np.float64))
    require_close(found, exact, f"{name}.block in single precision", "in double precision", 1e-4, 1e-5)


def _check_derivatives(kernel: Kernel, rows: FeatureMatrix, name: str) -> None:
    names = kernel.parameter_names()
    theta = kernel.log_parameters()
    again = kernel.with_log_parameters(theta).log_parameters()
    require_close(again, theta, f"{name}.log_parameters, set and read again,", "not", 1e-12)
    starts = [np.log(scale) + np.linspace(0.0, 0.3, len(names)) for scale in _SCALES]
    for start in [theta, *starts] if names else []:
        at = kernel.with_log_parameters(start)
        found = at.derivatives(rows, rows)
        for which, (parameter, slope) in enumerate(found.items()):
            _check_derivative(at, rows, which, slope, f"{name}'s derivative by {parameter}")


def _check_derivative(kernel: Kernel, rows: FeatureMatrix, which: int, slope: Array, what: str) -> None:
    theta = kernel.log_parameters()
    moves = [theta + shift * np.eye(len(theta))[which] for shift in (-_STEP, 0.0, _STEP)]
    blocks = [kernel.with_log_parameters(moved).block(rows, rows) for moved in moves]
    require_array(slope, blocks[1].shape, what)
    due = (blocks[2] - blocks[0]) / (2 * _STEP)
    rounding = max(float(np.abs(later - now).max(initial=0.0)) for now, later in pairwise(blocks))
    slack = 1e-11 * np.abs(blocks[1]).max(initial=0.0) + 1e-7 * rounding / _STEP
    wrong = np.abs(slope - due) > 1e-4 * np.abs(due) + slack
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ContractError(
            f"{what} at {np.exp(theta[which]):.6g} is {slope[row, column]:.6g} for rows {row} and {column}, "
            f"but finite differences give {due[row, column]:.6g}; return derivatives by the logarithm of the "
            "parameter, which is the derivative by the parameter times the parameter."
        )


@checked
def check_solver(solver: Solver) -> None:  # type: ignore[type-arg]
    """Check that a solver meets the requirements of ``solver=`` in :class:`MaxMarginClassifier`.

    The check solves small duals with independent labels, correlated labels and unobserved entries.  It
    verifies that ``start``, ``round`` and ``certify`` return what they must; that the relative duality gap
    reaches 1e-3; that a run resumed from a stored state ends with the same bits; and that a class
    registered for model files can be saved and loaded.

    Parameters
    ----------
    solver : Solver
        The solver; the check sets its ``tol`` and ``max_iter``.

    Raises
    ------
    ContractError
        If a requirement is not met; the message names it.
    """
    name = type(solver).__name__
    for is_coupled in (False, True):
        problem, run = SmallDual(is_coupled=is_coupled), MeasuredSolver(solver, _TOL, _ROUNDS)
        first: list[State] = []

        def on_check(record: Any, state: State, first: list[State] = first) -> bool:
            if not first:
                first.append(State.from_plain(state.to_plain()))
            return False

        whole = _solved(run, problem, on_check=on_check)
        require(
            whole.converged,
            f"{name} ended after {whole.n_iter} rounds at a relative duality gap of {whole.gap:.2g}; it must "
            f"reach {_TOL:g}.",
        )
        again = _solved(run, problem, first[0])
        there = _solved(run, problem, dual=whole.answer.boxed)
        require(there.converged, f"{name} does not reach the optimum from {name}.start(problem, dual).")
        same = np.array_equal(again.answer.boxed, whole.answer.boxed)
        require(same, f"{name} returns another result when resumed from a stored state.")
        _solved(MeasuredSolver(solver, _TOL, 2), problem)  # ends by certify
    other = through_file(solver)
    require(other is None or type(other) is type(solver), f"{name} has another class when loaded.")


def _solved(
    run: MeasuredSolver,
    problem: SmallDual,
    state: State | None = None,
    on_check: Any = None,
    dual: Array | None = None,
) -> SolverResult:
    def solved() -> SolverResult:
        return run.solve(problem, state if dual is None else run.start(problem, dual), on_check)[0]

    found: SolverResult = called(run.name, solved)
    return found


class SmallDual:
    """A dense dual of 30 rows and 3 labels; one label has one observed row, and one row is unobserved."""

    def __init__(self, *, is_coupled: bool) -> None:
        random = np.random.default_rng(0)
        rows = random.normal(size=(30, 6)) * np.array([3.0, 2, 1, 1, 0.3, 0.1])
        signs = np.where(rows @ random.normal(size=(6, 3)) + random.normal(size=(30, 3)) > 0, 1.0, -1.0)
        signs[4], signs[1:, 2] = 0, 0
        self.targets, self.upper, self.lower = signs, np.maximum(2 * signs, 0), np.minimum(2 * signs, 0)
        self.kernel, self.covariance = rows @ rows.T, np.eye(3) + (0.9 * (1 - np.eye(3)) if is_coupled else 0)

    def scores(self, *variables: Array) -> tuple[Array, ...]:
        return tuple(self.kernel @ some @ self.covariance for some in variables)

    def objectives(self, variables: Array) -> tuple[float, float]:
        (scores,) = self.scores(variables)
        return primal_value(self, variables, scores), dual_value(self, variables, scores)

    def settled(self, free: Array, boxed: Array, tol: float, weights: Array | None = None) -> Settled:
        scores = self.scores(free, boxed)
        return Settled(self.targets, self.lower, self.upper, free, scores[0], boxed, scores[1])
