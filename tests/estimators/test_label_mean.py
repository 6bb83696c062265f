"""Weights known before the fit: the penalty is on the distance of the model's weights from them."""

import numpy as np
import pytest
import scipy.sparse as sp
from attacks.small_fits import grouped
from scipy.optimize import minimize

import labelweave as lw

_C = 0.7


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 5)) * (rng.random((24, 5)) < 0.6)
    Y = np.where(X @ rng.normal(size=(5, 3)) > 0.3, 1.0, 0.0)
    Y[rng.random(Y.shape) < 0.2] = np.nan
    root = rng.normal(size=(3, 3))
    mean = lw.LabelMean(rng.normal(size=(3, 2)), rng.normal(size=(5, 2)), rng.normal(size=3))
    return X, Y, root @ root.T / 4 + np.eye(3) / 2, mean


def _hinge_optimum(X, Y, R, mean):
    import cvxpy as cp

    moved = cp.Variable((X.shape[1] + 1, Y.shape[1]))
    known = np.vstack([mean.weights().T, mean.intercepts])
    scores = np.hstack([X, np.ones((len(X), 1))]) @ (moved + known)
    short = cp.pos(1 - cp.multiply(np.where(Y == 1, 1.0, -1.0), scores))
    whitened = moved @ np.linalg.inv(np.linalg.cholesky(R)).T
    loss = cp.sum(cp.multiply(~np.isnan(Y), short))
    task = cp.Problem(cp.Minimize(cp.sum_squares(whitened) / 2 + 2 * _C * loss))
    task.solve(solver="CLARABEL")
    return task.value, (moved.value + known).T


@pytest.mark.parametrize("coupled", [False, True])
def test_margins_are_those_of_a_general_solver(problem, coupled):
    X, Y, R, mean = problem
    best, weights = _hinge_optimum(X, Y, R if coupled else np.eye(3), mean)
    for solver in ("coordinate_ascent", "alternating_directions", "block_ascent", "working_set"):
        model = lw.MaxMarginClassifier(
            _C, label_covariance=R if coupled else None, label_mean=mean, solver=solver, tol=1e-6
        ).fit(sp.csr_array(X), Y)
        last = model.trace_[-1]
        assert last.dual <= best * (1 + 1e-7) <= last.primal * (1 + 2e-7), solver
        assert last.primal - best <= 2e-6 * best
        np.testing.assert_allclose(model.coef_, weights[:, :-1], atol=2e-3)
        np.testing.assert_allclose(model.intercept_, weights[:, -1], atol=2e-3)


def test_single_precision_gaps_are_true_too(problem):
    X, Y, R, mean = problem
    best = _hinge_optimum(X, Y, R, mean)[0]
    model = lw.MaxMarginClassifier(
        _C, label_covariance=R, label_mean=mean, solver="coordinate_ascent", dtype="float32", tol=1e-4
    ).fit(X, Y)
    last = model.trace_[-1]
    assert last.dual <= best * (1 + 1e-7) <= last.primal * (1 + 2e-7)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_logistic_optimum_is_that_of_a_general_minimizer(problem, kernel):
    X, Y, R, mean = problem
    model = lw.KernelLogisticClassifier(
        kernel, gamma=0.3, scale=2.0, intercept_variance=0.0, label_covariance=R, label_mean=mean,
        hyperparameters="fixed", tol=1e-10,
    ).fit(X, Y)  # fmt: skip
    gram = X @ X.T if kernel == "linear" else np.exp(-0.3 * np.square(X[:, None] - X).sum(axis=2))
    signs, known = np.where(np.isnan(Y), 0.0, 2 * Y - 1), mean.scores(X)

    def objective(flat):
        dual = flat.reshape(Y.shape)
        product = 2.0 * gram @ dual @ R
        scores = product + known
        loss = np.where(signs != 0, np.logaddexp(0, -signs * scores), 0.0).sum()
        slope = -signs / (1 + np.exp(signs * scores)) + dual
        return loss + np.vdot(dual, product) / 2, (2.0 * gram @ slope @ R).ravel()

    found = minimize(objective, np.zeros(Y.size), jac=True, method="L-BFGS-B", options={"maxiter": 5000})
    assert model.trace_[-1].primal == pytest.approx(found.fun, rel=1e-6)
    scores = 2.0 * gram @ found.x.reshape(Y.shape) @ R + known
    np.testing.assert_allclose(
        np.log(model.predict_proba(X) / (1 - model.predict_proba(X))), scores, atol=2e-3
    )


def test_kernels_without_weights_add_the_known_scores(problem):
    X, Y, R, mean = problem
    scores = [
        lw.MaxMarginClassifier(kernel="rbf", label_covariance=R, label_mean=mean, solver=solver, tol=1e-6)
        .fit(X, Y)
        .decision_function(X)
        for solver in ("block_ascent", "alternating_directions")
    ]
    np.testing.assert_allclose(*scores, atol=2e-3)
    far = lw.MaxMarginClassifier(kernel="rbf", gamma=1.0, label_mean=mean).fit(X, Y)
    beyond = X[:2] + 1e4  # which the kernel does not cover
    expected = mean.scores(beyond) + far.scorer_.intercept_
    np.testing.assert_allclose(far.decision_function(beyond), expected)


@pytest.mark.parametrize(
    "make",
    [
        lw.MaxMarginClassifier,
        lambda **more: lw.MaxMarginClassifier(kernel="rbf", **more),
        lambda **more: lw.KernelLogisticClassifier(hyperparameters="fixed", **more),
        lambda **more: grouped(lw.KernelLogisticClassifier, max_learning_iter=3, **more),
    ],
)
def test_a_mean_of_zero_is_none_to_the_last_bit(problem, make):
    X, Y, R, _ = problem
    with_zero, without = (
        make(label_covariance=R, **more).fit(X, Y).decision_function(X)
        for more in ({"label_mean": np.zeros((3, 5))}, {})
    )
    np.testing.assert_array_equal(with_zero, without)


