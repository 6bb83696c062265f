"""Compare the certificates of random small problems with an independent solver.

    python -m attacks.certificates --problems 500

A fit claims that its objective exceeds the minimum by at most the share ``duality_gap_`` of itself, and that
its dual value is below the minimum.  CLARABEL, through CVXPY, solves the same problem from its textbook form.
The objective at its solution is at least the minimum, so a claim that contradicts it is false, however exact
CLARABEL is.
"""

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
from benchmarks.frame import command, flag, quiet, several
from sklearn.metrics.pairwise import rbf_kernel

import labelweave as lw
from labelweave.labels import LabelMatrix

_ROUNDING = 1e-9  # of the objective


class Fit(NamedTuple):
    """A fit and the reference: the objective at its weights, and at the best known weights."""

    model: Any
    objective: float
    least_known: float


class Draw:
    """A random small problem: features of any scale, labels of any share, weights of any size."""

    def __init__(self, seed: int) -> None:
        self.random = random = np.random.default_rng(seed)
        self.n, self.d, self.n_labels = random.integers((2, 1, 1), (20, 6, 5))
        self.X = random.normal(size=(self.n, self.d)) * self.power(-2, 2)
        scores = self.X @ random.normal(size=(self.d, self.n_labels)) / np.abs(self.X).max()
        noise = random.normal(size=scores.shape) * self.power(-2, 0.5)
        self.Y = (scores + noise > random.normal(size=self.n_labels) * 0.3).astype(float)
        self.tol = self.power(-6, -1)
        self.weights = 10.0 ** random.uniform(-1, 1, self.n)

    def power(self, low: float, high: float) -> float:
        return float(10.0 ** self.random.uniform(low, high))

    def with_gaps(self) -> np.ndarray:
        """Return the labels with a share of them unobserved, keeping at least one per label."""
        missing = self.random.random(self.Y.shape) < self.random.uniform(0, 0.5)
        missing[0] = False
        return np.where(missing, np.nan, self.Y)

    def features(self, kernel: str, gamma: float, intercept: float = 1.0) -> np.ndarray:
        """Compute features whose dot products are the kernel, and a constant feature."""
        explicit = self.X if kernel == "linear" else _root(rbf_kernel(self.X, gamma=gamma))
        return np.hstack([explicit, np.full((self.n, 1), intercept)])


def _root(matrix: np.ndarray) -> np.ndarray:
    sizes, axes = np.linalg.eigh(matrix)
    return np.asarray(axes * np.sqrt(np.maximum(sizes, 0.0)))


def _least(variables: list[cp.Variable], objective: cp.Expression) -> float:
    """Return the lowest objective found, computed at its weights; at most that of zero weights."""
    for variable in variables:
        variable.value = np.zeros(variable.shape)
    at_zero = float(objective.value)
    with quiet(Warning):  # of inexact solutions, which are bounds as well
        try:
            cp.Problem(cp.Minimize(objective)).solve(
                solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
            )
        except cp.error.SolverError:
            return at_zero
    if any(variable.value is None for variable in variables):
        return at_zero
    return min(at_zero, float(objective.value))


