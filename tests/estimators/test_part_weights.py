"""Weights of the parts of a label covariance, learned by the objective of MaxMarginClassifier."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics.pairwise import rbf_kernel

import labelweave as lw
from labelweave import LabelCovariance
from labelweave.estimators.max_margin.part_weights import lowest_point

_RNG = np.random.default_rng(5)
_X = _RNG.normal(size=(12, 4))
_F = _RNG.normal(size=(3, 2))
_Y = np.where(_X @ _RNG.normal(size=(4, 2)) @ _F.T + 0.3 * _RNG.normal(size=(12, 3)) > 0, 1.0, 0.0)
_Y[[1, 5, 7], [0, 2, 2]] = np.nan
_PARTS = {"own": LabelCovariance.identity(3), "ones": np.ones((3, 3)), "factor": LabelCovariance.low_rank(_F)}
_LINEAR, _RBF = _X @ _X.T, rbf_kernel(_X, gamma=0.3)
_C = 0.2
_MATRICES = [np.eye(3), np.ones((3, 3)), 3 * _F @ _F.T / np.square(_F).sum()]  # of mean variance 1


def _dual_optimum(pairs):
    """Maximize ``<T, V> - 1/2 max_m q_m`` over the box: no weights, no alternation."""
    signs = np.nan_to_num(2 * _Y - 1).ravel()
    parts = [np.kron(K, R) for K, R in pairs]
    bounds = [*zip(np.minimum(0, 2 * _C * signs), np.maximum(0, 2 * _C * signs), strict=True), (0, None)]

    def loss(point):
        V, top = point[:-1], point[-1]
        return top / 2 - signs @ V, np.append(-signs, 0.5)

    limits = [
        {
            "type": "ineq",
            "fun": lambda point, A=A: point[-1] - point[:-1] @ A @ point[:-1],
            "jac": lambda point, A=A: np.append(-2 * A @ point[:-1], 1.0),
        }
        for A in parts
    ]
    begin = np.append(0.5 * _C * signs, 100.0)
    options = {"maxiter": 1000, "ftol": 1e-12}
    found = minimize(
        loss, begin, jac=True, bounds=bounds, constraints=limits, method="SLSQP", options=options
    )
    assert found.success
    V = found.x[:-1]
    return -found.fun, np.array([V @ A @ V for A in parts])


def _fit(**parameters):
    given = {"C": _C, "tol": 1e-6, "fit_intercept": False, **parameters}
    return lw.MaxMarginClassifier(**given).fit(_X, _Y)


@pytest.mark.parametrize("solver", ["coordinate_ascent", "alternating_directions"])
def test_fit_and_weights_reach_the_optimum_of_their_dual(solver):
    model = _fit(label_covariance=LabelCovariance.weighted(_PARTS), solver=solver)
    optimum, squares = _dual_optimum([(_LINEAR, R) for R in _MATRICES])
    assert model.n_iter_ < 30
    assert model.converged_
    assert model.trace_[-1].primal == pytest.approx(optimum, rel=3e-6)
    assert model.trace_[-1].dual <= optimum * (1 + 1e-7)
    weights = model.label_covariance_.weights
    assert weights.sum() == pytest.approx(1)
    assert (weights[squares < 0.99 * squares.max()] < 1e-2).all()


def test_the_certificate_is_of_the_weights_too():
    model = _fit(label_covariance=LabelCovariance.weighted(_PARTS))
    R, W = model.label_covariance_.to_dense(), model.coef_
    signs = np.nan_to_num(2 * _Y - 1)
    losses = np.maximum(0, 1 - signs * (_X @ W.T))[signs != 0].sum()
    primal = np.trace(W.T @ np.linalg.pinv(R, rcond=1e-12) @ W) / 2 + 2 * _C * losses
    assert primal == pytest.approx(model.trace_[-1].primal, rel=1e-9)
    others = [np.full(3, 1 / 3), [0.6, 0.2, 0.2], [0.1, 0.1, 0.8]]
    for weights in others:  # no other weights have a lower optimum than the certificate allows
        at_these = _fit(label_covariance=LabelCovariance.weighted(_PARTS, weights).fixed)
        assert at_these.trace_[-1].primal >= model.trace_[-1].dual


@pytest.mark.parametrize("last", [LabelCovariance.weighted([_MATRICES[2]]), _MATRICES[2]], ids=["part", "R"])
def test_kernels_and_covariances_are_weighted_together(last):
    kernels = [lw.kernels.RBFKernel(0.3), lw.kernels.LinearKernel()]
    weighted = [LabelCovariance.weighted([_MATRICES[0], _MATRICES[1]]), last]
    model = _fit(kernel=kernels, label_covariance=weighted)
    optimum, _ = _dual_optimum([(_RBF, _MATRICES[0]), (_RBF, _MATRICES[1]), (_LINEAR, _MATRICES[2])])
    assert model.trace_[-1].primal == pytest.approx(optimum, rel=3e-6)
    assert sum(one.weights.sum() for one in model.label_covariance_) == pytest.approx(1)


def test_the_start_of_the_weights_does_not_matter():
    objectives = [
        _fit(label_covariance=LabelCovariance.weighted(_PARTS, weights)).trace_[-1].primal
        for weights in (None, [1, 5, 2], [0.01, 0.01, 1])
    ]
    np.testing.assert_allclose(objectives, objectives[0], rtol=2e-6)


def test_a_warm_start_and_more_rows_go_on(tmp_path):
    weighted = LabelCovariance.weighted(_PARTS)
    model = lw.MaxMarginClassifier(C=_C, tol=1e-6, label_covariance=weighted)
    whole = model.fit(_X, _Y).trace_[-1].primal
    parts = lw.MaxMarginClassifier(C=_C, tol=1e-6, label_covariance=weighted).partial_fit(_X[:7], _Y[:7])
    parts.partial_fit(_X[7:], _Y[7:])
    assert parts.trace_[-1].primal == pytest.approx(whole, rel=3e-6)
    parts.save(tmp_path / "m.lw")
    again = lw.load(tmp_path / "m.lw")
    np.testing.assert_array_equal(again.label_covariance_.weights, parts.label_covariance_.weights)
    assert "own" in str(again.label_covariance_)


def test_the_lowest_point_of_planes_bounds_them():
    rng = np.random.default_rng(2)
    for _ in range(20):
        planes = rng.normal(size=(5, 4)) * 10.0 ** rng.integers(-6, 7)
        weights, bound = lowest_point(planes)
        highest = (planes[:, 0] + planes[:, 1:] @ weights).max()
        drawn = rng.dirichlet(np.ones(3), 2000)
        assert bound <= highest <= bound + 1e-6 * np.abs(planes).max()
        assert (planes[:, 0] + drawn @ planes[:, 1:].T).max(axis=1).min() >= bound


def test_fits_at_their_limit_end_the_alternation():
    with pytest.warns(Warning, match="limit"):
        model = _fit(label_covariance=LabelCovariance.weighted(_PARTS), C=1e6, max_iter=30)
    assert model.status_ == "iteration_limit"
    assert model.n_iter_ < 30
