"""Reduced-rank ridge regression: its optimality, all its forms, and when it is chosen."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.features import FeatureMatrix
from labelweave.features.gram.sources import PrecomputedSource
from labelweave.foundation.arrays import Workers
from labelweave.problems.reduced_rank_ridge import ReducedRankRidge, RidgeSizes

N, L, CONSTANT, LAMBDA = 30, 6, 0.7, 0.4


def _drawn(d, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(N, d)) * (random.random((N, d)) < 0.5)
    Y = sp.csr_array((random.random((N, L)) < 0.4).astype(np.int8))
    return X, Y, random.uniform(0.0, 2.0, N) * (random.random(N) < 0.8)


def _objective(X, Y, weights, Z):
    wide = np.hstack([X, np.full((N, 1), CONSTANT)])
    losses = (wide @ Z - Y.toarray()) ** 2
    return 0.5 * np.sum(weights[:, None] * losses) + 0.5 * LAMBDA * np.sum(Z**2)


def _fit(kind, X, Y, weights, rank, is_kept=False):
    """Return Z with the constant feature last, and the objective."""
    explicit, source = None, None
    if kind == "kernel":
        source = PrecomputedSource(X @ X.T)
    else:
        explicit = FeatureMatrix(sp.csr_array(X) if kind == "sparse" else X)
    made = ReducedRankRidge.of(explicit, source, CONSTANT, Y, weights, Workers(1), is_kept=is_kept)
    found = made.fit(LAMBDA, rank)
    np.testing.assert_allclose(found.labels.T @ found.labels, np.eye(found.labels.shape[1]), atol=1e-10)
    W = found.features
    if kind == "kernel":
        W = np.hstack([X, np.full((N, 1), CONSTANT)]).T @ W
    return W @ found.labels.T, found.objective


@pytest.mark.parametrize("rank", [1, 3, L])
@pytest.mark.parametrize("d", [8, 80])
@pytest.mark.parametrize("kind", ["dense", "sparse", "kernel"])
def test_objective_is_that_of_the_factors_and_least(kind, d, rank):
    X, Y, weights = _drawn(d)
    Z, objective = _fit(kind, X, Y, weights, rank)
    assert objective == pytest.approx(_objective(X, Y, weights, Z), rel=1e-9)
    random = np.random.default_rng(1)
    for scale in (1e-3, 1e-2, 0.1):  # other products of the same rank
        U, S, V = np.linalg.svd(Z, full_matrices=False)
        left = U[:, :rank] * S[:rank] + scale * random.normal(size=(len(Z), rank))
        right = V[:rank] + scale * random.normal(size=(rank, L))
        assert _objective(X, Y, weights, left @ right) > objective


@pytest.mark.parametrize("kind", ["dense", "kernel"])
@pytest.mark.parametrize("d", [8, 80])
@pytest.mark.parametrize("share", [1e-9, 1e-6, 1.0])
def test_the_objective_is_known_up_to_the_rounding_that_is_stated(kind, d, share):
    X, Y, _ = _drawn(d)
    penalty = share * float((X**2).sum())
    explicit, source = (FeatureMatrix(X), None) if kind == "dense" else (None, PrecomputedSource(X @ X.T))
    made = ReducedRankRidge.of(explicit, source, 0.0, Y, np.ones(N), Workers(1), is_kept=False)
    found = made.fit(penalty, 2)
    W = X.T @ found.features if kind == "kernel" else found.features
    wide = np.vstack([X, np.sqrt(penalty) * np.eye(d)])
    targets = np.vstack([Y.toarray(), np.zeros((d, L))])
    objective = 0.5 * np.square(wide @ W @ found.labels.T - targets).sum()
    projected = np.linalg.qr(wide)[0].T @ targets
    least = 0.5 * (np.square(targets - np.linalg.qr(wide)[0] @ projected).sum())
    least += 0.5 * np.square(np.linalg.svd(projected)[1][2:]).sum()
    assert abs(objective - least) <= 2 * found.rounding
    assert found.rounding <= 1e-3 * (1.0 + found.objective)


@pytest.mark.parametrize("d", [8, 80])
def test_all_forms_give_the_same_product(d):
    X, Y, weights = _drawn(d)
    expected, _ = _fit("dense", X, Y, weights, 3)
    for kind in ("sparse", "kernel"):
        np.testing.assert_allclose(_fit(kind, X, Y, weights, 3)[0], expected, atol=1e-9)


def test_full_rank_is_independent_ridge_regressions():
    X, Y, weights = _drawn(8)
    wide = np.hstack([X, np.full((N, 1), CONSTANT)])
    normal = wide.T @ (weights[:, None] * wide) + LAMBDA * np.eye(9)
    expected = np.linalg.solve(normal, wide.T @ (weights[:, None] * Y.toarray()))
    np.testing.assert_allclose(_fit("dense", X, Y, weights, L)[0], expected, atol=1e-9)


@pytest.mark.parametrize("kind", ["dense", "kernel"])
def test_a_kept_problem_serves_many_penalties_and_ranks(kind):
    X, Y, weights = _drawn(8)
    explicit = FeatureMatrix(X) if kind == "dense" else None
    source = PrecomputedSource(X @ X.T) if kind == "kernel" else None
    parts = explicit, source, CONSTANT, Y, weights, Workers(1)
    kept = ReducedRankRidge.of(*parts, is_kept=True)
    for penalty in (3.0, 0.1, 3.0):
        for rank in (4, 2):
            once = ReducedRankRidge.of(*parts, is_kept=False).fit(penalty, rank)
            again = kept.fit(penalty, rank)
            assert np.array_equal(once.features @ once.labels.T, again.features @ again.labels.T)


def test_any_number_of_threads_gives_the_same_bits():
    X, Y, weights = _drawn(80)
    found = []
    for threads in (1, 3):
        with Workers(threads).running() as workers:
            made = ReducedRankRidge.of(FeatureMatrix(X), None, CONSTANT, Y, weights, workers, is_kept=False)
            found.append(made.fit(LAMBDA, 3))
    assert np.array_equal(found[0].features, found[1].features)
    assert np.array_equal(found[0].labels, found[1].labels)


def test_a_kernel_that_is_not_positive_semidefinite_is_refused():
    _, Y, _ = _drawn(8)
    made = ReducedRankRidge.of(
        None, PrecomputedSource(-np.eye(N)), 0.0, Y, np.ones(N), Workers(1), is_kept=False
    )
    with pytest.raises(ValueError, match="not positive semi-definite"):
        made.fit(LAMBDA, 2)


def test_it_is_chosen_where_it_is_cheaper_fits_and_is_safe():
    sizes = RidgeSizes(rows=5000, labels=160, features=1800, row_counts=np.full(5000, 70), trace=1e4)
    assert sizes.suit(1.0, 160, 8e9, is_kept=False)
    assert not sizes.suit(1.0, 160, 1e7, is_kept=False)
    assert not sizes.suit(1e-9, 160, 8e9, is_kept=False)
    assert not sizes.suit(0.0, 160, 8e9, is_kept=False)
    wide = RidgeSizes(rows=30_000, labels=600, features=100_000, row_counts=np.full(30_000, 50), trace=1e4)
    assert not wide.suit(1.0, 50, 1e11, is_kept=False)
    kernel = RidgeSizes(rows=12_000, labels=1000, features=None, row_counts=None, trace=1e4)
    assert kernel.suit(1.0, 1000, 8e9, is_kept=False)
    assert kernel.suit(1.0, 200, 8e9, is_kept=False)


def test_coefficients_of_rows_in_single_precision_stay_within_what_is_stated():
    """Rounding moves scores by the kernel times that of the coefficients: much where the kernel is large."""
    random = np.random.default_rng(3)
    X = 300 * random.normal(size=(N, 3))
    Y = sp.csr_array((random.random((N, L)) < 0.4).astype(np.int8))
    K, penalty = X @ X.T, 1e-4
    made = ReducedRankRidge.of(None, PrecomputedSource(K), 0.0, Y, np.ones(N), Workers(1), is_kept=False)
    found = made.fit(penalty, L, np.float32)

    def objective(coefficients):
        product = coefficients @ found.labels.T
        return 0.5 * np.square(K @ product - Y.toarray()).sum() + 0.5 * penalty * np.sum(
            product * (K @ product)
        )

    eps = np.finfo(np.float32).eps
    worst = 0.0
    for _ in range(20):
        moved = found.features * (1 + eps * random.choice([-0.5, 0.5], found.features.shape))
        worst = max(worst, objective(moved) - objective(found.features))
    length = float(np.square(found.features).sum())
    assert eps**2 * np.trace(K) * length < worst <= found.rounding  # a trace alone would be too small


def test_what_is_stated_grows_as_the_penalty_falls():
    X, Y, weights = _drawn(8)
    made = ReducedRankRidge.of(FeatureMatrix(X), None, CONSTANT, Y, weights, Workers(1), is_kept=True)
    factor = np.ones((9, 2))
    bounds = [made._rounding(penalty, factor, factor, 0.0) for penalty in (1.0, 1e-16, 1e-18, 1e-20)]
    assert (np.diff(bounds) > 0).all()
    assert bounds[3] > 10 * bounds[0]
