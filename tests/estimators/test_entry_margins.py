"""Costs of single entries: the margin that each of them requires, in every solver of the max-margin model."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from labelweave import MaxMarginClassifier
from reference import margin_twins

N, D, L, C = 15, 4, 3, 0.7
R = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]])
SOLVERS = ["coordinate_ascent", "alternating_directions", "block_ascent", "working_set"]


def _problem(missing=0.0, seed=0):
    random = np.random.default_rng(seed)
    X, Y = random.normal(size=(N, D)), np.where(random.random((N, L)) < 0.5, 1.0, 0.0)
    Y[random.random((N, L)) < missing] = np.nan
    return X, Y, random.uniform(0.2, 2, (2, N, L))


def _signs(Y):
    return np.nan_to_num(2 * Y - 1).astype(int)


def _fitted(X, Y, costs, **options):
    options = {"C": C, "tol": 1e-6, "max_iter": 5000} | options
    return MaxMarginClassifier(false_negative_cost=costs[0], false_positive_cost=costs[1], **options).fit(
        X, Y
    )


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("covariance", [None, R], ids=["independent", "coupled"])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("form", ["dense", "sparse", "rbf"])
def test_every_solver_reaches_the_optimum_of_the_slow_twin(missing, covariance, solver, form):
    if (form, solver) == ("rbf", "coordinate_ascent"):
        pytest.skip("it has no kernels")
    X, Y, costs = _problem(missing)
    K = np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2)) if form == "rbf" else X @ X.T
    best = margin_twins.largest_dual(K + 1, _signs(Y), C, np.eye(L) if covariance is None else R, costs)
    kernel = {"kernel": "rbf", "gamma": 0.5} if form == "rbf" else {}
    model = _fitted(
        sp.csr_array(X) if form == "sparse" else X,
        Y,
        costs,
        label_covariance=covariance,
        solver=solver,
        **kernel,
    )
    assert model.converged_
    assert model.trace_[-1].dual == pytest.approx(best, rel=2e-6)
    assert model.trace_[-1].primal == pytest.approx(best, rel=2e-6)


def test_weights_of_the_model_have_the_primal_value_of_its_certificate():
    X, Y, costs = _problem(0.2)
    model = _fitted(X, Y, costs, label_covariance=R)
    Z = np.c_[model.coef_, model.intercept_].T
    primal = margin_twins.primal_at(Z, np.c_[X, np.ones(N)], _signs(Y), np.full(N, 2 * C), costs, R)
    assert model.trace_[-1].primal == pytest.approx(primal, rel=1e-9)


@pytest.mark.parametrize("prune", ["off", "certified"])
def test_costs_of_entries_that_are_those_of_labels_change_nothing(prune):
    X, Y, _ = _problem(0.2)
    by_label = np.array([0.5, 1.0, 2.0])
    options = {"prune": prune, "tol": 1e-3}
    expected = _fitted(sp.csr_array(X), Y, (by_label, 0.7), **options)
    model = _fitted(sp.csr_array(X), Y, (np.tile(by_label, (N, 1)), 0.7), **options)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-12)


def test_pruned_blocks_know_the_losses_of_what_is_not_fitted_yet():
    from labelweave.features import FeatureMatrix
    from labelweave.foundation.arrays import Workers
    from labelweave.labels import LabelCovariance, LabelMatrix
    from labelweave.problems import MarginData
    from labelweave.problems.margin_blocks import MarginBlocks

    X, Y, costs = _problem(0.2)
    upper = np.random.default_rng(1).uniform(size=N)
    data = MarginData(
        FeatureMatrix(sp.csr_array(X)),
        LabelMatrix.from_any(Y),
        LabelCovariance.identity(L),
        upper,
        costs,
        True,
    )
    zero = margin_twins.hinge_losses(np.zeros((N, L)), _signs(Y), upper, costs)
    assert MarginBlocks(data, np.float64, Workers()).zero_losses.sum() == pytest.approx(zero)


def test_a_margin_is_asked_for_and_a_slope_is_not_changed():
    """An entry with a required margin of 0 has no effect where its score has the right sign."""
    X, Y, _ = _problem()
    costs = np.ones((2, N, L))
    plain = _fitted(X, Y, costs, C=10.0)
    right = np.argwhere((plain.decision_function(X) > 0) == (Y > 0))
    free, weights = costs.copy(), np.ones((N, L))
    for row, label in right:
        free[:, row, label] = weights[row, label] = 0.0
    asked = _fitted(X, Y, free, C=10.0)
    scores = asked.decision_function(X)
    signs = _signs(Y)
    omitted = MaxMarginClassifier(C=10.0, tol=1e-6).fit(X, Y, entry_weight=weights).decision_function(X)
    assert (signs * scores)[tuple(right.T)].min() > (signs * omitted)[tuple(right.T)].min()


def test_the_loss_that_weighs_labels_by_others():
    """Section 3.2: half the loss of a single mistake of y' R (y' - y) is y_l (R y)_l."""
    X, Y, _ = _problem()
    signs, weak = _signs(Y), np.eye(L) + 0.3 * (1 - np.eye(L))
    margins = signs * (signs @ weak)
    flipped = signs[0] * np.array([1, -1, 1])
    assert 2 * margins[0, 1] == pytest.approx(signs[0] @ weak @ (signs[0] - flipped))
    model = _fitted(X, Y, (margins, margins))
    best = margin_twins.largest_dual(X @ X.T + 1, signs, C, np.eye(L), np.stack([margins, margins]))
    assert model.trace_[-1].dual == pytest.approx(best, rel=2e-6)


def test_frames_go_by_label():
    X, Y, costs = _problem()
    table = pd.DataFrame(Y, columns=list("abc"))
    of_frames = _fitted(
        X, table, [pd.DataFrame(cost, columns=list("abc"))[["c", "a", "b"]] for cost in costs]
    )
    expected = _fitted(X, Y, costs).decision_function(X)
    np.testing.assert_array_equal(of_frames.decision_function(X), expected)


def test_one_class_a_row_has_costs_of_classes():
    X, _, costs = _problem()
    y = np.array(list("abc"))[np.arange(N) % 3]
    model = _fitted(X, y, costs, warm_start=True)
    signs = np.where(y[:, None] == np.array(list("abc")), 1, -1)
    assert model.trace_[-1].dual == pytest.approx(
        margin_twins.largest_dual(X @ X.T + 1, signs, C, np.eye(L), costs), rel=2e-6
    )
