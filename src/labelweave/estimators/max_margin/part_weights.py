"""Weights of the parts of label covariances, learned by the max-margin objective itself.

With ``R = sum_m w_m R_m`` the penalty is the least over all ways to share the weights out among the parts,

    1/2 tr(Z^T Z R^-1)  =  min over Z = sum_m Z_m of  sum_m 1/(2 w_m) tr(Z_m^T Z_m R_m^-1),

so the objective is convex in Z_m and w together, and its minimum over Z is convex in w.  By the dual it is

    J(w) = max_V  <T, V> - 1/2 sum_m w_m q_m(V),    q_m(V) = tr(V^T K V R_m),    V in the box,

so the V of any fit is a plane in w that lies below J throughout.  Fits and weights alternate: the planes of
all fits so far have their least maximum over weights that sum to 1 by a linear program, and the next fit is
halfway between there and the best weights met (Ben-Ameur and Neto 2007).  The least maximum is a lower bound
of the objective over fits and weights together, and so certifies both.

With several kernels a part is a pair of a kernel and a covariance, ``sum_gm w_gm K_g (x) R_gm``, and weights
sum to 1 over all of them.  For kernels alone this is multiple kernel learning (Sonnenburg et al., Journal of
Machine Learning Research 7, 2006).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import linprog

from labelweave.estimators.journal import Journal
from labelweave.estimators.kernel_classifier import HyperparameterSearch
from labelweave.estimators.kernel_logistic import KernelLogisticClassifier
from labelweave.estimators.max_margin.fit import MarginFit, MarginTask
from labelweave.estimators.parameters import is_learned
from labelweave.features import FeatureMatrix, Kernel
from labelweave.features.gram import choose_gram
from labelweave.foundation.array_types import Array, Floats, RowsByLabels
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.labels.covariance import WeightedCovariance
from labelweave.solvers import Solver, SolverResult, Status, TraceRecord
from labelweave.solvers.frame import Certificate, Round, State

_COARSEST = 0.1  # gap of the first fit
_SHARE = 0.3  # of the last gap, at which the next fit ends
_FITS, _LEAST_GAIN = 5, 0.9  # a fit at its limit is the last if the gap fell by less over so many
_PRECISE = 1e-10  # the least tolerance of the linear program
_FINEST = 0.5  # of the tolerance: the rest is for the weights


@dataclass(frozen=True, kw_only=True)
class WeightsState(State):
    """What the next fit begins from.

    weights, best (m,): of all parts, and the best ones met, whose objective is ``least``.
    dual: variables (n, L).
    tol: of the next fit.
    planes (k, 1 + m): lower bounds of the objective, their constants and slopes.
    """

    weights: Floats
    best: Floats
    dual: RowsByLabels
    tol: float
    planes: Array
    least: float = np.inf

    _varies: ClassVar[tuple[str, ...]] = ("planes",)


class WeightedMargins:
    """The max-margin problem as a function of the weights.

    task: the rows to fit, with any weights.
    covariances: one per kernel; one that is no :class:`WeightedCovariance` is a part of its own.
    dual, weights: variables (n, L), and weights of the parts of each, to begin with.
    """

    def __init__(
        self, task: MarginTask, covariances: Sequence[LabelCovariance], dual: RowsByLabels | None,
        weights: Sequence[Floats],
    ) -> None:  # fmt: skip
        self.task, self.dual, self.box = task, dual, task.box()
        self.last: MarginFit | None = None
        self.covariances = [
            one if isinstance(one, WeightedCovariance) else WeightedCovariance([one]) for one in covariances
        ]
        own = [one.weights for one in self.covariances]
        is_apt = dual is not None and list(map(len, own)) == list(map(len, weights))
        self.weights = np.concatenate(weights if is_apt else own)
        self._cuts = np.cumsum([len(one.parts) for one in self.covariances])[:-1]
        budget, constant = 1e6 * task.settings.memory_budget, float(task.data.intercept)
        workers, n_labels = Workers(task.settings.n_threads), task.data.labels.n_labels
        self.grams = [choose_gram(task.source, task.explicit, n_labels, budget, workers, constant=constant)]
        for source, _ in task.further:
            self.grams.append(choose_gram(source, None, n_labels, budget, workers, constant=constant))

    def fit(self, state: WeightsState) -> tuple[MarginFit, RowsByLabels]:
        """Fit at given weights; also return its dual variables, within bounds that rounding may exceed."""
        weights = np.split(state.weights, self._cuts)
        found = tuple(one.reweighted(own) for one, own in zip(self.covariances, weights, strict=True))
        settings = replace(self.task.settings, tol=state.tol, on_check=lambda *_: False)
        further = tuple((pair[0], one.fixed) for pair, one in zip(self.task.further, found[1:], strict=True))
        data = replace(self.task.data, covariance=found[0].fixed)
        task = replace(self.task, data=data, settings=settings, journal=Journal(), further=further)
        self.last = replace(task.solve(state.dual), covariances=found)
        dual = self.last.dual()
        assert dual is not None, "fits without dual variables are refused"
        return self.last, np.clip(dual, self.box.lower, self.box.upper)

    def plane(self, dual: RowsByLabels) -> Floats:
        """Return the constant and the slopes of the lower bound of the objective at some variables."""
        found = [float(np.vdot(self.box.targets, dual))]
        for gram, covariance in zip(self.grams, self.covariances, strict=True):
            product = gram.product(dual)
            found += [-float(np.vdot(product, part.matmul(dual))) / 2 for part in covariance.parts]
        return np.array(found)


def lowest_point(planes: Array) -> tuple[Floats, float]:
    """Find the weights, >= 0 and of sum 1, at which the largest of some planes is least, and its value."""
    n_parts = planes.shape[1] - 1
    scale = max(float(np.abs(planes).max()), np.finfo(float).tiny)
    found = linprog(
        np.append(np.zeros(n_parts), 1.0),
        A_ub=np.column_stack([planes[:, 1:] / scale, np.full(len(planes), -1.0)]),
        b_ub=-planes[:, 0] / scale,
        A_eq=[np.append(np.ones(n_parts), 0.0)],
        b_eq=[1.0],
        bounds=[*[(0, None)] * n_parts, (None, None)],
        options=dict.fromkeys(("primal_feasibility_tolerance", "dual_feasibility_tolerance"), _PRECISE),
    )
    weights, shares = np.maximum(found.x[:-1], 0.0), np.maximum(-found.ineqlin.marginals, 0.0)
    # the best mean of the planes bounds the objective, whatever the accuracy of the program
    plane = shares @ planes / shares.sum()
    return weights / weights.sum(), float(plane[0] + plane[1:].min())


class PartWeights(Solver[WeightedMargins, WeightsState]):
    """The alternation between fits and weights; its answer is the last fit."""

    def __init__(self, tol: float, max_iter: int) -> None:
        self.tol, self.max_iter, self._finest = tol, max_iter, _FINEST * tol

    def start(self, problem: WeightedMargins) -> WeightsState:
        dual = np.zeros_like(problem.box.targets) if problem.dual is None else problem.dual
        weights = problem.weights / problem.weights.sum()
        planes = np.empty((0, 1 + len(weights)))
        tol = self._finest if problem.dual is not None else max(_COARSEST, self._finest)
        return WeightsState(weights=weights, best=weights, dual=dual, tol=tol, planes=planes)

    def round(self, problem: WeightedMargins, state: WeightsState) -> Round[WeightsState]:
        fitted, dual = problem.fit(state)
        planes = np.vstack([state.planes, problem.plane(dual)])
        lowest, bound = lowest_point(planes)
        record = TraceRecord.of(fitted.result.trace[-1].primal, bound)
        now = replace(state, rounds=state.rounds + 1)
        of_fit = fitted.result.status
        before = state.trace[-_FITS:] if of_fit is not Status.CONVERGED else ()
        is_stuck = len(before) == _FITS and record.gap > _LEAST_GAIN * before[0].gap
        if of_fit is Status.INTERRUPTED or record.gap <= self.tol or is_stuck:
            return Round(now, record, Status.CONVERGED if record.gap <= self.tol else of_fit, fitted)
        if record.primal < state.least:
            now = replace(now, best=state.weights, least=record.primal)
        weights = (now.best + lowest) / 2
        if state.tol <= self._finest and np.allclose(weights, state.weights, rtol=0, atol=_PRECISE):
            return Round(now, record, Status.STALLED if of_fit is Status.CONVERGED else of_fit, fitted)
        tol = float(np.clip(_SHARE * record.gap, self._finest, state.tol))
        return Round(replace(now, weights=weights, tol=tol, dual=dual, planes=planes), record, None, fitted)

    def certify(self, problem: WeightedMargins, state: WeightsState, status: Status) -> Certificate:
        if status is Status.INTERRUPTED and problem.last is not None:
            return Certificate(None, status, problem.last)
        found = self.round(problem, state)
        return Certificate(found.record, status, found.answer)


def fit_with_weights(
    task: MarginTask, covariances: Sequence[LabelCovariance], dual: RowsByLabels | None,
    weights: Sequence[Floats],
) -> MarginFit:  # fmt: skip
    """Fit rows and weights; the fit has the certificate of both, and the covariances."""
    problem, settings = WeightedMargins(task, covariances, dual, weights), task.settings
    solver = PartWeights(settings.tol, settings.max_iter)

    def made(result: SolverResult, state: WeightsState) -> MarginFit:
        return replace(result.answer, result=replace(result, answer=None))

    return made(*task.journal.run("weights", solver, problem, None, settings.on_check, made))


_TOL = 1e-3


@dataclass(frozen=True)
class LearnedMargins:
    """The learned hyperparameters.

    kernel: with its learned parameters; None for a precomputed matrix.
    covariance: R, of mean variance 1.
    C: half the scale.
    """

    kernel: Kernel | None
    covariance: LabelCovariance
    C: float


def learn_margins(
    model: Any,
    search: HyperparameterSearch,
    features: FeatureMatrix,
    labels: LabelMatrix,
    weights: tuple[Any, Any],
    journal: Journal,
) -> LearnedMargins:
    """Learn from all rows, by the parameters of a max-margin classifier, on a surrogate of the hinge loss.

    The hinge has no curvature, so its cross-validated loss has no useful gradient.  Kernel logistic
    classification has the same prior K ⊗ R and a loss near the hinge, so the kernel's parameters, the scale
    v of the scores and the label covariance are learned for it (Seeger 2008, section 4) and used here:

        sum of losses + 1/2 |u|^2 / v     is, times v, the max-margin objective with 2 C = v.

    weights: of rows, and of entries, None without entry weights.
    """
    kind: Any = KernelLogisticClassifier
    surrogate = kind(
        kernel=model.kernel,
        gamma=model.gamma,
        scale=2.0 * model.C,
        intercept_variance=1.0 if model.fit_intercept else 0.0,
        label_covariance=model.label_covariance,
        label_mean=model.label_mean,
        hyperparameters=search,
        tol=_TOL,
        n_jobs=model.n_jobs,
        random_state=model.random_state,
    )
    surrogate._outer_journal = journal.part("surrogate")
    names = labels.names
    if model._form.has_one_class:
        names = np.array([str(name) for name in model._form.scored])
    # the weights of entries include the flip probabilities
    surrogate.fit(features.data, LabelMatrix(labels.positives, labels.observed, names), *weights)
    (term,) = surrogate.prior_.terms
    variance = float(np.mean(term.covariance.diagonal()))
    covariance: LabelCovariance = LabelCovariance.identity(labels.n_labels)
    given = model.label_covariance
    if term.covariance.ties_labels or not (given is None or is_learned(given)):
        covariance = LabelCovariance.dense(term.covariance.to_dense() / variance)
    return LearnedMargins(term.kernel, covariance, variance / 2)
