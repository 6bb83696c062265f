from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numba.core.errors import TypingError

from labelweave.features import FeatureMatrix
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.problems import MarginData, make_margin_dual, swept_margins
from labelweave.problems.margin_dual import MarginDual, OrderedRows
from labelweave.problems.swept_margins import CoupledMargins, IndependentMargins
from reference import margin_twins

_CHANGED = "beta", "weights", "gains", "intercepts"


def _problem(n_labels, covariance, intercept, seed=0):
    random = np.random.default_rng(seed)
    X = np.round(random.normal(size=(23, 6)) * (random.random((23, 6)) < 0.6), 3)
    X[3] = 0  # an empty row
    Y = np.where(random.random((23, n_labels)) < 0.2, np.nan, random.random((23, n_labels)) < 0.4)
    margins = random.uniform(0.5, 2, (2, n_labels))
    upper = random.uniform(0, 2, 23)
    return X, MarginData(
        FeatureMatrix(sp.csr_array(X)), LabelMatrix.from_any(Y), covariance, upper, margins, intercept
    )


@pytest.mark.parametrize(
    ("squared", "keeps_zeros", "as_table"),
    [(False, False, False), (True, False, False), (False, True, False), (True, True, False),
     (False, False, True)],
)  # fmt: skip
@pytest.mark.parametrize("intercept", [False, True])
def test_independent_sweeps_are_their_slow_twin(intercept, squared, keeps_zeros, as_table):
    X, data = _problem(5, LabelCovariance.identity(5), intercept)
    features = FeatureMatrix(X) if as_table else data.features
    data = replace(data, squared=squared, features=features)
    dual = IndependentMargins(OrderedRows(data, np.float64, as_table=as_table), np.float64)
    X, upper, point = X[dual.row_order], data.upper[dual.row_order], dual.start()
    block, value_of, moves = dual.label_blocks[0], point.intercepts[0], point.moves
    beta, weights = point.beta[0].copy(), np.zeros((6, 16))
    random = np.random.default_rng(1)
    if keeps_zeros:
        dual.keeps_zeros = True
        weights[:, :5] = random.normal(size=(6, 5)) * (random.random((6, 5)) < 0.5)
        point.weights[0] = weights
    for threshold in (0.0, 0.0, 0.01, 0.0, 0.05, 0.0):
        rows = random.permutation(23)[: random.integers(15, 24)]
        value, share = value_of.copy(), moves.share[0].copy()
        before_gains = dual.gains(point, 0).copy()
        gap = dual.sweep(point, 0, rows, threshold)
        gains, met, _ = margin_twins.sweep_independent(
            rows, X, block.signs, beta, upper, block.margins, weights, value, share, threshold, intercept,
            keeps_zeros, squared,
        )  # fmt: skip
        np.testing.assert_allclose(point.beta[0], beta, atol=1e-12)
        np.testing.assert_allclose(point.weights[0], weights, atol=1e-12)
        np.testing.assert_allclose(moves.totals[0], beta.sum(axis=0), atol=1e-12)
        np.testing.assert_allclose(gap, met, rtol=1e-10)
        np.testing.assert_allclose(dual.gains(point, 0)[rows], gains[rows], atol=1e-12)
        untouched = np.setdiff1d(np.arange(23), rows)
        np.testing.assert_array_equal(dual.gains(point, 0)[untouched], before_gains[untouched])


