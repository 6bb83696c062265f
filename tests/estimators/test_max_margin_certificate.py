"""The duality gap of a linear max-margin fit is that of its weights, however the features are scaled."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from drawn import draw_labels
from labelweave import MaxMarginClassifier
from labelweave.estimators.max_margin import feature_weights


def _objective(model, X, Y, C, R=None):
    """Compute the documented objective at the weights, in extended precision."""
    W = np.column_stack([model.coef_, model.intercept_]).astype(np.longdouble)
    Z = np.column_stack([X, np.ones(len(X))]).astype(np.longdouble)
    inverse = np.eye(len(W)) if R is None else np.linalg.inv(R)
    loss = np.maximum(0, 1 - np.where(Y > 0, 1, -1) * (Z @ W.T)).sum()
    return float((W * (inverse @ W)).sum() / 2 + 2 * C * loss)


def _rows(n, d, n_labels, offset=0.0, scale=1.0, seed=0):
    X, Y = draw_labels(n, d, n_labels, seed=seed, noise=3.0, above=0)
    return (X + offset) * scale, Y


def _with_a_time():
    X, Y = _rows(500, 4, 1)
    return np.column_stack([X, 1.7e9 + 3e7 * np.random.default_rng(1).random(500)]), Y


FITS = {
    "one column in units of 1e5": (*_rows(300, 1, 2, 12.0, 1e5), {}),
    "one column in units of 1e7": (*_rows(300, 1, 2, 12.0, 1e7), {}),
    "offset 1e5, a large cost": (*_rows(3000, 5, 2, 1e5), {"C": 100.0}),
    "a column of times": (*_with_a_time(), {}),
    "fewer rows than columns": (*_rows(40, 100, 2, 1e5), {"C": 100.0}),
    "as many rows as columns": (*_rows(5, 5, 1, 3e5, seed=80), {"C": 100.0, "tol": 1e-6}),
    "many rows, more columns": (*_rows(520, 600, 2, 1e3), {}),
    "sparse form of few rows": (sp.csr_array(_rows(40, 100, 2, 1e5)[0]), _rows(40, 100, 2, 1e5)[1], {}),
    "sparse form of many rows": (sp.csr_array(_rows(520, 600, 2, 1e3)[0]), _rows(520, 600, 2, 1e3)[1], {}),
    "sparse form of dense rows": (sp.csr_array(_rows(300, 5, 2, 100.0)[0]), _rows(300, 5, 2, 100.0)[1], {}),
}


@pytest.mark.parametrize("name", FITS)
def test_features_far_from_0_converge_and_the_gap_is_that_of_the_weights(name):
    X, Y, options = FITS[name]
    model = MaxMarginClassifier(**options).fit(X, Y)
    assert model.converged_
    primal = _objective(model, X.toarray() if sp.issparse(X) else X, Y, model.C)
    assert primal == pytest.approx(model.trace_[-1].primal, rel=1e-6)
    assert (primal - model.trace_[-1].dual) / primal <= 1.01 * model.tol


def test_dense_rows_are_walked_until_global_steps_are_expected_to_be_faster():
    X, Y = _rows(400, 30, 3)
    walked = MaxMarginClassifier(C=0.01, solver="coordinate_ascent").fit(X, Y)
    same = MaxMarginClassifier(C=0.01).fit(X, Y)
    np.testing.assert_array_equal(same.coef_, walked.coef_)
    assert same.n_iter_ == walked.n_iter_
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        late = MaxMarginClassifier(solver="coordinate_ascent", max_iter=300).fit(X + 10.0, Y)
    model = MaxMarginClassifier(n_jobs=2, max_iter=3000).fit(X + 10.0, Y)
    assert model.converged_
    assert [record.iteration for record in model.trace_] == sorted({r.iteration for r in model.trace_})
    assert model.trace_[0][2:5] == late.trace_[0][2:5]  # it began by walking rows
    again = MaxMarginClassifier(max_iter=3000).fit(X + 10.0, Y)
    np.testing.assert_array_equal(model.coef_, again.coef_)


@pytest.mark.parametrize("solver", ["alternating_directions", "block_ascent", "working_set"])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("coupling", [0.0, 0.5])
def test_gaps_are_those_of_the_weights_where_fits_do_not_converge_too(solver, offset, coupling):
    X, Y = _rows(30, 5, 2, offset)
    R = None if coupling == 0 else np.array([[1.0, coupling], [coupling, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MaxMarginClassifier(C=10.0, solver=solver, label_covariance=R, max_iter=200).fit(X, Y)
    last = model.trace_[-1]
    assert last.primal == pytest.approx(_objective(model, X, Y, 10.0, R), rel=1e-5)
    assert model.duality_gap_ == pytest.approx((last.primal - last.dual) / last.primal, abs=1e-12)
    assert last.primal <= 2 * 10.0 * Y.size
    assert model.converged_ == (abs(model.duality_gap_) <= model.tol)


@pytest.mark.parametrize("seed", [80, 86, 123, 143])
def test_a_linear_kernel_is_never_called_indefinite(monkeypatch, seed):
    monkeypatch.setattr(feature_weights, "_FEW_WIDE_ROWS", 0)
    monkeypatch.setattr(feature_weights, "_FAR", np.inf)  # dot products, which lose digits
    random = np.random.default_rng(seed)
    X = random.normal(size=(5, 5)) + 3e5
    Y = (random.random((5, 1)) < 0.5).astype(int)
    # the order of sums, which processors choose, decides whether a run sees that rounding holds it
    with pytest.warns(ConvergenceWarning, match="Rounding kept|The iteration limit"):
        model = MaxMarginClassifier(C=100.0, tol=1e-6, solver="alternating_directions").fit(X, Y)
    primal = _objective(model, X, Y, 100.0)
    assert model.duality_gap_ == pytest.approx((primal - model.trace_[-1].dual) / primal, abs=1e-5)


@pytest.mark.parametrize("shape", [(1200, 5), (30, 40)])
def test_single_precision_is_not_used_beyond_its_range(shape):
    X, Y = _rows(*shape, 2, scale=1e20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # no other warning, as of overflow
        model = MaxMarginClassifier(precision="float32").fit(X, Y)
    assert _objective(model, X, Y, 1.0) <= 2 * Y.size
