"""Labels that a covariance couples travel as one block, to the optimum of the ordinary estimator."""

import dask.array as da
import numpy as np
import pytest

import labelweave as lw
from labelweave.dask import MaxMarginClassifier
from labelweave.dask import data as data_module
from labelweave.features import FeatureMatrix
from labelweave.problems.margin_dual import MarginData, OrderedRows
from labelweave.problems.travelling_margins import TravellingLabels, end_of_round, spread_by

TOL, C = 1e-2, 0.02


def table(n=90, d=60, n_labels=18, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * (random.random((n, d)) < 0.2)
    return X, (X @ random.normal(size=(d, n_labels)) > 1.0).astype(float)


def chunks(values, sizes=(30, 40, 20)):
    return da.from_array(values, chunks=(sizes, *values.shape[1:]))


def covariance(n_labels=18, rank=6):
    factor = np.random.default_rng(1).normal(size=(n_labels, rank))
    return factor @ factor.T / rank + 0.3 * np.eye(n_labels)


def objective(model, X, Y, R, mean=0.0):
    """What is minimised, straight from its definition."""
    Z, b = np.asarray(model.coef_), np.asarray(model.intercept_)
    signs = np.where(np.isnan(Y), 0, 2 * Y - 1)
    losses = np.maximum(0, 1 - signs * (X @ Z.T + b)) * (signs != 0)
    inverse = np.linalg.pinv(R)
    return (np.trace((Z - mean).T @ inverse @ (Z - mean)) + b @ inverse @ b) / 2 + 2 * C * losses.sum()


@pytest.mark.parametrize("intercept", [True, False])
def test_the_optimum_is_that_of_one_machine(client, apart, intercept):
    X, Y = table()
    Y[::7, 1], Y[3, :] = np.nan, np.nan
    settings = {"C": C, "label_covariance": covariance(), "fit_intercept": intercept}
    model = MaxMarginClassifier(client, tol=TOL, **settings).fit(chunks(X), chunks(Y))
    exact = lw.MaxMarginClassifier(tol=1e-6, **settings).fit(X, Y)
    assert model.converged_
    assert model.duality_gap_ <= TOL
    found = objective(model, X, Y, covariance())
    assert model.trace_[-1].primal == pytest.approx(found, rel=1e-6)
    least = objective(exact, X, Y, covariance())
    assert model.trace_[-1].dual <= least * (1 + 1e-6)
    assert least * (1 - 1e-6) <= found <= least * (1 + 2 * TOL)


def test_the_seed_decides_and_a_mean_draws(client, apart):
    X, Y = table(n_labels=5)
    mean = 0.2 * np.random.default_rng(2).normal(size=(5, 60))
    settings = {"C": C, "label_covariance": covariance(5), "label_mean": mean, "class_weight": "balanced"}
    first, second = (
        MaxMarginClassifier(client, tol=TOL, **settings).fit(chunks(X), chunks(Y)) for _ in range(2)
    )
    exact = lw.MaxMarginClassifier(tol=1e-6, **settings).fit(X, Y)
    assert np.array_equal(first.coef_, second.coef_)
    assert first.trace_[-1].primal == pytest.approx(exact.trace_[-1].primal, rel=2 * TOL)
    assert np.abs(first.coef_ - exact.coef_).max() < 0.1 * np.abs(exact.coef_).max()


def test_rows_in_one_place_are_the_ordinary_fit(client):
    X, Y = table(n_labels=4)
    settings = {"C": C, "label_covariance": covariance(4), "threshold": "f1", "validation_fraction": 0.3}
    model = MaxMarginClassifier(client, **settings).fit(chunks(X), chunks(Y))
    local = lw.MaxMarginClassifier(**settings).fit(X, Y)
    assert model.trace_[-1].primal == pytest.approx(local.trace_[-1].primal, rel=1e-3)
    assert model.label_covariance_.to_dense() == pytest.approx(covariance(4))
    plain = settings | {"threshold": "auto"}
    bits = MaxMarginClassifier(client, **plain).fit(chunks(X), chunks(Y)).coef_
    assert np.array_equal(bits, lw.MaxMarginClassifier(**plain).fit(X, Y).coef_)


def test_too_many_coupled_labels_are_refused(client, apart, monkeypatch):
    monkeypatch.setattr(data_module, "_MOST_COUPLED", 3)
    X, Y = table(n_labels=4)
    with pytest.raises(ValueError, match=r"couples 4 labels, which travel all together where .* at most"):
        MaxMarginClassifier(client, label_covariance=covariance(4)).fit(chunks(X), chunks(Y))


def test_intercepts_move_by_the_step_of_newton():
    """The step solves (R + R H R) step = R gradient, for a singular R too."""
    X, Y = table(n_labels=3)
    R = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    parts = {"upper": np.full(len(X), 2 * C), "margins": np.ones((2, 3)), "intercept": True}
    labels, coupled = lw.LabelMatrix.from_any(Y), lw.LabelCovariance.dense(R)
    data = MarginData(FeatureMatrix(X), labels, coupled, **parts)
    begin = TravellingLabels(OrderedRows(data, np.float64), np.arange(3)).first_traveller()
    gradient, free = np.zeros((1, 16)), np.zeros((1, 16))
    gradient[0, :3], free[0, :3] = [1.0, -2.0, 0.5], [100.0, 200.0, 50.0]
    begin.moves.totals[:], begin.moves.free[:] = gradient, free
    ended = end_of_round(begin, was_full=True, intercept=True, covariance=R)
    step, stiff = ended.pulls[0, :3], 0.15 * free[0, :3]
    assert np.allclose((R + R @ np.diag(stiff) @ R) @ step, R @ gradient[0, :3])
    assert np.allclose(ended.intercepts[0, :3], R @ step)
    assert np.allclose(spread_by(R, np.ones((1, 4, 16)))[0, :, :3], R.sum(axis=0))