def test_softmax_takes_a_mean(problem):
    X, _, _, mean = problem
    y = np.array(["a", "b", "c"])[np.arange(24) % 3]
    named = lw.LabelMean(
        mean.label_factors[::-1], mean.feature_factors, mean.intercepts[::-1], ["c", "b", "a"]
    )
    settings = {"hyperparameters": "fixed", "scale": 1e-9, "intercept_variance": 0.0}
    model = lw.KernelLogisticClassifier(label_mean=named, **settings).fit(X, y)
    expected = np.exp(mean.scores(X))
    np.testing.assert_allclose(
        model.predict_proba(X), expected / expected.sum(axis=1, keepdims=True), atol=1e-6
    )


def test_fits_go_on_around_the_mean(problem, tmp_path):
    X, Y, _, mean = problem
    model = (
        lw.MaxMarginClassifier(label_mean=mean, tol=1e-6)
        .partial_fit(X[:12], Y[:12])
        .partial_fit(X[12:], Y[12:])
    )
    once = lw.MaxMarginClassifier(label_mean=mean, tol=1e-6).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), once.decision_function(X), atol=3e-3)
    again = lw.MaxMarginClassifier(label_mean=mean, warm_start=True).fit(X, Y).fit(X, Y)
    assert again.converged_


def test_a_mean_is_matched_by_name_and_keeps_its_parts():
    with pytest.raises(ValueError, match="3 columns but label_factors has 2"):
        lw.LabelMean(np.ones((2, 2)), np.ones((4, 3)))
    with pytest.raises(ValueError, match="intercepts of shape"):
        lw.LabelMean(np.ones((2, 2)), intercepts=[1.0])
    mean = lw.LabelMean(sp.csr_array(np.eye(2)), label_names=["a", "b"])
    assert mean.columns(np.array([1])).label_names.tolist() == ["b"]
    np.testing.assert_array_equal(mean.scores(sp.csr_array(np.eye(2))), np.eye(2))
    assert repr(mean) == "LabelMean(2 labels, 2 features)"


@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
def test_low_rank_of_full_rank_has_the_optimum_around_the_mean(problem, loss, missing):
    X, Y, R, mean = problem
    Y = Y if missing else np.nan_to_num(Y)
    model = lw.LowRankClassifier(
        3, loss, 0.5, penalty="ridge", fit_intercept=False, label_covariance=R, label_mean=mean, tol=1e-12,
        max_iter=1000,
    ).fit(X, Y)  # fmt: skip
    signs, known, inverse = np.where(np.isnan(Y), 0.0, 2 * Y - 1), mean.scores(X), np.linalg.inv(R)

    def objective(flat):
        Z = flat.reshape(3, 5)
        scores = X @ Z.T + known
        if loss == "squared_error":
            away = np.where(signs != 0, scores - (signs > 0), 0.0)
            value, slope = np.square(away).sum() / 2, away
        else:
            value = np.where(signs != 0, np.logaddexp(0, -signs * scores), 0.0).sum()
            slope = -signs / (1 + np.exp(signs * scores))
        return value + np.vdot(Z, inverse @ Z) / 4, (slope.T @ X + inverse @ Z / 2).ravel()

    found = minimize(objective, np.zeros(15), jac=True, method="L-BFGS-B", options={"maxiter": 9999})
    assert model.objective_ == pytest.approx(found.fun, rel=1e-6)
    np.testing.assert_allclose(model.coef_, found.x.reshape(3, 5), atol=5e-3)
    scores = X @ model.coef_.T + known
    lowest = model.thresholds_.min()
    np.testing.assert_allclose(model.decision_function(X) + lowest, scores, atol=1e-9)


@pytest.mark.parametrize("loss", ["squared_error", "log_loss", "squared_hinge"])
def test_the_gap_around_a_mean_is_true(problem, loss):
    X, Y, _, mean = problem
    loose = lw.LowRankClassifier(3, loss, 0.5, label_mean=mean, tol=1e-2).fit(X, Y)
    tight = lw.LowRankClassifier(3, loss, 0.5, label_mean=mean, tol=1e-12, max_iter=2000).fit(X, Y)
    assert tight.duality_gap_ < 1e-4
    assert loose.objective_ * (1 - loose.duality_gap_) <= tight.objective_ <= loose.objective_


def test_low_rank_learns_and_chooses_around_a_mean(problem):
    X, Y, _, mean = problem
    known = {"label_mean": mean}
    learned = grouped(
        lw.LowRankClassifier,
        3,
        penalty="ridge",
        hyperparameters="learn",
        kernel="rbf",
        cv=2,
        max_learning_iter=2,
        **known,
    )
    assert np.isfinite(learned.fit(X, Y).cross_validation_loss_)
    ranks = lw.RankSearch([1, 3], [100.0, 0.1], cv=3, scoring="loss")
    chosen = lw.LowRankClassifier(ranks, **known).fit(X, Y)
    assert np.isfinite(chosen.best_score_)
    itself = (mean.scores(X) > 0).astype(float)  # labels that the mean explains leave little to learn
    strong = lw.LabelMean(10 * mean.label_factors, mean.feature_factors, 10 * mean.intercepts)
    best = lw.LowRankClassifier(
        lw.RankSearch([1, 3], [1e9], cv=3, scoring="micro_f1"), loss="log_loss", label_mean=strong
    )
    assert best.fit(X, itself).best_score_ == 1.0
    held = lw.TunedThresholdClassifier(lw.LowRankClassifier(3, **known)).fit(X, Y)
    assert np.isfinite(held.thresholds_).all()
