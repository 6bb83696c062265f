"""Known special cases of the low-rank model, by other methods."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from drawn import draw_labels
from labelweave import LowRankClassifier
from reference import trace_norm_twin
from reference.trace_norm_twin import soft_thresholded


def _data(n_labels=5):
    X, Y = draw_labels(40, 7, n_labels)
    Y[0], Y[1] = 0, 1
    return X, Y


def _fit(X, Y, *, tol=1e-13, sample_weight=None, **parameters):
    model = LowRankClassifier(tol=tol, max_iter=20_000, **parameters)
    return model.fit(X, Y, sample_weight=sample_weight)


def _weights(model):
    return model.feature_factors_ @ model.label_factors_.T


def _close(found, true, rtol=1e-4):
    assert np.allclose(found, true, rtol=0, atol=rtol * np.abs(true).max())


@pytest.mark.parametrize("rank", [1, 3, 5])
@pytest.mark.parametrize("is_deficient", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("penalty", ["trace_norm", "ridge"])
def test_without_a_penalty_it_is_the_closed_form_of_claim_1(rank, is_deficient, is_sparse, penalty):
    X, Y = _data()
    if is_deficient:
        X = np.c_[X, X[:, :3] @ np.ones((3, 2)), np.zeros(len(X))] * np.linspace(0.5, 2, 10)
    left, sizes, right = np.linalg.svd(X, full_matrices=False)
    kept = sizes > 1e-10 * sizes[0]
    left, sizes, right = left[:, kept], sizes[kept], right[kept]
    M = left.T @ Y
    U, S, V = np.linalg.svd(M, full_matrices=False)
    exact = right.T @ (((U[:, :rank] * S[:rank]) @ V[:rank]) / sizes[:, None])
    given = sp.csr_array(X) if is_sparse else X
    model = _fit(given, Y, rank=rank, alpha=0.0, penalty=penalty, fit_intercept=False)
    _close(_weights(model), exact)
    assert model.objective_ == pytest.approx(0.5 * ((X @ exact - Y) ** 2).sum(), rel=1e-8)


@pytest.mark.parametrize("alpha", [0.1, 10.0])
@pytest.mark.parametrize("rank", [5, 9])
def test_at_full_rank_the_ridge_penalty_is_ridge_regression(alpha, rank):
    X, Y = _data()
    weights = np.random.default_rng(1).uniform(0.2, 2, len(X))
    model = _fit(
        X, Y, rank=rank, alpha=alpha, penalty="ridge", fit_intercept=False,
        sample_weight=weights,
    )  # fmt: skip
    assert model.rank_ == 5
    peer = Ridge(alpha=alpha, fit_intercept=False).fit(X, Y, sample_weight=weights)
    _close(_weights(model), peer.coef_.T)


@pytest.mark.parametrize("alpha", [0.1, 3.0])
@pytest.mark.parametrize("negative_weight", [1.0, 0.999999])  # the second one uses alternating minimization
def test_at_full_rank_with_a_kernel_it_is_kernel_ridge_regression(alpha, negative_weight):
    X, Y = _data()
    model = _fit(
        X, Y, rank=5, alpha=alpha, penalty="ridge", kernel="rbf", gamma=0.2,
        class_weight={0: negative_weight},
    )  # fmt: skip
    K = rbf_kernel(X, gamma=0.2) + 1
    peer = KernelRidge(alpha=alpha, kernel="precomputed").fit(K, Y)
    _close(model.decision_function(X) + 0.5, K @ peer.dual_coef_, rtol=1e-3)


@pytest.mark.parametrize("alpha", [0.1, 3.0])
def test_at_full_rank_the_logistic_loss_is_one_logistic_regression_a_label(alpha):
    X, Y = _data()
    model = _fit(X, Y, rank=5, loss="log_loss", penalty="ridge", alpha=alpha)
    wide = np.c_[X, np.ones(len(X))]
    for label in range(5):
        peer = LogisticRegression(C=1 / alpha, fit_intercept=False, tol=1e-10, max_iter=10_000)
        exact = peer.fit(wide, Y[:, label]).coef_[0]
        found = np.r_[_weights(model)[:, label], model.intercept_[label]]
        _close(found, exact, rtol=1e-3)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.0])
def test_orthogonal_features_make_the_trace_norm_soft_thresholding(alpha):
    _, Y = _data()
    X = np.linalg.qr(np.random.default_rng(3).normal(size=(40, 7)))[0]
    model = _fit(X, Y, rank=5, alpha=alpha, fit_intercept=False)
    _close(_weights(model), soft_thresholded(X.T @ Y, alpha), rtol=1e-3)
    assert model.duality_gap_ < 1e-4


@pytest.mark.parametrize("penalty", ["trace_norm", "ridge"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["precomputed", "factored"])
def test_kernels_that_are_the_same_give_the_same_model(kind, penalty, missing):
    X, Y = _data()
    Y = np.where(np.random.default_rng(2).random(Y.shape) < missing, np.nan, Y)
    rows, rbf = X, {"kernel": "rbf", "gamma": 0.3}
    if kind == "precomputed":  # of a linear kernel
        rows, one, other = X @ X.T, {"kernel": "precomputed"}, {}
    else:  # by a complete Cholesky factor
        one, other = rbf | {"kernel_rank": len(X)}, rbf
    given = _fit(rows, Y, rank=4, penalty=penalty, **one)
    exact = _fit(X, Y, rank=4, penalty=penalty, **other)
    assert given.objective_ == pytest.approx(exact.objective_, rel=1e-6)
    _close(given.decision_function(rows), exact.decision_function(X), rtol=1e-2)


@pytest.mark.parametrize("penalty", ["ridge", "trace_norm"])
def test_rows_of_the_kernel_matrix_as_features_are_the_kernel_remark_of_the_paper(penalty):
    """Section 3: f(x; Z) = Z^T k(x), the penalty on Z itself; that of the kernel's space is another one."""
    X, Y = _data()
    rows = FunctionTransformer(rbf_kernel, kw_args={"Y": X, "gamma": 0.1})
    options = {"rank": 5, "alpha": 0.5, "penalty": penalty, "fit_intercept": False}
    pipeline = make_pipeline(rows, LowRankClassifier(**options, tol=1e-12, max_iter=20_000)).fit(X, Y)
    K, found = rbf_kernel(X, X, gamma=0.1), _weights(pipeline[-1])

    def objective(Z):
        size = 0.5 * np.square(Z).sum() if penalty == "ridge" else np.linalg.svd(Z, compute_uv=False).sum()
        return 0.5 * np.square(K @ Z - Y).sum() + 0.5 * size

    if penalty == "ridge":
        best = objective(np.linalg.solve(K @ K + 0.5 * np.eye(len(K)), K @ Y))
    else:
        best = trace_norm_twin.minimize(K, "squared_error", 2 * Y.astype(int) - 1, np.ones(Y.shape), 0.5)[1]
    assert pipeline[-1].objective_ == pytest.approx(objective(found), rel=1e-8)
    assert objective(found) == pytest.approx(best, rel=1e-5)
    in_its_space = _fit(X, Y, kernel="rbf", gamma=0.1, **options)
    assert objective(_weights(in_its_space)) > 1.01 * best
