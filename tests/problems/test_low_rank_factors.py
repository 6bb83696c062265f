"""The pair of factors: transformed without a change of the product; its objective and its bound."""

import numpy as np
import pytest
import scipy.sparse as sp

from drawn import draw_labels
from labelweave.features.factor_maps import DenseMap, KernelMap, SparseMap
from labelweave.features.gram import choose_gram
from labelweave.features.gram.sources import PrecomputedSource, checked_kernel_matrix
from labelweave.features.sparse_products import SparseProducts
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelMatrix
from labelweave.problems.label_entries import DenseEntries
from labelweave.problems.low_rank_factors import FactorStep, LowRankFactors, RowsLoss
from labelweave.solvers import Status
from labelweave.solvers.alternating_minimization import AlternatingMinimization, AlternatingState
from labelweave.solvers.trust_region_newton import TrustRegionNewton
from reference import trace_norm_twin
from reference.entry_twins import EntriesTwin

N, D, L = 25, 8, 6
LOSSES = ["squared_error", "log_loss", "squared_hinge"]
MAPS = ["dense", "sparse", "kernel"]


def _data(missing=0.0):
    X, Y = draw_labels(N, D, L, kept=0.7, above=0.6, missing=missing)
    Y[0] = [1, 0, 1, 0, 1, 0]
    return X, Y


def _pair(
    X,
    Y,
    *,
    kind="dense",
    loss="squared_error",
    penalty="trace_norm",
    lam=0.5,
    rank=3,
    dtype=np.float64,
    root=None,
):
    workers, random = Workers(1), np.random.default_rng(1)
    if kind == "dense":
        made = DenseMap(X.astype(dtype), workers)
    elif kind == "sparse":
        made = SparseMap(SparseProducts(sp.csr_array(X), dtype, workers))
    else:
        source = PrecomputedSource(checked_kernel_matrix(X @ X.T))
        made = KernelMap(choose_gram(source, None, rank, 1e6, workers, dtype=np.dtype(dtype), constant=0.0))
    entries = RowsLoss(LabelMatrix.from_any(Y), np.ones(len(Y)), loss, dtype=dtype).entries(workers)
    tied = () if root is None else (DenseMap(root.astype(dtype), workers),)
    size = Y.shape[1] if root is None else root.shape[1]
    return _Pair(entries, made, penalty, lam, random.normal(size=(size, rank)).astype(dtype), workers, *tied)


def _weights(pair, X, kind):
    return X.T @ pair.feature_factor if kind == "kernel" else pair.feature_factor


class _Pair:
    def __init__(self, *parts):
        self.problem = LowRankFactors(*parts)
        self.now = self.problem.start()

    entries = property(lambda self: self.problem.entries)
    map = property(lambda self: self.problem.map)
    feature_factor = property(lambda self: self.now.features)
    label_factor = property(lambda self: self.now.labels)
    image = property(lambda self: self.now.image)

    def objective(self):
        return self.problem.objective(self.now)

    def lower_bound(self):
        return self.problem.lower_bound(self.now)

    def turn(self, method):
        self.now = getattr(self.problem, method)(self.now)

    def improve(self, half, solver):
        self.now, found = getattr(self.problem, half)(self.now, solver)
        return found


def _run(pair, rounds, tol=0.0, inner=(500, 20), on_check=None):
    start = AlternatingState(pair=pair.now)
    result, state = AlternatingMinimization(tol, rounds, *inner).solve(pair.problem, start, on_check)
    pair.now = state.pair
    return result


def _started(pair, rounds=2):
    _run(pair, rounds)
    return pair


@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("penalty", ["trace_norm", "ridge"])
@pytest.mark.parametrize("method", ["_suited_labels", "_suited_features"])
def test_the_pair_is_turned_without_a_change_of_the_product(kind, penalty, method):
    X, Y = _data(0.3)
    pair = _started(_pair(X, Y, kind=kind, penalty=penalty))
    before, objective = pair.feature_factor @ pair.label_factor.T, pair.objective()
    pair.turn(method)
    after = pair.feature_factor @ pair.label_factor.T
    assert np.allclose(after, before, atol=1e-9 * np.abs(before).max())
    assert np.allclose(pair.image, pair.map.image(pair.feature_factor), atol=1e-9)
    assert pair.objective() <= objective * (1 + 1e-7)
    weights = pair.entries.transposed.column_weights[:, None]
    seen = pair.label_factor if method == "_suited_labels" else np.sqrt(weights) * pair.image
    gram = seen.T @ seen
    assert np.allclose(gram, np.diag(np.diag(gram)), atol=1e-8 * np.abs(gram).max())
    if penalty == "ridge":
        assert pair.objective() == pytest.approx(objective, rel=1e-9)


