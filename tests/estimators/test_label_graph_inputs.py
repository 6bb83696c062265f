"""Kernels, out-of-fold scores and thresholds of LabelGraphClassifier."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge

import labelweave
from drawn import draw_labels
from labelweave import GraphGrowth, LabelGraphClassifier, LabelMatrix, TunedThresholdClassifier
from labelweave.estimators.label_graph.inputs import kernel_inputs, out_of_fold_ridge
from labelweave.features import FeatureMatrix, RBFKernel
from labelweave.features.gram.sources import KernelSource
from labelweave.foundation.arrays import Workers
from labelweave.metrics import f1_score


def rows(n_rows=80, seed=0):
    """Labels of circles, which no linear model fits, and one coupled to another."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    radius = np.linalg.norm(X[:, :2], axis=1)
    Y = np.column_stack([radius > 1.2, radius < 1.6, X[:, 2] > 0.3]).astype(float)
    return X, np.c_[Y, np.where(rng.random(n_rows) < 0.9, Y[:, 0], 1 - Y[:, 0])]


def model(**parameters):
    return LabelGraphClassifier(**({"graph": "chow-liu", "alpha": 1e-3, "tol": 0.02} | parameters))


@pytest.mark.parametrize("weighted", [False, True])
def test_out_of_fold_scores_are_those_of_fits_without_the_row(weighted):
    X, Y = rows(25)
    weights = np.random.default_rng(1).random(25) + 0.5 if weighted else np.ones(25)
    weights /= weights.mean()
    Y[3, 0], Y[7, 2] = np.nan, np.nan
    with Workers(1).running() as workers:
        source = KernelSource(RBFKernel(0.5), FeatureMatrix(X))
        found = kernel_inputs(source, None, (LabelMatrix.from_any(Y), weights), 0, workers)
    scores, pivots, table, constant, ridge = found
    signs = np.nan_to_num(2 * Y - 1)
    seen = ~np.isnan(Y) * weights[:, None]
    targets = np.where(np.isnan(Y), (seen * signs).sum(0) / seen.sum(0), signs)
    gram = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(2))

    def fitted(kept):
        """Minimize over coefficients and a free intercept."""
        penalized, ones = (
            gram[np.ix_(kept, kept)] + ridge * np.diag(1 / weights[kept]),
            np.ones((len(kept), 1)),
        )
        square = np.block([[penalized, ones], [ones.T, np.zeros((1, 1))]])
        solved = np.linalg.solve(square, np.r_[targets[kept], np.zeros((1, 4))])
        return gram[:, kept] @ solved[:-1] + solved[-1]

    for row in (0, 3, 11):
        np.testing.assert_allclose(scores[row], fitted(np.delete(np.arange(25), row))[row], atol=1e-6)
    np.testing.assert_allclose(gram[:, pivots] @ table + constant, fitted(np.arange(25)), atol=1e-6)


def test_the_penalty_is_that_of_the_least_out_of_fold_error():
    X, Y = rows(60)
    labels = LabelMatrix.from_any(Y)
    found = out_of_fold_ridge(X, labels, np.ones(60))
    assert found.loss == pytest.approx(np.mean((found.scores - (2 * Y - 1)) ** 2))
    peer = KernelRidge(alpha=found.ridge).fit(X - X.mean(0), 2 * Y - 1 - (2 * Y - 1).mean(0))
    expected = peer.predict(X - X.mean(0)) + (2 * Y - 1).mean(0)
    np.testing.assert_allclose(X @ found.coefficients + found.intercepts, expected, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("inputs", ["features", "scores"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "cosine", 2.0 * RBFKernel(0.5)])
def test_kernels_of_every_kind(kernel, inputs, reloaded):
    X, Y = rows()
    fitted = model(kernel=kernel, inputs=inputs).fit(X, Y)
    linear = model().fit(X, Y)
    if kernel != "cosine":
        assert fitted.score(X, Y) > linear.score(X, Y) + 0.1
    assert fitted.coef_.shape[1] == (4 if inputs == "scores" else len(fitted.inputs_.pivots))
    assert np.isnan(fitted.ridge_) == (inputs == "features")
    sparse = clone(fitted).fit(sp.csr_array(X), Y)
    np.testing.assert_allclose(
        sparse.inputs_.of(FeatureMatrix(sp.csr_array(X))).data,
        fitted.inputs_.of(FeatureMatrix(X)).data,
        atol=1e-5,
    )
    assert sparse.objective_ == pytest.approx(fitted.objective_, rel=0.03, abs=0.03)
    again = reloaded(fitted)
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))