def max_margin(draw: Draw) -> Fit:
    """Fit the hinge loss with coupled labels, linear or with an RBF kernel."""
    random, Y, L = draw.random, draw.with_gaps(), draw.n_labels
    kernel, gamma, C = str(random.choice(["linear", "rbf"])), draw.power(-3, 1), draw.power(-4, 3)
    root = np.eye(L) if random.random() < 0.4 else np.eye(L) + random.normal(size=(L, L))
    costs = 10.0 ** random.uniform(-0.5, 0.5, (2, L))
    model = lw.MaxMarginClassifier(
        C, kernel=kernel, gamma=gamma, label_covariance=root @ root.T, tol=draw.tol,
        false_negative_cost=costs[1], false_positive_cost=costs[0],
    ).fit(draw.X, Y, draw.weights)  # fmt: skip
    features = draw.features(kernel, gamma)
    signs = np.nan_to_num(2 * Y - 1)
    margins, bounds = np.where(signs > 0, costs[1], costs[0]), 2 * C * draw.weights[:, None] * np.abs(signs)
    inverse = np.linalg.inv(root @ root.T)
    if kernel == "linear":
        weights = np.vstack([model.coef_.T, model.intercept_])
        square, scores = np.sum(weights * (weights @ inverse)), features @ weights
    else:
        dual = np.zeros(Y.shape)
        dual[model.support_] = model.dual_coef_
        scores = features @ features.T @ dual
        square = np.sum(dual * (scores @ inverse))
    objective = square / 2 + np.sum(bounds * np.maximum(0, margins - signs * scores))
    V = cp.Variable((features.shape[1], L))
    loss = cp.sum(cp.multiply(bounds, cp.pos(margins - cp.multiply(signs, features @ V @ root.T))))
    return Fit(model, float(objective), _least([V], cp.sum_squares(V) / 2 + loss))


def kernel_logistic(draw: Draw) -> Fit:
    """Fit probabilities of labels, or of one class per row, with an RBF kernel."""
    random, gamma, scale = draw.random, draw.power(-3, 1), draw.power(-3, 3)
    variance, has_classes = draw.power(-1, 1), random.random() < 0.5
    n_columns = int(random.integers(3, 5)) if has_classes else draw.n_labels
    if has_classes:
        classes = random.integers(0, n_columns, draw.n)
        classes, Y = np.unique(classes, return_inverse=True)[1], None
        n_columns = int(classes.max()) + 1
        has_classes = n_columns > 2
    if not has_classes:
        Y = draw.with_gaps()
        n_columns = draw.n_labels
    model = lw.KernelLogisticClassifier(
        kernel="rbf", gamma=gamma, scale=scale, intercept_variance=variance, hyperparameters="fixed",
        tol=draw.tol,
    ).fit(draw.X, classes if has_classes else Y, draw.weights)  # fmt: skip
    features = draw.features("rbf", gamma, np.sqrt(variance))
    features[:, :-1] *= np.sqrt(scale)
    V = cp.Variable((features.shape[1], n_columns))
    scores = features @ V
    if has_classes:
        own = cp.sum(cp.multiply(np.eye(n_columns)[classes], scores), axis=1)
        loss = cp.sum(cp.multiply(draw.weights, cp.log_sum_exp(scores, axis=1) - own))
    else:
        signs = np.nan_to_num(2 * Y - 1)
        seen = draw.weights[:, None] * np.abs(signs)
        loss = cp.sum(cp.multiply(seen, cp.logistic(-cp.multiply(signs, scores))))
    return Fit(model, model.trace_[-1].primal, _least([V], cp.sum_squares(V) / 2 + loss))


def low_rank_ridge(draw: Draw) -> Fit:
    """Fit factors of any rank with the ridge penalty, all labels observed; QR and SVD compute the optimum."""
    rank, precision = int(draw.random.integers(1, 6)), str(draw.random.choice(["float64", "float32"]))
    kernel, gamma = str(draw.random.choice(["linear", "rbf"])), draw.power(-3, 1)
    features = draw.features(kernel, gamma)
    penalty = float(np.square(features).sum()) * draw.power(-10, 1)
    model = lw.LowRankClassifier(
        rank, penalty="ridge", alpha=penalty, kernel=kernel, gamma=gamma, dtype=precision
    ).fit(draw.X, draw.Y, draw.weights)  # fmt: skip
    roots = np.sqrt(draw.weights)[:, None]
    wide = np.vstack([roots * features, np.sqrt(penalty) * np.eye(features.shape[1])])
    targets = np.vstack([roots * draw.Y, np.zeros((features.shape[1], draw.n_labels))])
    basis, triangle = np.linalg.qr(wide)
    projected = basis.T @ targets
    turn = np.linalg.svd(projected)[2][:rank]
    best = np.linalg.solve(triangle, projected) @ turn.T @ turn

    def objective(Z: np.ndarray) -> float:
        return 0.5 * float(np.square(wide @ Z - targets).sum())

    product = model.feature_factors_.astype(float) @ model.label_factors_.T.astype(float)
    if kernel == "linear":
        found = np.vstack([product, model.intercept_])
    else:
        found = features[model.support_].T @ product
    return Fit(model, objective(found), objective(best))