@pytest.mark.parametrize("form", ["dense", "factor"])
@pytest.mark.parametrize("n_labels", [3, 19])
def test_coupled_sweeps_are_their_slow_twin(form, n_labels, monkeypatch):
    factor = np.random.default_rng(2).normal(size=(n_labels, 2))
    covariance = LabelCovariance.low_rank(sp.csr_array(factor), 0.5)
    if form == "factor":
        monkeypatch.setattr(swept_margins, "_LARGEST_DENSE", 0)
    X, data = _problem(n_labels, covariance, intercept=True)
    dual = CoupledMargins(data, np.float64)
    order = dual.label_order
    X, data, point = X[dual.row_order], dual.data, dual.start()
    R = covariance.to_dense()[np.ix_(order, order)]
    signs, margins = data.labels.to_signs()[:, order], data.margins[:, order]
    wide = np.c_[X, np.ones(23)]
    beta, Z = np.zeros((23, n_labels)), np.zeros((7, n_labels))
    random = np.random.default_rng(1)
    for threshold in (0.0, 0.05, 0.0):
        rows = random.permutation(23)[:20]
        gap = dual.sweep(point, 0, rows, threshold)
        gains, met = margin_twins.sweep_coupled(rows, wide, signs, beta, data.upper, margins, Z, R, threshold)
        np.testing.assert_allclose(np.hstack(point.beta)[:, :n_labels], beta, atol=1e-8)
        np.testing.assert_allclose(np.hstack(point.weights)[:, :n_labels], Z[:-1], atol=1e-8)
        np.testing.assert_allclose(point.intercepts.ravel()[:n_labels], Z[-1], atol=1e-8)
        np.testing.assert_allclose(gap, met, rtol=1e-7)
        np.testing.assert_allclose(dual.gains(point, 0)[rows], gains[rows], atol=1e-8)


@pytest.mark.parametrize("as_table", [False, True])
def test_a_sweep_over_mixed_types_is_refused(as_table):
    X, data = _problem(3, LabelCovariance.identity(3), intercept=True)
    dual = make_margin_dual(replace(data, features=FeatureMatrix(X)) if as_table else data, np.float64)
    point = dual.start()
    mixed = replace(point, weights=point.weights.astype(np.float32))
    with pytest.raises(TypingError):
        dual.sweep(mixed, 0, np.arange(23), 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d", "n_labels"), [(1, 3, 1), (3, 1, 1), (5, 0, 2), (6, 17, 17), (9, 40, 3)])
def test_a_table_is_swept_as_its_rows_in_sparse_form(n, d, n_labels, dtype):
    random = np.random.default_rng(2)
    X, Y = random.normal(size=(n, d)), random.random((n, n_labels)) < 0.4
    data = MarginData(
        FeatureMatrix(sp.csr_array(X)), LabelMatrix.from_any(Y), LabelCovariance.identity(n_labels),
        random.uniform(0, 2, n), np.ones((2, n_labels)), True,
    )  # fmt: skip
    points, values = [], []
    for part in (data, replace(data, features=FeatureMatrix(X))):
        dual = make_margin_dual(part, dtype)
        assert dual.ordered.as_table == (part is not data)
        point = dual.start()
        for block in range(dual.n_blocks):
            for rows in (np.arange(n), np.arange(n)[::-1], np.arange(n // 2)):
                dual.sweep(point, block, rows, 0.01)
        points.append(point)
        values.append(
            [of_block(point, b) for b in range(dual.n_blocks) for of_block in (dual.measure, dual.certify)]
        )
        weights, _ = dual.solution()
        np.testing.assert_allclose(
            weights, dual.dual(point).T @ X, atol=1e-5 if dtype == np.float32 else 1e-12
        )
    close = 1e-4 if dtype == np.float32 else 1e-11
    for name in _CHANGED:
        np.testing.assert_allclose(*(getattr(point, name) for point in points), atol=close)
    np.testing.assert_allclose(*values, rtol=close)


@pytest.mark.parametrize("as_table", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_compiled_round_is_its_sweeps_one_by_one(intercept, as_table):
    X, data = _problem(5, LabelCovariance.identity(5), intercept)
    data = replace(data, features=FeatureMatrix(X) if as_table else data.features)
    points = []
    for round_of in (IndependentMargins.round, MarginDual.round):
        dual = IndependentMargins(OrderedRows(data, np.float64, as_table=as_table), np.float64)
        random, mean_gain = np.random.default_rng(1), 0.0
        point = dual.start()
        for _ in range(6):
            orders = random.permuted(np.tile(np.arange(6), (4, 1)), axis=1)
            met, mean_gain, visits = round_of(dual, point, 0, orders, 4, 0.3, 0.02, mean_gain)
        points.append((met, mean_gain, visits, *(getattr(point, name)[0] for name in _CHANGED)))
        points[-1] += *point.moves.of_block(0), point.moves.sweeps
    for compiled, plain in zip(*points, strict=True):
        np.testing.assert_allclose(compiled, plain, rtol=1e-12)