@pytest.mark.slow
def test_a_linear_kernel_of_full_rank_is_the_linear_model():
    X, Y = rows()
    plain = model(tol=1e-4).fit(X, Y)
    factor = model(tol=1e-4, kernel=labelweave.kernels.LinearKernel()).fit(X, Y)
    np.testing.assert_allclose(factor.decision_function(X), plain.decision_function(X), atol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("inputs", ["features", "scores"])
def test_a_given_matrix_is_the_kernel_and_rows_of_weight_0_are_absent(inputs):
    X, Y = rows()
    gram = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(2))
    weights = np.r_[np.zeros(20), np.ones(60)]
    named = model(kernel="rbf", gamma=0.5, inputs=inputs).fit(X, Y, weights)
    given = model(kernel="precomputed", inputs=inputs).fit(gram, Y, weights)
    alone = model(kernel="rbf", gamma=0.5, inputs=inputs).fit(X[20:], Y[20:])
    seen, read = FeatureMatrix(X), named.inputs_.of(FeatureMatrix(X)).data
    np.testing.assert_allclose(given.inputs_.of(FeatureMatrix(gram)).data, read, atol=1e-6)
    np.testing.assert_allclose(alone.inputs_.of(seen).data, read, atol=1e-6)
    np.testing.assert_array_equal(given.inputs_.pivots, alone.inputs_.pivots + 20)
    assert np.mean(given.predict(gram) == named.predict(X)) > 0.97
    assert np.mean(alone.predict(X) == named.predict(X)) > 0.97


@pytest.mark.parametrize("inputs", ["features", "scores"])
def test_rows_of_weight_0_do_not_choose_the_width(inputs):
    X, Y = rows()
    with_more = np.r_[X, 100.0 * X[:20]], np.r_[Y, Y[:20]]
    weights = np.r_[np.ones(len(X)), np.zeros(20)]
    whole = model(kernel="rbf", inputs=inputs).fit(*with_more, sample_weight=weights)
    alone = model(kernel="rbf", inputs=inputs).fit(X, Y)
    assert whole.kernel_.gamma == alone.kernel_.gamma
    np.testing.assert_allclose(whole.decision_function(X), alone.decision_function(X))


def test_fewer_pivots_are_an_approximation():
    X, Y = rows()
    few = model(kernel="rbf", kernel_rank=5).fit(X, Y)
    assert few.coef_.shape == (4, 5)
    assert few.inputs_.pivot_rows.shape == (5, 3)


@pytest.mark.parametrize("inputs", ["features", "scores"])
def test_a_learned_width_beats_a_bad_one(inputs):
    X, Y = rows(120)
    fitted = model(kernel="rbf", gamma="learn", inputs=inputs).fit(100 * X[:80], Y[:80])
    bad = model(kernel="rbf", gamma=10.0, inputs=inputs).fit(100 * X[:80], Y[:80])
    assert 0 < fitted.kernel_.gamma < 0.01
    assert fitted.score(100 * X[80:], Y[80:]) > bad.score(100 * X[80:], Y[80:])


@pytest.mark.parametrize("graph", ["chow-liu", "learn"])
@pytest.mark.parametrize("threshold", [-0.2, 0.3])
def test_thresholds_are_taken_off_the_scores(graph, threshold, reloaded):
    X, Y = rows()
    graph = GraphGrowth(max_rounds=2) if graph == "learn" else graph
    settings = {"graph": graph, "alpha": 0.05}
    fitted, auto = model(threshold=threshold, **settings).fit(X, Y), model(**settings).fit(X, Y)
    np.testing.assert_array_equal(fitted.coef_, auto.coef_)
    scores = fitted.decision_function(X)
    raw = scores + fitted.thresholds_.min()
    np.testing.assert_allclose(raw, auto.decision_function(X))
    np.testing.assert_array_equal(fitted.predict(X), raw > fitted.thresholds_)
    np.testing.assert_array_equal(fitted.predict_map(X).labels, auto.predict(X))
    np.testing.assert_array_equal(reloaded(fitted).predict(X), fitted.predict(X))


def test_a_threshold_for_f1_finds_rare_labels():
    X, Y = draw_labels(400, 4, noise=2.0, above=3.2)
    plain = model(alpha=0.02)
    tuned = TunedThresholdClassifier(plain, "macro_f1", validation_fraction=0.3)
    plain, tuned = (one.fit(X[:250], Y[:250]).predict(X[250:]) for one in (plain, tuned))
    assert f1_score(Y[250:], tuned, average="macro") > f1_score(Y[250:], plain, average="macro")