def low_rank(draw: Draw) -> Fit:
    Y, loss = draw.with_gaps(), str(draw.random.choice(["squared_error", "log_loss", "squared_hinge"]))
    model = lw.LowRankClassifier(
        int(draw.random.integers(1, 6)), loss=loss, alpha=draw.power(-3, 2), tol=draw.tol,
        max_iter=300,
    ).fit(draw.X, Y, draw.weights)  # fmt: skip
    features = draw.features("linear", 0.0)
    Z = cp.Variable((features.shape[1], draw.n_labels))
    scores, signs = features @ Z, np.nan_to_num(2 * Y - 1)
    entries = {
        "squared_error": cp.square(scores - (signs > 0)) / 2,
        "log_loss": cp.logistic(-cp.multiply(signs, scores)),
        "squared_hinge": cp.square(cp.pos(1 - cp.multiply(signs, scores))) / 2,
    }[loss]
    total = cp.sum(cp.multiply(draw.weights[:, None] * np.abs(signs), entries))
    return Fit(model, model.objective_, _least([Z], total + model.alpha_ * cp.normNuc(Z)))


def label_graph(draw: Draw) -> Fit:
    """Fit cliques of labels with the structured hinge, with all labelings enumerated."""
    random, L, penalty = draw.random, min(draw.n_labels, 4), draw.power(-4, 1)
    Y = draw.Y[:, :L].astype(int)
    edges = [pair for pair in itertools.combinations(range(L), 2) if random.random() < 0.6]
    loss = str(random.choice(["hamming", "subset", "f1"]))
    costs = 10.0 ** random.uniform(-0.5, 0.5, (2, L)) if loss == "hamming" else np.ones((2, L))
    model = lw.LabelGraphClassifier(
        graph=edges or "none", alpha=penalty, tol=draw.tol, loss=loss,
        false_negative_cost=costs[1], false_positive_cost=costs[0],
    ).fit(draw.X, Y, draw.weights)  # fmt: skip
    features, shares = draw.features("linear", 0.0), draw.weights / draw.weights.sum()
    labelings = _labelings(L)
    cost = ((labelings[None] != Y[:, None]) * np.where(Y == 1, costs[1], costs[0])[:, None]).sum(axis=2)
    if loss == "subset":
        cost = np.minimum(1.0, cost)
    elif loss == "f1":
        cost = cost / np.maximum(1, labelings.sum(axis=1) + Y.sum(axis=1)[:, None])
    W = cp.Variable((features.shape[1], 2 * L + 4 * len(edges)))
    loss = shares @ _worst(features @ W, Y, edges, cost)
    return Fit(model, model.objective_, _least([W], penalty / 2 * cp.sum_squares(W) + loss))


