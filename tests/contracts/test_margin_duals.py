"""Requirements of every form of the max-margin dual.  A new form needs one more entry in ``FORMS``."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.features import FeatureMatrix
from labelweave.features.feature_matrix import dense_rows
from labelweave.labels import LabelCovariance, LabelMatrix, LabelMean
from labelweave.problems import MarginData, make_margin_dual, swept_margins
from reference import margin_twins

_FACTOR = np.random.default_rng(3).normal(size=(18, 2))
FORMS = {
    "independent": (LabelCovariance.identity(18), 4096),
    "independent, dense rows": (LabelCovariance.identity(18), 4096),
    "coupled, dense": (LabelCovariance.dense(_FACTOR @ _FACTOR.T + np.eye(18)), 4096),
    "coupled, factor": (LabelCovariance.low_rank(_FACTOR, 1.0), 0),
}
FORMS |= {f"{form}, margins of entries": given for form, given in FORMS.items()}


def _dual(form, *, intercept, seed=0, dtype=np.float64):
    covariance, largest_dense = FORMS[form]
    random = np.random.default_rng(seed)
    X = random.normal(size=(20, 5)) * (random.random((20, 5)) < 0.7)
    Y = np.where(random.random((20, 18)) < 0.1, np.nan, random.random((20, 18)) < 0.4)
    of_margins = (2, 20, 18) if "of entries" in form else (2, 18)
    data = MarginData(
        FeatureMatrix(X if "dense rows" in form else sp.csr_array(X)), LabelMatrix.from_any(Y), covariance,
        random.uniform(0, 2, 20), random.uniform(0.5, 2, of_margins), intercept,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swept_margins, "_LARGEST_DENSE", largest_dense)
        return make_margin_dual(data, dtype)


def _values(dual, point):
    return np.sum([dual.certify(point, block) for block in range(dual.n_blocks)], axis=0)


def _variables(dual, point):
    """The variables, rows in the order of the problem."""
    return dual.dual(point)[dual.row_order]


def _by_numpy(dual, point):
    data = dual.data
    X = dense_rows(data.features)
    wide = np.c_[X, np.full(len(X), float(data.intercept))]
    signs, R = data.labels.to_signs(), data.covariance.to_dense()
    weights, constants = dual.solution()
    Z = np.r_[weights.T, constants[None]]
    primal = margin_twins.primal_at(Z, wide, signs, data.upper, data.margins, R)
    return primal, margin_twins.dual_at(_variables(dual, point), wide, signs, data.margins, R), Z


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=15)
@given(st.integers(0, 2**32), st.booleans())
def test_any_feasible_variables_give_weak_duality(form, seed, intercept):
    dual = _dual(form, intercept=intercept, seed=seed)
    random, point = np.random.default_rng(seed), dual.start()
    for block, beta in zip(dual.label_blocks, point.beta, strict=True):
        beta[:] = block.signs * dual.upper[:, None] * random.choice([0, 0.5, 1], beta.shape)
    primal, value = _values(dual, point)
    assert primal >= value - 1e-9 * abs(primal)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_certificate_is_the_objectives_at_the_solution(form, intercept, dtype):
    dual = _dual(form, intercept=intercept, dtype=dtype)
    point = dual.start()
    for _ in range(4):
        for block in range(dual.n_blocks):
            dual.sweep(point, block, np.arange(20), 0.0)
    primal, value = _values(dual, point)
    slow_primal, slow_value, Z = _by_numpy(dual, point)
    tolerance = 1e-5 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(primal, slow_primal, rtol=1e-9 if dtype == np.float64 else 1e-6)
    np.testing.assert_allclose(value, slow_value, rtol=tolerance)
    X, R = dense_rows(dual.data.features), dual.data.covariance.to_dense()
    np.testing.assert_allclose(Z[:-1], X.T @ _variables(dual, point) @ R, atol=tolerance)
    measured = np.sum([dual.measure(point, block) for block in range(dual.n_blocks)], axis=0)
    np.testing.assert_allclose(measured, (primal, value), rtol=tolerance)


@pytest.mark.parametrize("form", FORMS)
def test_the_dual_never_falls_from_sweep_to_sweep(form):
    dual = _dual(form, intercept=False)
    point = dual.start()
    values = [_values(dual, point)[1]]
    for seed in range(15):
        for block in range(dual.n_blocks):
            dual.sweep(point, block, np.random.default_rng(seed).permutation(20), 0.0)
        values.append(_values(dual, point)[1])
    assert (np.diff(values) >= -1e-10).all()
    assert values[-1] > values[0]


@pytest.mark.parametrize("form", FORMS)
def test_variables_stay_in_their_boxes(form):
    dual = _dual(form, intercept=True, dtype=np.float32)
    point = dual.start()
    for seed in range(6):
        for block in range(dual.n_blocks):
            dual.sweep(point, block, np.random.default_rng(seed).permutation(20), 0.0)
    for number, block in enumerate(dual.label_blocks):
        exact = dual.exact_beta(point, number)
        assert (exact * block.signs >= 0).all()
        assert (abs(exact) <= dual.data.upper[:, None]).all()
        assert not exact[block.signs == 0].any()
        np.testing.assert_allclose(exact, point.beta[number], atol=1e-6)


def test_a_problem_too_large_for_single_precision_is_solved_in_double():
    labels, identity = LabelMatrix.from_any([[1], [0]]), LabelCovariance.identity(1)
    X = np.array([[1e20, 0.0], [0.0, 1e20]])
    data = MarginData(FeatureMatrix(X), labels, identity, np.ones(2), np.ones((2, 1)), True)
    assert make_margin_dual(data, np.float32).dtype == np.float64


def test_rows_too_large_for_double_precision_are_named():
    labels, identity = LabelMatrix.from_any([[1], [0]]), LabelCovariance.identity(1)
    data = MarginData(
        FeatureMatrix(np.array([[1.0], [1e200]])), labels, identity, np.ones(2), np.ones((2, 1)), True
    )
    with pytest.raises(ValueError, match="X at row 1 has a squared norm of inf"):
        make_margin_dual(data, np.float64)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_no_weight_leave_everything_at_zero(form, dtype):
    dual = _dual(form, intercept=True, dtype=dtype)
    dual.upper[:] = dual.data.upper[:] = 0
    point = dual.start()
    for block in range(dual.n_blocks):
        assert dual.sweep(point, block, np.arange(20), 0.0) == 0
    assert list(_values(dual, point)) == [0, 0]
    assert not dual.solution()[0].any()


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_of_entries_are_weights_of_rows_where_they_are_the_same(form, dtype):
    by_row = _dual(form, intercept=True, dtype=dtype)
    data = by_row.data
    unordered = data.rows(np.argsort(by_row.row_order))
    entries = np.repeat(unordered.upper[:, None], 18, axis=1)
    by_entry = make_margin_dual(replace(unordered, upper=entries), dtype)
    points = by_row.start(), by_entry.start()
    for seed in range(4):
        for block in range(by_row.n_blocks):
            for dual, point in zip((by_row, by_entry), points, strict=True):
                dual.sweep(point, block, np.random.default_rng(seed).permutation(20), 0.0)
    np.testing.assert_allclose(points[0].beta, points[1].beta, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(_values(by_row, points[0]), _values(by_entry, points[1]), rtol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_weights_of_entries_bound_their_own_variables(form):
    plain = _dual(form, intercept=True)
    unordered = plain.data.rows(np.argsort(plain.row_order))
    entries = np.random.default_rng(5).uniform(0, 2, (20, 18)) * (np.arange(18) != 3)
    dual = make_margin_dual(replace(unordered, upper=entries), np.float64)
    point = dual.start()
    for seed in range(6):
        for block in range(dual.n_blocks):
            dual.sweep(point, block, np.random.default_rng(seed).permutation(20), 0.0)
    variables = dual.dual(point)
    assert (abs(variables) <= entries + 1e-12).all()
    assert not variables[:, 3].any()
    primal, value = _values(dual, point)
    slow_primal, slow_value, _ = _by_numpy(dual, point)
    np.testing.assert_allclose((primal, value), (slow_primal, slow_value), rtol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_a_start_is_put_between_the_bounds_and_followed_by_its_weights(form):
    dual = _dual(form, intercept=True)
    asked = np.random.default_rng(1).normal(size=(20, 18)) * 3
    point = dual.start(asked)
    found, upper = dual.dual(point)[dual.row_order], dual.data.upper[:, None]
    signs = dual.data.labels.to_signs()
    bounds = -upper * (signs < 0), upper * (signs > 0)
    np.testing.assert_allclose(found, np.clip(asked[dual.row_order], *bounds), atol=1e-12)
    measured = np.sum([dual.measure(point, block) for block in range(dual.n_blocks)], axis=0)
    np.testing.assert_allclose(measured, _values(dual, point), rtol=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("intercept", [False, True])
def test_scores_known_before_the_fit_are_no_part_of_the_penalty(form, intercept):
    """Both values explicitly: min |Z|^2 / 2 + U hinge(X (Z + M)), so beta pays for targets minus X M."""
    random, plain = np.random.default_rng(5), _dual(form, intercept=intercept)
    mean = LabelMean(random.normal(size=(18, 5)))
    dual = make_margin_dual(replace(plain.data, mean=mean), np.float64)
    point = dual.start()
    for _ in range(3):
        for block in range(dual.n_blocks):
            dual.sweep(point, block, np.arange(20), 0.0)
    primal, value = _values(dual, point)
    signs, R = dual.data.labels.to_signs(), dual.data.covariance.to_dense()
    X, beta = dense_rows(dual.data.features), _variables(dual, point)
    wide = np.c_[X, np.full(len(X), float(intercept))]
    margins = np.where(signs > 0, dual.data.margins[0], dual.data.margins[1])
    targets, moved = signs * margins, wide.T @ beta
    quadratic = np.sum(moved * (moved @ R)) / 2
    np.testing.assert_allclose(value, np.sum(beta * (targets - X @ mean.weights().T)) - quadratic, rtol=1e-8)
    assert primal >= value
    measured = np.sum([dual.measure(point, block) for block in range(dual.n_blocks)], axis=0)
    np.testing.assert_allclose(measured, (primal, value), rtol=1e-8)
