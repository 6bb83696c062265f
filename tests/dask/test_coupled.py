"""Labels that a covariance couples travel as one block, to the optimum of the ordinary estimator."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import labelweave as lw
from drawn import draw_labels
from labelweave import MaxMarginClassifier
from labelweave.dask import data as data_module
from labelweave.dask.graphs import turns_of_round
from labelweave.features import FeatureMatrix
from labelweave.problems import traveling_margins
from labelweave.problems.margin_dual import MarginData, OrderedRows
from partitioned import chunks

TOL, C = 1e-2, 0.02


table = partial(draw_labels, n=90, d=60, n_labels=18, kept=0.2, noise=0, above=1.0, missing=0.0)


def covariance(n_labels=18, rank=6):
    factor = np.random.default_rng(1).normal(size=(n_labels, rank))
    return factor @ factor.T / rank + 0.3 * np.eye(n_labels)


def objective(model, X, Y, R, mean=0.0):
    """The objective, directly from its definition."""
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
    model = MaxMarginClassifier(tol=TOL, **settings).fit(chunks(X), chunks(Y))
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
    first, second = (MaxMarginClassifier(tol=TOL, **settings).fit(chunks(X), chunks(Y)) for _ in range(2))
    exact = lw.MaxMarginClassifier(tol=1e-6, **settings).fit(X, Y)
    assert np.array_equal(first.coef_, second.coef_)
    assert first.trace_[-1].primal == pytest.approx(exact.trace_[-1].primal, rel=2 * TOL)
    assert np.abs(first.coef_ - exact.coef_).max() < 0.1 * np.abs(exact.coef_).max()


def test_rows_in_one_place_are_the_ordinary_fit(client):
    X, Y = table(n_labels=4)
    settings = {"C": C, "label_covariance": covariance(4)}
    model = MaxMarginClassifier(**settings).fit(chunks(X), chunks(Y))
    assert model.label_covariance_.to_dense() == pytest.approx(covariance(4))
    assert np.array_equal(model.coef_, lw.MaxMarginClassifier(**settings).fit(X, Y).coef_)


def two_groups():
    """A covariance that couples labels in two groups of 10 and 8, which frequency mixes."""
    R = covariance()
    R[:10, 10:] = R[10:, :10] = 0
    return R


@pytest.mark.parametrize("is_distributed", [True, False])
def test_labels_that_nothing_couples_travel_apart(client, request, is_distributed):
    if is_distributed:
        request.getfixturevalue("apart")
    X, Y = table()
    settings = {"C": C, "label_covariance": two_groups()}
    model = MaxMarginClassifier(tol=TOL, **settings).fit(chunks(X), chunks(Y))
    least = objective(lw.MaxMarginClassifier(tol=1e-6, **settings).fit(X, Y), X, Y, two_groups())
    assert model.converged_
    assert least * (1 - 1e-6) <= objective(model, X, Y, two_groups()) <= least * (1 + 2 * TOL)


def test_a_block_of_labels_is_what_a_covariance_couples():
    Y = table()[1]
    positives = Y.sum(axis=0)
    counts = data_module.Counts(positives, positives, (positives, positives), len(Y), 1.0, False)
    read = data_module.ReadData([], [], None, counts)
    blocks = read.label_blocks(lw.LabelCovariance.dense(two_groups()))
    assert sorted(map(sorted, map(np.ndarray.tolist, blocks))) == [list(range(10)), list(range(10, 18))]
    assert [len(block) for block in read.label_blocks(lw.LabelCovariance.identity(18))] == [16, 2]


@pytest.mark.parametrize("counts", [[3, 3], [2, 4, 1], [1] * 7])
def test_a_turn_is_at_places_far_apart_and_a_round_visits_each_as_often_as_it_has_visits(counts):
    turns = turns_of_round(0, 5, counts, traveling_margins.CONCURRENT_VISITS)
    assert all(1 <= len(set(turn)) == len(turn) <= traveling_margins.CONCURRENT_VISITS for turn in turns)
    assert np.array_equal(np.bincount(np.concatenate(turns), minlength=len(counts)), counts)


def test_visits_at_the_same_time_give_the_weights_of_all_variables_and_a_larger_dual():
    """Identical rows: without caution the sum of two visits would go too far."""
    random = np.random.default_rng(0)
    X = 1 + 0.05 * random.normal(size=(64, 8))
    Y = (random.random((64, 3)) < 0.5).astype(float)
    parts = {"upper": np.full(64, 2 * C), "margins": np.ones((2, 3)), "intercept": False}
    R = covariance(3, rank=2)
    labels, coupled = lw.LabelMatrix.from_any(Y), lw.LabelCovariance.dense(R)
    data = MarginData(FeatureMatrix(X), labels, coupled, **parts)
    places = [
        traveling_margins.TravelingLabels(OrderedRows(data.rows(rows), np.float64), np.arange(3))
        for rows in np.array_split(np.arange(64), 2)
    ]
    shared = replace(places[0].first_shared(), caution=float(traveling_margins.CONCURRENT_VISITS))
    states, last = [place.first_rows() for place in places], 0.0
    for number in range(6):
        came = []
        for at, place in enumerate(places):
            piece = traveling_margins.Piece(0, 1, np.random.default_rng([number, at]))
            moved, states[at] = place.visit(shared, states[at], piece, is_full=True)
            came.append(moved)
        shared = traveling_margins.brought_together(shared, came)
        product = sum(place.exact_product(state) for place, state in zip(places, states, strict=True))
        assert np.allclose(shared.weights, traveling_margins.spread_by(R, product))
        sums = sum(place.sums_in_use(state, shared) for place, state in zip(places, states, strict=True))
        dual = sums[1].sum() - sums[2].sum() / 2
        assert dual >= last * (1 - 1e-12)
        last = dual


def test_caution_rises_where_a_full_round_met_no_smaller_gap():
    X, Y = table(n_labels=3)
    parts = {"upper": np.full(len(X), 2 * C), "margins": np.ones((2, 3)), "intercept": False}
    coupled = lw.LabelCovariance.dense(covariance(3, rank=2))
    data = MarginData(FeatureMatrix(X), lw.LabelMatrix.from_any(Y), coupled, **parts)
    begin = traveling_margins.TravelingLabels(OrderedRows(data, np.float64), np.arange(3)).first_shared()
    settings = {"was_full": True, "intercept": False, "covariance": covariance(3, rank=2)}
    better = traveling_margins.end_of_round(replace(begin, met_gap=2.0, meeting=1.0), **settings)
    worse = traveling_margins.end_of_round(replace(begin, met_gap=1.0, meeting=1.5), **settings)
    assert better.caution == begin.caution < worse.caution
    for _ in range(9):
        worse = traveling_margins.end_of_round(replace(worse, meeting=worse.met_gap + 1), **settings)
    assert worse.caution == traveling_margins.CONCURRENT_VISITS


def test_too_many_coupled_labels_are_refused(client, apart, monkeypatch):
    monkeypatch.setattr(data_module, "_MOST_COUPLED", 3)
    X, Y = table(n_labels=4)
    with pytest.raises(ValueError, match=r"couples 4 labels, but at most .* in several places"):
        MaxMarginClassifier(label_covariance=covariance(4)).fit(chunks(X), chunks(Y))


def test_intercepts_move_by_the_step_of_newton():
    """The step solves (R + R H R) step = R gradient, for a singular R too."""
    X, Y = table(n_labels=3)
    R = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    parts = {"upper": np.full(len(X), 2 * C), "margins": np.ones((2, 3)), "intercept": True}
    labels, coupled = lw.LabelMatrix.from_any(Y), lw.LabelCovariance.dense(R)
    data = MarginData(FeatureMatrix(X), labels, coupled, **parts)
    begin = traveling_margins.TravelingLabels(OrderedRows(data, np.float64), np.arange(3)).first_shared()
    gradient, free = np.zeros((1, 16)), np.zeros((1, 16))
    gradient[0, :3], free[0, :3] = [1.0, -2.0, 0.5], [100.0, 200.0, 50.0]
    begin.moves.totals[:], begin.moves.free[:] = gradient, free
    ended = traveling_margins.end_of_round(begin, was_full=True, intercept=True, covariance=R)
    step, stiff = ended.pulls[0, :3], 0.15 * free[0, :3]
    assert np.allclose((R + R @ np.diag(stiff) @ R) @ step, R @ gradient[0, :3])
    assert np.allclose(ended.intercepts[0, :3], R @ step)
    assert np.allclose(traveling_margins.spread_by(R, np.ones((1, 4, 16)))[0, :, :3], R.sum(axis=0))
