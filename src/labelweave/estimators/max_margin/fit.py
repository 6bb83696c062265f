"""Fits of the max-margin model: the choice of solver and of the form of the problem.

The feature side decides.  Dual coordinate ascent iterates over sparse rows of explicit
features.  A kernel matrix, or dense features of few dimensions, has one
factorization that all labels share, and alternating directions take global steps with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave import problems, solvers
from labelweave.estimators.held_out import tolerance_of_part
from labelweave.estimators.journal import Journal
from labelweave.estimators.max_margin.feature_weights import WIDEST, FeatureWeights, is_mostly_zero, is_thin
from labelweave.estimators.parameters import refuse_together
from labelweave.estimators.scorers import LinearScorer, Scorer, kernel_scorer
from labelweave.estimators.seen_rows import carried_columns
from labelweave.estimators.sparse_scorer import SparseScorer
from labelweave.features import FeatureMatrix, Kernel
from labelweave.features.gram import StoredGram
from labelweave.features.gram.sources import GramSource
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array, PerLabel, RowsByLabels
from labelweave.foundation.arrays import Workers
from labelweave.foundation.arrays.linear_algebra import HOME, placed, to_numpy
from labelweave.foundation.costs import warn_of_memory
from labelweave.labels import LabelCovariance
from labelweave.labels.covariance import WeightedCovariance
from labelweave.labels.targets import TargetForm
from labelweave.solvers.box_dual import MeasuredSolver

FACTORIZATIONS = ("cholesky", "eigenvalues", "incomplete_cholesky")  # of alternating directions
SOLVERS = (
    "auto", "coordinate_ascent", "alternating_directions", "block_ascent", "working_set", *FACTORIZATIONS,
)  # fmt: skip

_SINGLE_PRECISION_GAP = 5e-5  # the gap due to rounding in steps of all variables together
_SHORT_TOL = 1e-3  # 16-bit weights have a gap of about 1e-5 at C = 1; blocks where it is too large keep 64
_LARGE_MODEL = 5e8  # bytes of dense weights, in memory and in a model file
_FEW_ROWS = 1000  # with fewer, double precision costs nothing
_FEW_COUPLED_ROWS = 2500
_LARGEST_SINGLE = 1e15  # squared norms and bounds of variables whose products leave the range of float32
_SINGLE_PRECISION_TOL = 1e-5  # rounding in single precision hides gaps below this
_SINGLE_PRECISION_BOUND = 1e5  # ... and gaps below the largest dual variable divided by this
# ADMM took 16 and 19 rounds on Animals with Attributes (85 labels, a share of 0.36 positive), and 18 to 79 on
# sets of rarer labels; blocks 140, and 58 to 117
_MANY_LABELS, _BALANCED = 40, 0.25
_NARROW = 16  # columns; products with fewer are as slow, limited by memory bandwidth
_BLOCK_SWEEPS = 8000  # operations per entry in the sweeps of a block
_ENTRY_WORK = 400  # operations per entry in the passes of a global step
_SOLVES = 4.0  # cost of a global step, in products
_SPECTRUM = 20.0  # operations for eigenvalues, in rows cubed
_USUAL_ROUNDS = 25  # global steps to a gap of 1e-3
# explicit features, in multiplications of a global step: the cost of a round of coordinate ascent per column,
# a constant number of columns more, and the cost per coupled label; passes of a step, in columns
# too, and its calls; global steps to 1e-3, of which 24 to 670 were counted
_ROUND_WORK, _VISIT, _ACROSS, _PASSES, _CALLS, _USUAL_DENSE_ROUNDS = 2.7, 300, 60, 200, 4e6, 150


@dataclass(frozen=True)
class DualVariables:
    """The dual variables (n, L) of a fit, signed and in float64, for a warm start.

    weights: those learned of the parts of each kernel's covariance.
    """

    variables: Array
    C: float
    form: TargetForm
    weights: tuple[Array, ...] = ()

    def spread(self, kept: Array, n_rows: int) -> DualVariables:
        variables = np.zeros((n_rows, self.variables.shape[1]))
        variables[kept] = self.variables
        return replace(self, variables=variables)

    def rows(self, which: Array) -> DualVariables:
        return replace(self, variables=self.variables[which])

    def carried(self, shape: tuple[int, int], form: TargetForm, C: float) -> Array | None:
        """Return variables for a problem with more rows, more labels or another C; None if labels differ."""
        columns = carried_columns(self.form, form)
        if columns is None or columns.max(initial=-1) >= shape[1] or len(self.variables) > shape[0]:
            return None
        variables, ratio = np.zeros(shape), C / self.C
        if ratio * max(C, self.C) < np.inf:  # no variable is larger; else they cannot be a start
            variables[: len(self.variables), columns] = self.variables * ratio
        return variables


@dataclass(frozen=True)
class MarginSettings:
    """How to solve, by the estimator's parameters.

    solver: "auto", one by name, or a custom one.
    memory_budget: megabytes for what grows with the number of row pairs.
    on_check: receives the trace records, and a function that makes the model; returning true ends the fit.
    is_part: whether the fit to a part of the rows only serves to choose decisions.
    prune: which weights are removed, see :class:`~labelweave.solvers.PrunedAscent`.
    """

    solver: str | solvers.Solver[Any, Any]
    tol: float
    max_iter: int
    dtype: str
    factorization: str
    memory_budget: float
    n_threads: int
    seed: int
    on_check: Callable[..., bool]
    is_part: bool = False
    prune: str | float = "off"


@dataclass(frozen=True)
class MarginFit:
    """A fitted model.

    weights (L, d): the weights of explicit features; None where ``coefficients`` define the scores.
    coefficients: B R_g of the rows, each of shape (n, L), one per kernel.
    dual: returns the dual variables, for a warm start; None where they are not kept.
    kept: sparse weights, and the cost of removing the others, by name.
    covariances: one per kernel, where their weights were learned.
    """

    result: solvers.SolverResult
    intercepts: PerLabel
    dual: Callable[[], RowsByLabels | None]
    weights: Array | None = None
    coefficients: tuple[RowsByLabels, ...] = ()
    kept: tuple[problems.KeptWeights, dict[str, float]] | None = None
    covariances: tuple[WeightedCovariance, ...] = ()

    def scorer(self, features: FeatureMatrix, rows: Array, kernels: Sequence[Kernel | None]) -> Scorer:
        """Create the scorer of new rows; the fit was to these rows of the features."""
        if self.kept is not None:
            found, _ = self.kept
            weights = found.indptr, found.labels, found.values, found.scales
            return SparseScorer.of_labels(self.intercepts, *weights, kernels[0])
        if self.weights is not None:
            return LinearScorer.of_labels(self.intercepts, self.weights, kernels[0])
        used = np.flatnonzero(np.any([part.any(axis=1) for part in self.coefficients], axis=0))
        parts, support = [part[used] for part in self.coefficients], rows[used]
        vectors = None if kernels[0] is None else features.rows(support).data
        return kernel_scorer(kernels, self.intercepts, parts, support, vectors)


@dataclass(frozen=True)
class MarginTask:
    """Rows to fit, with their kernel.

    source: the kernel matrix of the rows.
    explicit: the features that the kernel is the dot product of, if it has them.
    further: more kernel matrices with label covariances of their own, whose products are added.
    stage: the name of the fit in the journal.
    """

    data: problems.MarginData
    source: GramSource
    explicit: FeatureMatrix | None
    settings: MarginSettings
    journal: Journal
    further: tuple[tuple[GramSource, LabelCovariance], ...] = ()
    stage: str = "all rows"

    @property
    def terms(self) -> tuple[tuple[GramSource, LabelCovariance], ...]:
        return ((self.source, self.data.covariance), *self.further)

    def box(self) -> problems.MarginBox:
        data, features = self.data, self.data.features if self.explicit is None else self.explicit
        known = None if data.mean is None else data.mean.products(features.data)
        return problems.MarginBox.make(data.labels, data.upper, data.margins, known)

    def solve(self, dual: RowsByLabels | None = None) -> MarginFit:
        """Fit them, from dual variables near the optimum if there are any.

        Raises ValueError if the solver needs explicit features, or the memory budget is too small.
        """
        solver = self._solver() if HOME.get() is None else "alternating_directions"
        settings, explicit = self.settings, self.explicit
        by_rows = solver == "coordinate_ascent"
        if settings.is_part and (by_rows or explicit is None):
            settings = replace(settings, tol=tolerance_of_part(settings.tol, by_rows=by_rows))
        task, begin = replace(self, settings=replace(settings, solver=solver)), dual
        if task._is_by_blocks(solver):
            assert explicit is not None, "blocks of labels are fitted to explicit features"
            return task._fit_blocks(replace(self.data, features=explicit))
        trace: tuple[solvers.TraceRecord, ...] = ()
        if explicit is not None and solver in ("auto", "coordinate_ascent"):
            fit = task._fit_coordinates(replace(self.data, features=explicit), dual)
            if fit.result.status is not solvers.Status.HANDED_OVER:
                return fit
            dual, trace = fit.dual(), tuple(fit.result.trace)
        refuse_together(task.settings, {"no explicit features": ""})
        with Workers(settings.n_threads).running() as workers:
            by_matrix = _GramTask(task, workers)
            if isinstance(solver, solvers.Solver):
                result = by_matrix.solve_by(solver, dual)
            else:
                result = {
                    "auto": by_matrix.begin_by_blocks
                    if explicit is None
                    else partial(by_matrix.alternate, trace=trace),
                    "alternating_directions": by_matrix.alternate,
                    "block_ascent": by_matrix.ascend_by_blocks,
                    "working_set": by_matrix.ascend_by_pairs,
                }[solver](dual)
        if (by_features := self._by_features()) is not None:
            result = by_features.certified(result, settings.tol)
        if begin is None or result.status is not solvers.Status.INDEFINITE:
            return self.made(result)
        # features near 1e40: rounding in the first step from such variables can exceed all possible progress
        return replace(self, stage=f"{self.stage}, from zero").solve()

    def made(self, result: solvers.SolverResult) -> MarginFit:
        """Create a model from the coefficients of a solver on kernel matrices."""
        settled, by_features = result.answer, self._by_features()
        if by_features is None:
            kept = to_numpy(settled.kept)
            coefficients = tuple(covariance.matmul(kept) for _, covariance in self.terms)
            intercepts = self.data.intercept * np.sum([part.sum(axis=0) for part in coefficients], axis=0)
            return MarginFit(result, intercepts, lambda: to_numpy(settled.boxed), coefficients=coefficients)
        weights, intercepts = by_features.of(settled)
        if self.data.mean is not None:
            intercepts = intercepts + self.data.mean.intercepts
            weights += self.data.mean.weights()
        return MarginFit(result, intercepts, lambda: to_numpy(settled.boxed), weights=weights)

    def _by_features(self) -> FeatureWeights | None:
        if self.explicit is None:
            return None
        data = self.explicit.placed().data
        return FeatureWeights(data, float(self.data.intercept), self.data.covariance)

    @property
    def walks_rows(self) -> bool:
        return self._solver() == "coordinate_ascent"

    def _solver(self) -> str | solvers.Solver[Any, Any]:
        if self.further:
            refuse_together(self.settings, {"a sum of kernels": ""})
        if self.settings.solver != "auto":
            return self.settings.solver
        if self.settings.prune != "off":
            return "coordinate_ascent"
        if self.further:
            return "alternating_directions"
        if self.explicit is None:  # a requested factorization is one of alternating directions
            return "auto"
        if not self._has_few_dimensions(self.explicit):
            return "coordinate_ascent"
        # for dense rows of coupled labels coordinate ascent was slower than global steps in all tests
        walks = self.data.covariance.is_diagonal or is_mostly_zero(self.explicit)
        return "auto" if walks else "alternating_directions"

    def _has_few_dimensions(self, features: FeatureMatrix) -> bool:
        """Whether one factorization suffices: few features or rows, and features dense or labels coupled.

        Coordinate ascent is slow on sparse rows of coupled labels where R is ill-conditioned: 1,000 rows of
        RCV1 end at a gap of 2.5e-2 after 1,000 rounds, and at 1e-3 after seconds by global steps.
        """
        n, d = features.shape
        budget = 1e6 * self.settings.memory_budget
        if is_mostly_zero(features):
            is_coupled = not self.data.covariance.is_diagonal
            return is_coupled and n <= _FEW_COUPLED_ROWS and 36.0 * n * n <= budget
        if n <= d:
            return 16.0 * n * n <= budget
        return d <= WIDEST and problems.feature_bytes(n, d) <= budget

    def _is_by_blocks(self, solver: str | solvers.Solver[Any, Any]) -> bool:
        """Whether to fit labels block by block, with sparse weights; ValueError where this is impossible."""
        explicit, covariance = self.explicit, self.data.covariance
        if self.data.mean is not None:
            return False
        if self.settings.prune == "off":
            if explicit is None or solver != "coordinate_ascent" or not covariance.is_diagonal:
                return False
            return 8.0 * explicit.shape[1] * covariance.n_labels > 1e6 * self.settings.memory_budget
        if explicit is None or covariance.variances() is None:
            why = "with label_covariance no weight is 0"
            why = why if explicit is not None else "this kernel has no weights of features"
            raise ParameterError(
                f"`prune={self.settings.prune!r}` needs independent labels and `kernel='linear'`, but {why}; "
                "use these, or `prune='off'`."
            )
        refuse_together(self.settings, {"pruning": ""})
        return True

    def _precision(self, tol: float) -> Any:
        return choose_precision(self.settings.dtype, tol, self.data.upper.max(initial=0.0))

    def _fit_blocks(self, data: problems.MarginData) -> MarginFit:
        settings = self.settings
        solver = solvers.PrunedAscent(settings.tol, settings.max_iter, settings.seed, settings.prune)
        dtype = self._precision(solver.block_tol)
        with Workers(settings.n_threads).running() as workers:
            blocks = problems.MarginBlocks(data, dtype, workers, is_short=settings.tol >= _SHORT_TOL)

            def made(result: solvers.SolverResult, state: Any) -> MarginFit:
                kept: problems.KeptWeights = result.answer
                cost = blocks.cost(state.blocks)
                return MarginFit(result, kept.intercepts, lambda: None, kept=(kept, cost))

            return made(*self.journal.run(self.stage, solver, blocks, None, settings.on_check, made))

    def _fit_coordinates(self, data: problems.MarginData, start: RowsByLabels | None) -> MarginFit:
        settings, dtype = self.settings, self._precision(self.settings.tol)
        d, n_labels = data.features.shape[1], data.labels.n_labels
        if not settings.is_part and data.mean is None and data.covariance.variances() is not None:
            certified = "use prune='certified', which keeps only weights that tol needs (for texts often 5 "
            "%)."
            warn_of_memory(
                f"A model of {d} x {n_labels} weights", 8.0 * d * n_labels, certified, _LARGE_MODEL
            )
        rival = _rounds_of_global_steps(data, settings.tol) if settings.solver == "auto" else np.inf
        solver = solvers.DualCoordinateAscent(settings.tol, settings.max_iter, settings.seed, rival=rival)
        with Workers(settings.n_threads).running() as workers:
            dual = problems.make_margin_dual(data, dtype, workers)
            begin = None if start is None else solver.start(dual, dual.start(start))

            def made(result: solvers.SolverResult, state: Any) -> MarginFit:
                weights, intercepts = result.answer or (None, np.empty(0))  # none where a run hands over
                if data.mean is not None and weights is not None:
                    intercepts = intercepts + data.mean.intercepts
                return MarginFit(result, intercepts, lambda: dual.dual(state.point), weights=weights)

            return made(*self.journal.run(self.stage, solver, dual, begin, settings.on_check, made))


class _GramTask:
    """One fit on a kernel matrix, by any of the solvers that accept one."""

    def __init__(self, task: MarginTask, workers: Workers) -> None:
        self.task, self.settings, self.workers = task, task.settings, workers
        data = task.data
        self.features = data.features if task.explicit is None else task.explicit
        self.is_thin = task.explicit is not None and is_thin(task.explicit, 1e6 * self.settings.memory_budget)
        self.parts = (task.source, float(data.intercept), data.covariance)
        self.box, self.journal, self.stage = task.box(), task.journal, task.stage
        self.told = self.settings.on_check, lambda result, _: task.made(result)

    def resources(self, dtype: npt.DTypeLike) -> problems.Resources:
        settings = self.settings
        return problems.Resources(
            self.workers, dtype, 1e6 * settings.memory_budget, settings.factorization, settings.seed
        )

    def begin_by_blocks(self, dual: RowsByLabels | None) -> solvers.SolverResult:
        """Iterate over blocks of rows while this should be faster than global steps, then take those."""
        settings, dtype = self.settings, self.first_precision()
        resources = self.resources(dtype)
        n, n_labels = self.task.data.labels.shape
        if not problems.holds_matrix(n, dtype, resources.budget) or _few_global_steps_do(self.task.data):
            return self.alternate(dual)
        source, constant, covariance = self.parts
        gram = StoredGram.from_source(source, constant, dtype, self.workers)
        rival = _rounds_of_the_rival(n, n_labels, settings.tol, is_coupled=not covariance.is_diagonal)
        solver = solvers.BlockAscent(settings.tol, settings.max_iter, settings.seed, rival=rival)
        problem = problems.BlockMargins(self.box, *self.parts, resources, gram)
        begin, stage = _begin(solver, problem, dual), f"{self.stage}, blocks first"
        result, state = self.journal.run(stage, solver, problem, begin, *self.told)
        if result.status is not solvers.Status.HANDED_OVER:
            return result
        del problem
        return self.alternate(state.beta, tuple(result.trace), gram)

    def alternate(
        self,
        dual: RowsByLabels | None,
        trace: tuple[solvers.TraceRecord, ...] = (),
        gram: StoredGram | None = None,
    ) -> solvers.SolverResult:
        """Take global steps, in double precision where single precision proves too coarse.

        trace: of the solver that computed the starting dual variables.
        """
        settings, dtype = self.settings, self.first_precision()
        coarse = dtype != np.float64 and settings.dtype == "auto"
        solver = solvers.AlternatingDirections(settings.tol, settings.max_iter, hands_over=coarse)
        first = self.split(dtype, gram)
        begin = None if dual is None else solver.start_at(first, placed(dual), trace)
        stage = f"{self.stage}, {dtype}"
        result, state = self.journal.run(stage, solver, first, begin, *self.told)
        if not (coarse and result.status in (solvers.Status.STALLED, solvers.Status.INDEFINITE)):
            return result
        del first, gram
        second = self.split(np.float64)
        solver = solvers.AlternatingDirections(settings.tol, settings.max_iter)
        goes_on = replace(state, trace=tuple(result.trace))
        begin, stage = solver.start(second, goes_on), f"{self.stage}, float64"
        return self.journal.run(stage, solver, second, begin, *self.told)[0]

    def split(self, dtype: npt.DTypeLike, gram: StoredGram | None = None) -> Any:
        task, resources = self.task, self.resources(dtype)
        if self.is_thin:
            assert task.explicit is not None, "only explicit features are thin"
            return problems.feature_margins(self.box, task.explicit, *self.parts[1:], resources)
        if task.further:
            return problems.sum_margins(self.box, task.terms, self.parts[1], resources)
        return problems.kernel_margins(self.box, *self.parts, resources, gram)

    def ascend_by_blocks(self, dual: RowsByLabels | None) -> solvers.SolverResult:
        settings = self.settings
        problem = problems.BlockMargins(self.box, *self.parts, self.resources(self.first_precision()))
        solver = solvers.BlockAscent(settings.tol, settings.max_iter, settings.seed)
        begin = _begin(solver, problem, dual)
        return self.journal.run(f"{self.stage}, blocks", solver, problem, begin, *self.told)[0]

    def ascend_by_pairs(self, dual: RowsByLabels | None) -> solvers.SolverResult:
        """Iterate over pairs of variables, the paper's Algorithm 1."""
        problem = problems.WorkingSetMargins(self.box, *self.parts, self.resources(np.float64))
        solver = solvers.WorkingSetAscent(self.settings.tol, self.settings.max_iter)
        begin = _begin(solver, problem, dual)
        return self.journal.run(f"{self.stage}, pairs", solver, problem, begin, *self.told)[0]

    def solve_by(self, own: solvers.Solver[Any, Any], dual: RowsByLabels | None) -> solvers.SolverResult:
        """Find the dual variables with a custom solver, by products and in double precision."""
        problem = self.split(np.float64)
        solver = MeasuredSolver(own, self.settings.tol, self.settings.max_iter)
        start = None if dual is None else solver.start(problem, dual)
        return self.journal.run(f"{self.stage}, own solver", solver, problem, start, *self.told)[0]

    def first_precision(self) -> Any:
        settings, upper = self.settings, self.task.data.upper
        small = self.features.squared_norms().max(initial=0.0) < _LARGEST_SINGLE
        if settings.dtype != "auto" and small and upper.max(initial=0.0) < _LARGEST_SINGLE:
            return np.dtype(settings.dtype)
        few = len(self.features) <= _FEW_ROWS
        # the gap due to rounding was observed to grow with the bound of the variables
        reachable = _SINGLE_PRECISION_GAP * max(1.0, upper.max(initial=0.0) / 2)
        single = settings.tol >= reachable and small and not few
        return np.dtype(np.float32 if single else np.float64)