@pytest.mark.parametrize("kind", MAPS)
def test_the_balanced_pair_has_the_least_penalty(kind):
    X, Y = _data()
    pair = _started(_pair(X, Y, kind=kind))
    pair.turn("_suited_labels")
    weights, labels = _weights(pair, X, kind), pair.label_factor
    sizes = np.linalg.svd(weights @ labels.T, compute_uv=False)
    for factor in (weights, labels):
        assert (factor**2).sum() == pytest.approx(sizes.sum(), rel=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("penalty", ["trace_norm", "ridge"])
def test_features_of_very_different_sizes_lose_nothing(scale, penalty):
    """A large feature needs a small weight; it is a part of the product all the same."""
    X, Y = _data()
    X = X * np.where(np.arange(D) < 2, scale, 1.0)
    pair = _started(_pair(X, Y, penalty=penalty, lam=1e-3, rank=L))
    for method in ("_suited_labels", "_suited_features"):
        before = pair.image @ pair.label_factor.T
        pair.turn(method)
        assert np.allclose(pair.image @ pair.label_factor.T, before, atol=1e-7 * np.abs(before).max())


@pytest.mark.parametrize("columns", ["repeated", "zero"])
@pytest.mark.parametrize("penalty", ["trace_norm", "ridge"])
def test_dependent_columns_do_no_harm(columns, penalty):
    X, Y = _data(0.2)
    pair = _pair(X, Y, penalty=penalty, rank=4)
    start = pair.label_factor.copy()
    start[:, 3] = start[:, 2] if columns == "repeated" else 0.0
    pair = _Pair(pair.entries, pair.map, penalty, 0.5, start, Workers(1))
    trace = _run(pair, 10).trace
    assert np.isfinite(pair.objective())
    assert (np.diff([record.objective for record in trace]) <= 1e-9).all()


@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", ["trace_norm", "ridge"])
@pytest.mark.parametrize("missing", [0.0, 0.3, 0.95])
def test_the_objective_is_the_dense_formula_and_never_rises(kind, loss, penalty, missing):
    X, Y = _data(missing)
    pair = _pair(X, Y, kind=kind, loss=loss, penalty=penalty)
    result = _run(pair, 6)
    signs = LabelMatrix.from_any(Y).to_signs()
    weights = _weights(pair, X, kind)
    losses = EntriesTwin(loss, signs, np.ones(Y.shape)).values(X @ weights, pair.label_factor).sum()
    if penalty == "ridge":
        size = ((weights @ pair.label_factor.T) ** 2).sum()
    else:
        size = (weights**2).sum() + (pair.label_factor**2).sum()
    assert pair.objective() == pytest.approx(losses + 0.25 * size, rel=1e-9)
    assert result.trace[-1].objective == pair.objective()
    objectives = np.array([record.objective for record in result.trace])
    assert (np.diff(objectives) <= 1e-10 * objectives[0]).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_the_bound_is_never_above_and_gets_tight_at_full_rank(kind, loss, missing):
    X, Y = _data(missing)
    pair = _pair(X, Y, kind=kind, loss=loss, rank=L, lam=0.7)
    assert pair.lower_bound() <= pair.objective()
    bounds = []
    for _ in range(200):
        _run(pair, 5)
        bounds.append(pair.lower_bound())
        assert max(bounds) <= pair.objective() * (1 + 1e-9)
        if pair.objective() - bounds[-1] < 1e-3 * pair.objective():
            return
    raise AssertionError(f"the gap is {1 - bounds[-1] / pair.objective()}")


def test_a_bound_where_there_is_nothing_to_learn():
    X, Y = _data()
    for rank, lam in ((L, 1e6), (1, 0.0)):
        pair = _pair(X, Y, lam=lam, rank=rank)
        _run(pair, 3)
        assert -1e-9 <= pair.lower_bound() <= pair.objective() * (1 + 1e-9)
    unknown = np.full_like(Y, np.nan)
    pair = _pair(X, unknown)
    _run(pair, 2)
    assert pair.objective() == pytest.approx(pair.lower_bound(), abs=1e-8)
    assert _pair(X, Y, penalty="ridge").lower_bound() == -np.inf


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("lam", [0.3, 3.0])
def test_full_rank_reaches_the_optimum_of_proximal_gradients(loss, missing, lam):
    X, Y = _data(missing)
    signs = LabelMatrix.from_any(Y).to_signs()
    Z, best = trace_norm_twin.minimize(X, loss, signs, np.ones(Y.shape), lam)
    pair = _pair(X, Y, loss=loss, rank=L, lam=lam)
    _run(pair, 300, 1e-12)
    assert pair.objective() == pytest.approx(best, rel=1e-5)
    assert np.allclose(pair.feature_factor @ pair.label_factor.T, Z, atol=1e-2 * np.abs(Z).max())


@pytest.mark.parametrize("call", range(1, 8))
def test_an_interrupt_anywhere_leaves_factors_that_belong_together(monkeypatch, call):
    X, Y = _data()
    pair = _started(_pair(X, Y))
    objective, calls, multiply = pair.objective(), [], Workers.matmul

    def interrupted(self, left, right):
        calls.append(None)
        if len(calls) == call:
            raise KeyboardInterrupt
        return multiply(self, left, right)

    monkeypatch.setattr(Workers, "matmul", interrupted)
    result = _run(pair, 5, inner=(50, 5))
    monkeypatch.undo()
    assert result.status is Status.INTERRUPTED
    assert np.allclose(pair.image, pair.map.image(pair.feature_factor))
    assert pair.objective() <= objective * (1 + 1e-9)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_labels_half_step_of_full_squared_labels_is_exact_in_one_iteration(is_weighted):
    """H in closed form: (A^T D A + lambda)^-1 A^T D Y, transposed, with A = X W and weights D."""
    X, Y = _data()
    weights = np.arange(N) / N if is_weighted else np.ones(N)
    entries = RowsLoss(LabelMatrix.from_any(Y), weights, "squared_error").entries(Workers(1))
    start = np.random.default_rng(1).normal(size=(L, 3))
    pair = _Pair(entries, DenseMap(X, Workers(1)), "trace_norm", 0.5, start, Workers(1))
    pair.improve("improve_features", TrustRegionNewton(1e-3, 1, 100))
    found = pair.improve("improve_labels", TrustRegionNewton(1e-3, 1, 100))
    A, D = pair.image, weights[:, None]
    exact = np.linalg.solve(A.T @ (D * A) + 0.5 * np.eye(3), A.T @ (D * Y)).T
    assert found.n_iter == 1
    assert np.allclose(pair.label_factor, exact, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rank", [3, L])
def test_a_settled_pair_is_near_its_optimum_and_dead_columns_begin_anew_where_they_help(loss, rank):
    X, Y = _data()
    pair = _pair(X, Y, loss=loss, lam=2.0, rank=rank)
    _run(pair, 300, 1e-9)
    pair.turn("settled")
    objective, fresh = pair.objective(), np.random.default_rng(3).normal(size=(L, rank))
    wide = _pair(X, Y, loss=loss, lam=2.0, rank=rank)
    wide.now = wide.problem.revived(pair.now, lambda: fresh)
    _run(wide, 2, 1e-6)
    assert wide.objective() <= objective * (1 + 1e-6)
    less = _pair(X, Y, loss=loss, lam=0.02, rank=rank)  # columns for which 2.0 left no room
    less.now = less.problem.revived(pair.now, lambda: fresh)
    _run(less, 300, 1e-9)
    alone = _pair(X, Y, loss=loss, lam=0.02, rank=rank)
    _run(alone, 300, 1e-9)
    assert less.objective() <= alone.objective() * (1 + 1e-3)


ROOTS = {
    "square": np.random.default_rng(5).normal(size=(L, L)),
    "features of labels": np.random.default_rng(5).normal(size=(L, 3)),
    "tree": np.hstack([np.eye(L), np.kron(np.eye(2), np.ones((L // 2, 1)))]),
}


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", ["trace_norm", "ridge"])
@pytest.mark.parametrize("missing", [0.0, 0.6])
def test_a_label_covariance_penalizes_the_labels_factor(root, kind, loss, penalty, missing):
    X, Y = _data(missing)
    U = ROOTS[root]
    pair = _pair(X, Y, kind=kind, loss=loss, penalty=penalty, root=U, rank=4)
    result = _run(pair, 8)
    signs = LabelMatrix.from_any(Y).to_signs()
    weights, G = _weights(pair, X, kind), pair.now.label_factor
    np.testing.assert_allclose(pair.label_factor, U @ G, atol=1e-9)
    losses = EntriesTwin(loss, signs, np.ones(Y.shape)).values(X @ weights, U @ G).sum()
    size = ((weights @ G.T) ** 2).sum() if penalty == "ridge" else (weights**2).sum() + (G**2).sum()
    assert pair.objective() == pytest.approx(losses + 0.25 * size, rel=1e-9)
    objectives = np.array([record.objective for record in result.trace])
    assert (np.diff(objectives) <= 1e-10 * objectives[0]).all()
    assert pair.lower_bound() <= pair.objective() * (1 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_full_rank_with_a_covariance_is_the_trace_norm_of_the_whitened_product(loss, missing):
    """Scores X Z' U^T with the trace norm of Z'; a covariance of 1 changes nothing, whatever its root."""
    X, Y = _data(missing)
    U = ROOTS["square"]
    pair = _pair(X, Y, loss=loss, rank=L, lam=1.5, root=U)
    _run(pair, 400, 1e-12)
    assert pair.objective() - pair.lower_bound() <= 2e-3 * pair.objective()
    orthogonal = np.linalg.qr(U)[0]  # a covariance of 1: the problem without one, labels turned by nothing
    turned, plain = (_pair(X, Y, loss=loss, rank=L, lam=1.5, root=root) for root in (orthogonal, None))
    for other in (turned, plain):
        _run(other, 400, 1e-12)
    assert turned.objective() == pytest.approx(plain.objective(), rel=1e-5)


def test_columns_near_zero_are_begun_anew_and_no_others():
    X, Y = _data()
    pair = _started(_pair(X, Y, penalty="ridge", rank=3))
    labels = pair.label_factor / np.linalg.norm(pair.label_factor, axis=0) * [1.0, 0.02, 1e-4]
    given = pair.now._replace(labels=labels)
    found = pair.problem.revived(given, lambda: np.arange(3.0 * L).reshape(L, 3) ** 2)
    np.testing.assert_array_equal(found.labels[:, :2], labels[:, :2])
    np.testing.assert_array_equal(found.features[:, :2], given.features[:, :2])
    assert not found.features[:, 2].any()
    assert not found.image[:, 2].any()
    np.testing.assert_allclose(found.labels[:, 2] @ labels[:, :2], 0.0, atol=1e-9)
    assert np.linalg.norm(found.labels[:, 2]) > 1.0
    lively = given._replace(labels=labels[:, [0, 1, 1]])
    assert pair.problem.revived(lively, lambda: np.ones((L, 3))) is lively


@pytest.mark.parametrize("root", [None, np.diag([2.0, 1.0])])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", ["all", "few"])
def test_a_rank_lost_in_the_first_round_comes_back(root, dtype, rows):
    """Labels with the same positives have one gradient at first; their observed entries differ."""
    X = np.random.default_rng(0).normal(size=(N, D))
    Y = np.where(X[:, :1] + X[:, 1:2] > 1, 1.0, np.where(X[:, 2:4] > 0, 0.0, np.nan))
    if rows == "few":  # of less rank than the factors
        X, Y = np.outer(X[:, 0], np.arange(D)), Y * [1, 0]
    pair = _pair(X, Y, penalty="ridge", rank=2, dtype=dtype, root=root)
    result = _run(pair, 100, 1e-12 if dtype == np.float64 else 1e-7)
    assert result.status is Status.SETTLED
    whitening, seen = np.eye(2) if root is None else root, ~np.isnan(Y)
    A = np.concatenate([np.kron(X[seen[:, k]], whitening[k]) for k in range(2)])
    y = np.concatenate([Y[seen[:, k], k] for k in range(2)])
    best = 0.5 * y @ (y - A @ np.linalg.solve(A.T @ A + 0.5 * np.eye(A.shape[1]), A.T @ y))
    # rounding in single precision leaves 1.3e-5 with OpenBLAS's code for Sandybridge, less with others
    assert pair.objective() == pytest.approx(best, rel=1e-8 if dtype == np.float64 else 2e-5)


@pytest.mark.parametrize("n_labels", [1, 2, 3, L])
def test_the_length_of_the_gradient_for_any_number_of_labels(n_labels):
    X, Y = _data()
    pair = _pair(X, Y[:, :n_labels], rank=1)
    pair = _Pair(pair.entries, pair.map, "trace_norm", 0.5, np.ones((n_labels, 1)), Workers(1))
    # the features' factor is 0, so scores are 0 and gradients minus the targets 1 and 0
    length = np.linalg.norm(X.T @ Y[:, :n_labels], 2)
    assert length <= pair.problem.gradient_length(pair.now) * (1 + 1e-9) <= length * (1 + 2e-4)


@pytest.mark.parametrize(("scale", "dtype"), [(1e-165, np.float64), (1e150, np.float64), (1e-25, np.float32)])
@pytest.mark.parametrize("n_labels", [2, L])
def test_the_length_of_a_tiny_or_huge_gradient(scale, dtype, n_labels):
    X, Y = _data()
    pair = _pair(scale * X, Y[:, :n_labels], dtype=dtype)
    pair = _Pair(pair.entries, pair.map, "trace_norm", 0.5, np.ones((n_labels, 1), dtype), Workers(1))
    length = np.linalg.norm(X.T @ Y[:, :n_labels], 2)
    assert pair.problem.gradient_length(pair.now) / scale == pytest.approx(length, rel=2e-4)


def test_correlated_features_take_one_iteration_in_their_axes():
    """With the squared loss of all labels the estimate of the Hessian is exact there."""
    X, Y = _data()
    X = X @ np.random.default_rng(5).normal(size=(D, D)) * 5.0
    pair = _pair(X, Y, rank=L)
    result = _run(pair, 3, 1e-12)
    assert max(record.feature_iterations for record in result.trace) == 1
    few_rows = DenseMap(X[: D - 1], Workers())
    assert few_rows.axes(L) is None  # they take longer than they save
    assert _pair(X, Y, rank=L, dtype=np.float32).map.axes(L) is None


@pytest.mark.parametrize("loss", LOSSES[1:])
@pytest.mark.parametrize("penalty", ["trace_norm", "ridge"])
def test_steps_in_single_precision_end_where_double_ones_do(loss, penalty, monkeypatch):
    X, Y = _data()
    seen = set()

    def ended(serves):
        pair = _pair(X, Y, loss=loss, penalty=penalty)
        curve = FactorStep.inner

        def spied(step, left, right, image):
            seen.add(left.dtype)
            return curve(step, left, right, image)

        with monkeypatch.context() as patched:
            patched.setattr(FactorStep, "inner", spied)
            if not serves:
                patched.setattr("labelweave.problems.low_rank_factors.is_usual", lambda table: False)
            _run(pair, 200, 1e-13)
        assert pair.feature_factor.dtype == pair.image.dtype == np.float64
        return pair.objective()

    assert ended(serves=False) == pytest.approx(ended(serves=True), rel=1e-9)
    assert seen == {np.dtype(np.float32), np.dtype(np.float64)}
    huge = _pair(1e13 * X, Y, loss=loss, penalty=penalty)
    assert not huge.map.takes_single


def test_gradients_that_are_not_kept_are_the_same():
    X, Y = _data()
    pair = _started(_pair(X, Y, loss="log_loss"))
    entries = pair.entries
    few = DenseEntries(entries.loss, entries.table, Workers(), 0.0)
    kept, anew = (each.gradient_operator(pair.image, pair.label_factor) for each in (entries, few))
    for _ in range(2):
        np.testing.assert_array_equal(anew.matmul(np.eye(L)), kept.matmul(np.eye(L)))
        np.testing.assert_array_equal(anew.adjoint(np.eye(N)), kept.adjoint(np.eye(N)))
    np.testing.assert_allclose(kept.adjoint(np.eye(N)).T, kept.matmul(np.eye(L)))
