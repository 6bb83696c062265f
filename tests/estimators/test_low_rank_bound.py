"""The constrained form of low-rank learning: a trace norm up to a bound, against projected gradients."""

import numpy as np
import pytest
import scipy.sparse as sp

from drawn import draw_labels
from labelweave import LowRankClassifier
from reference import trace_norm_twin

LOSSES = ["squared_error", "log_loss", "squared_hinge"]


def _problem(missing=0.3, seed=0):
    return draw_labels(40, 6, 5, seed=seed, above=0, missing=missing)


def _fitted(X, Y, bound, **options):
    options = {"tol": 1e-5, "max_iter": 2000, "penalty": "trace_bound"} | options
    return LowRankClassifier(5, alpha=bound, **options).fit(X, Y)


def _weights(model):
    return np.r_[model.coef_.T, model.intercept_[None]]


def _trace_norm(Z):
    return np.linalg.svd(Z, compute_uv=False).sum()


def _signs(Y):
    return np.nan_to_num(2 * Y - 1).astype(int)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bound", [0.05, 0.7, 3.0])
def test_it_is_the_best_product_within_the_bound(missing, loss, bound):
    X, Y = _problem(missing)
    wide = np.c_[X, np.ones(len(X))]
    Z, best = trace_norm_twin.minimize_within(wide, loss, _signs(Y), np.ones(Y.shape), bound, 2000)
    model = _fitted(X, Y, bound, loss=loss)
    assert model.objective_ == pytest.approx(best, rel=1e-5)
    assert model.objective_ >= best * (1 - 1e-9)
    assert _trace_norm(_weights(model)) <= bound * (1 + 1e-6)
    assert model.duality_gap_ < 1e-4
    assert model.objective_ * (1 - model.duality_gap_) <= best
    np.testing.assert_allclose(_weights(model), Z, atol=0.03 * np.abs(Z).max())


def test_the_multiplier_makes_the_penalised_form_the_same():
    X, Y = _problem()
    model = _fitted(X, Y, 1.5, tol=1e-6)
    same = LowRankClassifier(5, alpha=model.alpha_, tol=1e-9, max_iter=5000).fit(X, Y)
    assert _trace_norm(_weights(same)) == pytest.approx(1.5, rel=1e-3)
    np.testing.assert_allclose(_weights(model), _weights(same), atol=0.01)
    assert model.hyperparameters_["alpha"] == model.alpha_


def test_a_bound_that_does_not_bind_gives_the_least_squares():
    X, Y = _problem(0.0)
    wide = np.c_[X, np.ones(len(X))]
    free = np.linalg.lstsq(wide, Y, rcond=None)[0]
    model = _fitted(X, Y, 10 * _trace_norm(free))
    np.testing.assert_allclose(_weights(model), free, atol=1e-3)
    assert model.converged_
    assert model.alpha_ < 1e-2


@pytest.mark.parametrize("form", ["kernel", "sparse", "covariance"])
def test_kernels_sparse_rows_and_covariances_have_bounds_too(form):
    X, Y = _problem()
    if form == "kernel":
        options, given = {"kernel": "precomputed", "fit_intercept": False}, X @ X.T
        wide, root = X, np.eye(5)
    else:
        root = np.linalg.cholesky(np.eye(5) + 0.5) if form == "covariance" else np.eye(5)
        options = {"label_covariance": root @ root.T} if form == "covariance" else {}
        given, wide = sp.csr_array(X) if form == "sparse" else X, np.c_[X, np.ones(len(X))]
    model = _fitted(given, Y, 1.0, **options)
    scores = model.decision_function(given) + model.thresholds_[0]
    Z = np.linalg.lstsq(wide, scores, rcond=None)[0] @ np.linalg.inv(root).T
    assert _trace_norm(Z) == pytest.approx(1.0, rel=1e-3)
    assert model.duality_gap_ < 1e-3


def test_the_default_tolerance_certifies():
    X, Y = _problem(0.0)
    models = [_fitted(X, Y, bound, tol=1e-4, loss=loss) for bound in (0.1, 0.5, 2.0) for loss in LOSSES]
    assert all(model.converged_ and model.status_ == "converged" for model in models)
