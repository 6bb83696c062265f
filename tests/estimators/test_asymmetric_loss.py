"""The loss of Ridnik et al. for rare labels, which is not convex, in low-rank models."""

import numpy as np
import pytest
from scipy.optimize import minimize

from drawn import draw_labels
from labelweave import AsymmetricLoss, KernelLogisticClassifier, LowRankClassifier
from labelweave.testing import check_loss
from reference.entry_twins import asymmetric

ALPHA, RANK = 0.3, 3
X, FULL = draw_labels(60, d=6, n_labels=7, rank=2, noise=0.3, above=1.0)
Y, WEIGHTS = FULL.astype(float), np.random.default_rng(3).choice([0.0, 0.5, 1.0, 3.0], FULL.shape)
Y[np.random.default_rng(4).random(Y.shape) < 0.3] = np.nan


def minimized(start, labels, weights):
    """Return value and slopes at the start, and the least value from there, by the scalar formula."""
    signs, weights = np.where(labels > 0, 1, -1), np.where(np.isnan(labels), 0.0, weights)
    losses, cut, step = np.vectorize(asymmetric, otypes=[float]), X.shape[1] * RANK, 1e-5

    def objective(free):
        W, H = free[:cut].reshape(-1, RANK), free[cut:].reshape(-1, RANK)
        scores = X @ W @ H.T
        slopes = weights * (losses(signs, scores + step) - losses(signs, scores - step)) / (2 * step)
        by = np.concatenate([X.T @ slopes @ H, slopes.T @ X @ W]).ravel()
        return (weights * losses(signs, scores)).sum() + ALPHA / 2 * free @ free, by + ALPHA * free

    options = {"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-14, "gtol": 1e-9}
    return *objective(start), minimize(objective, start, jac=True, method="L-BFGS-B", options=options).fun


@pytest.mark.parametrize(("labels", "weights"), [(FULL, None), (Y, None), (Y, WEIGHTS)])
def test_another_minimizer_finds_nothing_lower(labels, weights):
    model = LowRankClassifier(RANK, "asymmetric", ALPHA, tol=1e-12, max_iter=500, fit_intercept=False)
    model.fit(X, labels, entry_weight=weights)
    assert (model.status_, model.converged_, np.isnan(model.duality_gap_)) == ("settled", False, True)
    factors = np.vstack([model.feature_factors_, model.label_factors_]).ravel()
    case = labels, 1.0 if weights is None else weights
    value, slopes, least = minimized(factors, *case)
    assert value == pytest.approx(model.objective_, rel=1e-10)
    assert np.abs(slopes).max() < 1e-3
    others = [minimized(np.random.default_rng(k).normal(size=factors.shape), *case)[2] for k in range(2)]
    assert least > (1 - 1e-7) * value
    assert min(others) > 0.98 * value  # other stationary points are at most 1 % lower


@pytest.mark.parametrize("shape", [(1.0, 0.0), (1.0, 0.05), (1.5, 0.3), (2.0, 0.0), (7.0, 0.2), (0.0, 0.0)])
def test_other_exponents_have_their_formula_and_its_derivatives(shape):
    check_loss(AsymmetricLoss(*shape))
    scores = np.linspace(-6, 6, 25)
    for sign in (1.0, -1.0):
        found = AsymmetricLoss(*shape).value(np.full(25, sign), scores)
        np.testing.assert_allclose(found, [asymmetric(sign, s, *shape) for s in scores], atol=1e-14)


def test_without_focusing_it_is_the_logistic_loss(reloaded):
    models = [LowRankClassifier(RANK, loss, ALPHA).fit(X, Y) for loss in (AsymmetricLoss(0, 0), "log_loss")]
    np.testing.assert_array_equal(*(model.decision_function(X) for model in models))
    assert np.isnan(models[0].duality_gap_)
    assert reloaded(models[0]).loss.focusing == 0
    # with it the threshold divides labels at a probability of a half
    labels = np.arange(100)[:, None] < [51, 49]
    model = LowRankClassifier(2, "asymmetric", 1e-6, tol=1e-9).fit(np.zeros((100, 1)), labels)
    assert model.predict([[0.0]]).tolist() == [[1, 0]]


def test_what_needs_convex_losses_or_a_threshold_is_refused():
    with pytest.raises(ValueError, match="AsymmetricLoss is not convex"):
        KernelLogisticClassifier(loss=AsymmetricLoss()).fit(X, Y)
    with pytest.raises(ValueError, match=r"focusing is 4\.0 and shift is 0\.5; use a focusing of at least 1"):
        AsymmetricLoss(4.0, 0.5)