def learned_graph(draw: Draw) -> Fit:
    """Learn a graph of cliques; compare with the relaxation over all pairs of labels."""
    random, L, penalty = draw.random, min(draw.n_labels, 3), draw.power(-4, 1)
    Y, solver = draw.Y[:, :L].astype(int), str(random.choice(["frank_wolfe", "proximal"]))
    growth = lw.GraphGrowth(
        max_rounds=int(random.integers(1, 4)), cliques_per_round=int(random.integers(1, 3)),
        graph_tol=float(random.choice([0.0, 0.05])),
    )  # fmt: skip
    model = lw.LabelGraphClassifier(growth, alpha=penalty, tol=draw.tol, solver=solver)
    model.fit(draw.X, Y, draw.weights)
    edges = list(itertools.combinations(range(L), 2))
    features, shares = draw.features("linear", 0.0), draw.weights / draw.weights.sum()
    cost = (_labelings(L)[None] != Y[:, None]).sum(axis=2)
    groups = list(itertools.combinations(range(len(edges)), min(growth.cliques_per_round, len(edges))))
    own, parts = cp.Variable((features.shape[1], 2 * L)), []
    tables, norms = [0.0] * len(edges), [0.0]
    for group in groups if edges else []:
        weights = cp.Variable((features.shape[1], 4 * len(group)))
        parts.append(weights)
        norms.append(cp.norm(weights, "fro"))
        for place, edge in enumerate(group):
            tables[edge] = tables[edge] + weights[:, 4 * place : 4 * place + 4]
    loss = shares @ _worst(features @ cp.hstack([own, *tables]), Y, edges, cost)
    squares = cp.sum_squares(own) / 2 + cp.square(sum(norms)) / 2
    return Fit(model, model.objective_, _least([own, *parts], penalty * squares + loss))


def soft_targets(draw: Draw) -> Fit:
    """Fit probabilities of labels in three models, half of the time with known flip rates."""
    random, P = draw.random, draw.with_gaps()
    P = np.where(random.random(P.shape) < 0.6, np.round(random.random(P.shape), 1) + 0.0 * P, P)
    rates = tuple(random.uniform(0, 0.4, 2)) if random.random() < 0.5 else (0.0, 0.0)
    seen, labels = ~np.isnan(P), LabelMatrix.from_probabilities(P)
    q = np.where(seen, (P - rates[1]) / (1.0 - sum(rates)), 0.0)
    weights = draw.weights[:, None] * seen
    sure, signs = weights * np.abs(2 * q - 1), np.where(q > 0.5, 1.0, -1.0)
    kind = str(random.choice(["max-margin", "kernel-logistic", "squared_error", "log_loss"]))
    features = draw.features("rbf" if kind == "kernel-logistic" else "linear", 0.5)
    V = cp.Variable((features.shape[1], draw.n_labels))
    scores = features @ V
    exact = cp.sum(cp.multiply(weights, cp.logistic(scores) - cp.multiply(q, scores)))
    if kind == "kernel-logistic":
        model = lw.KernelLogisticClassifier(
            kernel="rbf", gamma=0.5, scale=1.0, hyperparameters="fixed", tol=draw.tol, flip_rates=rates
        ).fit(draw.X, labels, draw.weights)  # fmt: skip
        return Fit(model, model.trace_[-1].primal, _least([V], cp.sum_squares(V) / 2 + exact))
    if kind == "max-margin":
        C = draw.power(-3, 2)
        model = lw.MaxMarginClassifier(C, tol=draw.tol, flip_rates=rates).fit(draw.X, labels, draw.weights)
        found = np.vstack([model.coef_.T, model.intercept_])
        objective = np.square(found).sum() / 2
        objective += 2 * C * np.sum(sure * np.maximum(0, 1 - signs * (features @ found)))
        loss = 2 * C * cp.sum(cp.multiply(sure, cp.pos(1 - cp.multiply(signs, scores))))
        return Fit(model, float(objective), _least([V], cp.sum_squares(V) / 2 + loss))
    model = lw.LowRankClassifier(
        int(random.integers(1, 6)), loss=kind, alpha=draw.power(-3, 2), tol=draw.tol, max_iter=300,
        flip_rates=rates,
    ).fit(draw.X, labels, draw.weights)  # fmt: skip
    loss = cp.sum(cp.multiply(weights, cp.square(scores) - cp.multiply(2 * q, scores) + q)) / 2
    if kind == "log_loss":  # beyond 0 and 1 with weights
        inside = (q >= 0) & (q <= 1)
        hard = cp.sum(cp.multiply(sure * ~inside, cp.logistic(-cp.multiply(signs, scores))))
        inner = cp.logistic(scores) - cp.multiply(q * inside, scores)
        loss = hard + cp.sum(cp.multiply(weights * inside, inner))
    return Fit(model, model.objective_, _least([V], loss + model.alpha_ * cp.normNuc(V)))