def _begin(solver: Any, problem: Any, dual: RowsByLabels | None) -> Any:
    return None if dual is None else solver.start(problem, problem.start(dual))


def _few_global_steps_do(data: problems.MarginData) -> bool:
    """Whether ADMM is predicted to end soon: many labels, neither rare nor frequent, uncoupled."""
    labels = data.labels
    share = labels.positive_counts().sum() / max(1, labels.observed_counts().sum())
    is_many = labels.n_labels >= _MANY_LABELS and data.covariance.is_diagonal
    return bool(is_many and min(share, 1 - share) >= _BALANCED)


def choose_precision(asked: str, tol: float, largest_upper: float) -> Any:
    """Choose the arithmetic of coordinate ascent by the gap and the largest bound of a variable."""
    largest = max(largest_upper / _SINGLE_PRECISION_BOUND, _SINGLE_PRECISION_TOL)
    auto = np.float32 if tol >= largest else np.float64
    return auto if asked == "auto" else np.dtype(asked)


def _rounds_of_the_rival(n: int, n_labels: int, tol: float, *, is_coupled: bool) -> float:
    """Estimate the time of alternating directions in rounds of block ascent, both by their operations.

    A round of blocks updates the scores of all rows for a quarter of them, and sweeps over the blocks.
    """
    columns = max(n_labels, _NARROW)
    block_round = n / 4 * columns * (2.0 * n + _BLOCK_SWEEPS)
    factor = (_SPECTRUM if is_coupled else 1 / 3) * float(n) ** 3
    rounds = _USUAL_ROUNDS * max(1.0, -np.log10(float(tol)) / 3)
    return float((factor + rounds * n * columns * (_SOLVES * n + _ENTRY_WORK)) / block_round)


def _rounds_of_global_steps(data: problems.MarginData, tol: float) -> float:
    """Estimate the time of alternating directions on explicit features in rounds of coordinate ascent."""
    features, n_labels = data.features, data.labels.n_labels
    (n, d), rank = features.shape, min(features.shape)
    padded = -(-n_labels // _NARROW) * _NARROW
    width = features.data.nnz / max(n, 1) if features.is_sparse else d
    across = 0 if data.covariance.is_diagonal else _ACROSS * padded
    a_round = _ROUND_WORK * n * padded * (width + _VISIT + across) + _CALLS * padded / _NARROW
    rounds = _USUAL_DENSE_ROUNDS * max(1.0, -np.log10(float(tol)) / 3)
    factor = float(n) * d * rank + _SPECTRUM * float(rank) ** 3
    return float((factor + rounds * (_SOLVES * n * n_labels * (rank + _PASSES) + _CALLS)) / a_round)
