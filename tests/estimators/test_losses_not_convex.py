"""Losses of a user that are not convex, in low-rank models: fits without a certificate."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from drawn import draw_labels
from labelweave import KernelLogisticClassifier, LowRankClassifier
from labelweave.testing import EntryLoss, check_loss

ALPHA, RANK = 0.3, 3
X, FULL = draw_labels(60, d=6, n_labels=7, rank=2, noise=0.3, above=1.0)
Y, WEIGHTS = FULL.astype(float), np.random.default_rng(3).choice([0.0, 0.5, 1.0, 3.0], FULL.shape)
Y[np.random.default_rng(4).random(Y.shape) < 0.3] = np.nan


class SigmoidLoss(EntryLoss):
    """The probability of the other sign."""

    is_convex = False

    def value(self, signs, scores):
        return expit(-signs * scores)

    def gradient(self, signs, scores):
        return -signs * expit(scores) * expit(-scores)

    def curvature(self, signs, scores):
        wrong = expit(-signs * scores)
        return np.maximum(wrong * (1 - wrong) * (1 - 2 * wrong), 0)

    def conjugate(self, signs, gradients):
        return np.full_like(gradients, np.nan)


def minimized(start, labels, weights):
    """Return value and slopes at the start, and the least value from there."""
    signs, weights = np.where(labels > 0, 1, -1), np.where(np.isnan(labels), 0.0, weights)
    cut, loss = X.shape[1] * RANK, SigmoidLoss()

    def objective(free):
        W, H = free[:cut].reshape(-1, RANK), free[cut:].reshape(-1, RANK)
        scores = X @ W @ H.T
        slopes = weights * loss.gradient(signs, scores)
        by = np.concatenate([X.T @ slopes @ H, slopes.T @ X @ W]).ravel()
        value = (weights * loss.value(signs, scores)).sum() + ALPHA / 2 * free @ free
        return value, by + ALPHA * free

    options = {"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-14, "gtol": 1e-9}
    return *objective(start), minimize(objective, start, jac=True, method="L-BFGS-B", options=options).fun


def test_the_loss_fulfills_its_contract():
    check_loss(SigmoidLoss())


@pytest.mark.parametrize(("labels", "weights"), [(FULL, None), (Y, None), (Y, WEIGHTS)])
def test_another_minimizer_finds_nothing_lower(labels, weights):
    model = LowRankClassifier(RANK, SigmoidLoss(), ALPHA, tol=1e-12, max_iter=500, fit_intercept=False)
    model.fit(X, labels, entry_weight=weights)
    assert (model.status_, model.converged_, np.isnan(model.duality_gap_)) == ("settled", False, True)
    factors = np.vstack([model.feature_factors_, model.label_factors_]).ravel()
    value, slopes, least = minimized(factors, labels, 1.0 if weights is None else weights)
    assert value == pytest.approx(model.objective_, rel=1e-10)
    assert np.abs(slopes).max() < 1e-3
    assert least > (1 - 1e-7) * value


def test_what_needs_convex_losses_is_refused():
    with pytest.raises(ValueError, match="is not convex, but Newton"):
        KernelLogisticClassifier(loss=SigmoidLoss()).fit(X, Y)
    with pytest.raises(ValueError, match="is for convex losses"):
        LowRankClassifier(RANK, SigmoidLoss(), ALPHA, penalty="trace_bound").fit(X, FULL)