def _labelings(n_labels: int) -> np.ndarray:
    return np.array(list(itertools.product((0, 1), repeat=n_labels)))


def _worst(scores: cp.Expression, Y: np.ndarray, edges: list[tuple[int, int]], cost: np.ndarray) -> Any:
    """Return the largest cost of any labeling plus its score above that of the true one, for every row."""
    statistics = _states(_labelings(Y.shape[1]), edges)
    own = cp.sum(cp.multiply(scores, _states(Y, edges)), axis=1, keepdims=True)
    return cp.max(cost + scores @ statistics.T - own @ np.ones((1, len(statistics))), axis=1)


def _states(labelings: np.ndarray, edges: list[tuple[int, int]]) -> np.ndarray:
    parts = [(label,) for label in range(labelings.shape[1])] + edges
    states = [labelings[:, list(part)] @ (1 << np.arange(len(part))) for part in parts]
    return np.hstack([np.eye(2 ** len(part))[own] for part, own in zip(parts, states, strict=True)])


ESTIMATORS: dict[str, Callable[[Draw], Fit]] = {
    "max-margin": max_margin,
    "kernel-logistic": kernel_logistic,
    "low-rank": low_rank,
    "low-rank-ridge": low_rank_ridge,
    "label-graph": label_graph,
    "learned-graph": learned_graph,
    "soft-targets": soft_targets,
}


def violations(fit: Fit, tol: float) -> Iterator[str]:
    model, last, gap = fit.model, fit.model.trace_[-1], fit.model.duality_gap_
    slack = _ROUNDING * abs(fit.objective)
    is_learned = isinstance(getattr(model, "graph", None), lw.GraphGrowth)
    if is_learned:
        gap = model.relaxation_gap_
    if not gap >= -_ROUNDING:
        yield f"a gap of {gap}"
    if fit.objective - fit.least_known > gap * abs(fit.objective) + slack:
        above = fit.objective / fit.least_known - 1
        yield f"the objective {fit.objective:.6g} is {above:.3g} above the minimum, the gap says {gap:.3g}"
    if isinstance(model, lw.LowRankClassifier) or is_learned:
        return  # their fits end by other criteria than the gap
    if abs(last.primal - fit.objective) > 1e-6 * abs(fit.objective):
        yield f"the objective is {fit.objective:.9g}, the trace says {last.primal:.9g}"
    if last.dual > fit.least_known + slack:
        yield f"the dual value {last.dual:.9g} is above an objective of {fit.least_known:.9g}"
    if model.converged_ and gap > tol:
        yield f"converged with a gap of {gap:.3g}, and tol={tol:.3g}"


def attack(name: str, seeds: range) -> list[str]:
    found = []
    for seed in seeds:
        draw = Draw(seed)
        with quiet():
            warnings.filterwarnings("ignore", ".*label columns hold 1 and missing cells only")
            fit = ESTIMATORS[name](draw)
        found += [f"{name}, seed {seed}: {what}" for what in violations(fit, draw.tol)]
    return found


@command(
    problems=flag(500, "random problems of each estimator"),
    estimators=several(ESTIMATORS),
    seed=flag(0, "of the first problem"),
)
def main(chosen: Any) -> None:
    failed = False
    for name in chosen.estimators:
        found = attack(name, range(chosen.seed, chosen.seed + chosen.problems))
        print(f"{name}: {chosen.problems} problems, {len(found)} violations", *found, sep="\n  ", flush=True)
        failed |= bool(found)
    raise SystemExit(failed)
