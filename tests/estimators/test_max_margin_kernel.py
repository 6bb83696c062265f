"""Guarantees of MaxMarginClassifier with a kernel."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV

import labelweave as lw
from drawn import draw_waves
from labelweave.features import (
    CosineKernel,
    FeatureMatrix,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    RBFKernel,
)
from labelweave.problems import MarginBox
from reference import gram_twins

NAMES = ["linear", "rbf", "poly", "poly", "laplacian", "cosine"]


def dot_products(rows, columns):
    return rows @ columns.T


def _fit(X, Y, sample_weight=None, budget="auto", **parameters):
    with lw.config_context(memory_budget=budget):
        return lw.MaxMarginClassifier(**{"kernel": "rbf", "tol": 1e-7, **parameters}).fit(X, Y, sample_weight)


def _objective(model):
    return model.trace_[-1].primal


@pytest.mark.parametrize(
    "kernel",
    [
        *NAMES,
        RBFKernel(0.2),
        RBFKernel("scale") + LinearKernel() * 0.5,
        RBFKernel(0.5) * PolynomialKernel(2, 1.0),
        LaplacianKernel() + 1.0,
        CosineKernel() + CosineKernel(),
        dot_products,
        rbf_kernel,
    ],
    ids=lambda kernel: getattr(kernel, "__name__", str(kernel)),
)
def test_every_kernel_in_every_container(kernel, tmp_path):
    X, Y = draw_waves()
    model = _fit(X, Y, kernel=kernel, tol=1e-5)
    assert model.converged_
    scores = model.decision_function(X)
    assert ((scores > 0) == Y).mean() > 0.6
    frame = pd.DataFrame(X, columns=list("abcd"))
    np.testing.assert_array_equal(_fit(frame, Y, kernel=kernel, tol=1e-5).decision_function(frame), scores)
    if kernel is not dot_products:  # it is not made for sparse rows
        sparse = _fit(sp.csr_array(X), Y, kernel=kernel, tol=1e-5)
        np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), scores, atol=0.05)
        assert _objective(sparse) == pytest.approx(_objective(model), rel=3e-5)
    single = _fit(X.astype(np.float32), Y, kernel=kernel, tol=1e-5)
    assert _objective(single) == pytest.approx(_objective(model), rel=1e-4)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("covariance", [None, 0.5 * np.eye(3) + 0.5])
def test_a_given_kernel_matrix_is_the_kernel(intercept, covariance):
    X, Y = draw_waves(missing=0.1)
    new = np.random.default_rng(9).normal(size=(7, 4))
    same = {"label_covariance": covariance, "fit_intercept": intercept, "solver": "eigenvalues"}
    K = rbf_kernel(X, gamma=0.5)
    before = K.copy()
    given = _fit(K, Y, kernel="precomputed", **same)
    np.testing.assert_array_equal(K, before)
    own = _fit(X, Y, gamma=0.5, **same)
    np.testing.assert_allclose(
        given.decision_function(rbf_kernel(new, X, gamma=0.5)), own.decision_function(new), atol=1e-3
    )
    assert _objective(given) == pytest.approx(_objective(own), rel=1e-6)
    assert not hasattr(given, "support_vectors_")
    assert not hasattr(given, "kernel_")
    assert given.n_features_in_ == len(X)


@pytest.mark.parametrize("solver", ["cholesky", "eigenvalues", "incomplete_cholesky"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_given_kernel_matrix_is_left_as_it_is(solver, dtype, intercept):
    X, Y = draw_waves()
    K = np.asfortranarray(rbf_kernel(X), dtype=dtype)
    before = K.copy()
    _fit(K, Y, kernel="precomputed", solver=solver, fit_intercept=intercept, tol=1e-4,
         dtype="float64" if dtype == np.float64 else "float32")  # fmt: skip
    np.testing.assert_array_equal(K, before)
    K.flags.writeable = False
    _fit(K, Y, kernel="precomputed", solver=solver, fit_intercept=intercept, tol=1e-4)


def test_a_given_kernel_may_be_sparse_or_a_frame():
    X, Y = draw_waves()
    K = np.where(rbf_kernel(X, gamma=1.0) > 0.3, rbf_kernel(X, gamma=1.0), 0) + 60 * np.eye(60)
    dense = _fit(K, Y, kernel="precomputed")
    np.testing.assert_array_equal(
        _fit(sp.csr_array(K), Y, kernel="precomputed").decision_function(sp.csr_array(K)),
        dense.decision_function(K),
    )
    np.testing.assert_array_equal(_fit(pd.DataFrame(K), Y, kernel="precomputed").dual_coef_, dense.dual_coef_)


def test_unobserved_entries_of_a_factor_are_rows_that_the_label_does_not_have():
    X, Y = draw_waves(missing=0.3)
    together = _fit(X, Y, gamma=0.5, solver="incomplete_cholesky").decision_function(X)
    for label in range(3):
        seen = ~np.isnan(Y[:, label])
        alone = _fit(X[seen], Y[seen][:, [label]], gamma=0.5)
        np.testing.assert_allclose(together[:, label], alone.decision_function(X)[:, 0], atol=2e-3)


@pytest.mark.parametrize("solver", ["auto", "eigenvalues", "incomplete_cholesky"])
def test_a_model_without_support(solver):
    X, Y = draw_waves()
    model = _fit(X, Y, false_negative_cost=0, false_positive_cost=0, solver=solver)
    assert model.converged_
    assert len(model.support_) == 0
    assert model.dual_coef_.shape == (0, 3)
    np.testing.assert_array_equal(model.decision_function(X), np.zeros((60, 3)))


def test_costs_are_margins():
    X, Y = draw_waves()
    costly = _fit(X, Y, gamma=0.5, C=0.5, false_negative_cost=2.0, false_positive_cost=2.0)
    plain = _fit(X, Y, gamma=0.5, C=0.25)  # all costs times k: scores times k, when C is divided by k
    np.testing.assert_allclose(costly.decision_function(X) / 2, plain.decision_function(X), atol=2e-3)
    free = _fit(X, Y, gamma=0.5, false_negative_cost=[1, 0, 1], false_positive_cost=[1, 0, 1])
    assert not free.decision_function(X)[:, 1].any()
    positives = [
        _fit(X, Y, gamma=0.5, C=0.05, false_negative_cost=cost).predict(X).sum() for cost in (0.3, 1, 3)
    ]
    assert positives == sorted(positives)
    assert positives[0] < positives[2]


@pytest.mark.slow
@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32 - 1),
    C=st.sampled_from([0.01, 0.5, 10.0]),
    intercept=st.booleans(),
    covariance=st.sampled_from([None, "dense", "rank 1"]),
    precision=st.sampled_from(["float32", "float64"]),
    solver=st.sampled_from(["auto", "eigenvalues", "incomplete_cholesky"]),
)
def test_the_certificate_is_what_it_says(seed, C, intercept, covariance, precision, solver):
    X, Y = draw_waves(30, missing=0.1, seed=seed)
    random = np.random.default_rng(seed)
    factor = random.normal(size=(3, 1))
    R = {None: np.eye(3), "dense": factor @ factor.T + 0.5 * np.eye(3), "rank 1": factor @ factor.T}[
        covariance
    ]
    weights, costs = random.uniform(0, 2, 30), random.uniform(0.2, 2, (2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = _fit(
            X, Y, weights, C=C, gamma=0.3, tol=1e-3, fit_intercept=intercept, dtype=precision,
            solver=solver, false_negative_cost=costs[0], false_positive_cost=costs[1],
            label_covariance=None if covariance is None else R,
        )  # fmt: skip
    # the coefficients are B R; tr(Z^T Z R^-1) = tr(D^T K D R^-1)
    D = np.zeros((30, 3))
    D[model.support_] = model.dual_coef_
    K = rbf_kernel(X, gamma=0.3) + intercept
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, K @ D, atol=1e-5 * max(1, abs(D).max()))
    np.testing.assert_allclose(model.intercept_, intercept * D.sum(axis=0), atol=1e-9 * max(1, abs(D).max()))
    signs = np.where(np.isnan(Y), 0, 2 * np.nan_to_num(Y) - 1)
    targets, lower, upper = gram_twins.box(signs, 2 * C * weights, costs)
    B = D @ np.linalg.pinv(R)
    np.testing.assert_allclose(B @ R, D, atol=1e-6 * max(1, abs(D).max()))
    primal = gram_twins.primal(B, K, R, targets, lower, upper)
    last = model.trace_[-1]
    close = 1e-5 if precision == "float32" else 1e-8
    assert primal == pytest.approx(last.primal, rel=close)
    assert model.duality_gap_ == (last.primal - last.dual) / abs(last.primal)
    # no point's dual value exceeds the primal value of any other
    other = gram_twins.primal(B + 0.01 * random.normal(size=B.shape), K, R, targets, lower, upper)
    assert last.dual <= other * (1 + 10 * close) + 1e-8


def test_only_rows_with_dual_variables_are_kept():
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 2))
    Y = (X[:, :1] + X[:, 1:] > 0).astype(int)
    model = _fit(X, Y, C=5.0, gamma=0.3, fit_intercept=False, tol=1e-10)
    signs, K = 2.0 * Y - 1, rbf_kernel(X, gamma=0.3)
    _, V = gram_twins.optimum(K, np.eye(1), *gram_twins.box(signs, np.full(120, 10.0), np.ones((2, 1))))
    supporting = np.flatnonzero(abs(V[:, 0]) > 1e-6)
    assert len(supporting) < 60
    np.testing.assert_array_equal(model.support_, supporting)
    np.testing.assert_array_equal(model.support_vectors_, X[supporting])
    np.testing.assert_allclose(model.dual_coef_, V[supporting], atol=1e-3)


@pytest.mark.parametrize("kernel", [rbf_kernel, RBFKernel(0.3) + lw.features.CallableKernel(rbf_kernel)])
def test_a_function_is_not_stored_and_the_refusal_says_why(kernel, tmp_path):
    model = _fit(*draw_waves(), kernel=kernel, tol=1e-3)
    with pytest.raises(TypeError, match=r"rbf_kernel.*cannot be stored in a model file"):
        model.save(tmp_path / "model.lw")
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore")
def test_bounds_that_leave_single_precision_are_solved_for_in_double():
    X, Y = draw_waves()
    model = lw.MaxMarginClassifier(
        1e20, kernel="precomputed", solver="alternating_directions", fit_intercept=False, max_iter=100
    )
    gram = 1e-16 * rbf_kernel(X)
    single = clone(model).set_params(dtype="float32").fit(gram, Y)
    double = model.set_params(dtype="float64").fit(gram, Y)
    np.testing.assert_array_equal(single.decision_function(gram), double.decision_function(gram))


@pytest.mark.parametrize("covariance", [None, 0.5 * np.eye(3) + 0.5])
def test_every_way_to_solve_reaches_the_same_optimum(covariance):
    X, Y = draw_waves(300)
    ways = [{"solver": "eigenvalues"}, {"solver": "incomplete_cholesky"}, {"budget": 0.4}, {"budget": 1.0}]
    ways += [{"solver": "cholesky"}] if covariance is None else []
    objectives = [_objective(_fit(X, Y, tol=1e-5, label_covariance=covariance, **way)) for way in ways]
    np.testing.assert_allclose(objectives, objectives[0], rtol=2e-5)


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "precomputed"])
def test_any_weight_of_the_losses(C, kernel):
    X, Y = draw_waves()
    X = rbf_kernel(X) if kernel == "precomputed" else X
    model = _fit(X, Y, kernel=kernel, C=C, tol=1e-3)
    assert model.duality_gap_ <= 1e-3
    if C >= 1e3:
        np.testing.assert_array_equal(model.predict(X), Y)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "cosine"])
def test_features_of_any_scale(scale, kernel):
    X, Y = draw_waves()
    model = _fit(X * scale, Y, kernel=kernel, tol=1e-4)
    assert model.converged_
    expected = _fit(X, Y, kernel=kernel, tol=1e-4)
    assert _objective(model) == pytest.approx(_objective(expected), rel=3e-4)


@pytest.mark.parametrize("solver", ["auto", "eigenvalues", "incomplete_cholesky"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian", "cosine"])
@pytest.mark.parametrize("case", ["constant", "zeros", "constant column", "repeated columns", "opposite"])
def test_degenerate_rows(case, kernel, intercept, solver):
    X, Y = draw_waves(40)
    X, Y = {
        "constant": (np.ones((40, 2)), Y),
        "zeros": (np.zeros((40, 2)), Y),
        "constant column": (np.c_[X, np.full(40, 3.0)], Y),
        "repeated columns": (np.c_[X, X, X], Y),
        "opposite": (np.r_[X, X], np.r_[Y, 1 - Y]),
    }[case]
    model = _fit(X, Y, kernel=kernel, fit_intercept=intercept, tol=1e-3, solver=solver)
    assert model.converged_
    assert np.isfinite(model.decision_function(X)).all()
    if case == "opposite" or (case == "zeros" and not intercept and kernel in ("linear", "cosine")):
        np.testing.assert_allclose(_objective(model), 2.0 * Y.size, rtol=2e-3)  # nothing can be learned


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(
    "kernel", [PolynomialKernel(1, 1.0), PolynomialKernel(2, 1.0), RBFKernel(1e-6)], ids=str
)
def test_kernels_of_low_rank_give_finite_models(kernel, precision):
    for seed in range(4):
        random = np.random.default_rng(seed)
        X = np.round(random.normal(size=(100, 1 + seed % 2)), 1)
        Y = (X @ random.normal(size=(X.shape[1], 5)) + 0.3 * random.normal(size=(100, 5)) > 0.5).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = _fit(X, Y, kernel=kernel, C=100.0, tol=1e-3, dtype=precision)
        assert np.isfinite(model.dual_coef_).all()
        assert model.duality_gap_ < 0.1


def test_searches_over_the_width():
    X, Y = draw_waves(80)
    by_name = GridSearchCV(lw.MaxMarginClassifier(kernel="rbf"), {"gamma": [1e-4, 0.5, 50.0]}, cv=3).fit(X, Y)
    by_object = GridSearchCV(
        lw.MaxMarginClassifier(kernel=RBFKernel()), {"kernel__gamma": [1e-4, 0.5, 50.0]}, cv=3
    ).fit(X, Y)
    np.testing.assert_allclose(
        by_name.cv_results_["mean_test_score"], by_object.cv_results_["mean_test_score"]
    )
    assert by_name.best_params_["gamma"] == by_object.best_params_["kernel__gamma"]


def _sum_of_kernels():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 4))
    Y = np.where(random.random((60, 3)) < 0.1, np.nan, X[:, :3] + random.normal(size=(60, 3)) > 0)
    factor = random.normal(size=(3, 2))
    parts = [RBFKernel(0.3), LinearKernel()], [factor @ factor.T + 0.1 * np.eye(3), 0.2 * np.eye(3)]
    return X, Y, *parts


def test_kernels_with_covariances_of_their_own_make_one_operator():
    X, Y, terms, covariances = _sum_of_kernels()
    model = lw.MaxMarginClassifier(C=0.5, kernel=terms, label_covariance=covariances, tol=1e-5).fit(X, Y)
    box = MarginBox.make(lw.LabelMatrix.from_any(Y), np.ones(60), np.ones((2, 3)))
    grams = [kernel.block(FeatureMatrix(X), FeatureMatrix(X)) + 1 for kernel in terms]
    A = sum(np.kron(K, R) for K, R in zip(grams, covariances, strict=True))
    # one label with the sum as its kernel: the reference for single labels solves it
    flat = [part.reshape(-1, 1) for part in (box.targets, box.lower, box.upper)]
    value, _ = gram_twins.optimum(A, np.eye(1), *flat)
    assert model.converged_
    assert model.trace_[-1].primal == pytest.approx(value, rel=2e-5)
    assert model.trace_[-1].dual == pytest.approx(value, rel=2e-5)


def test_a_sum_with_one_covariance_is_the_sum_of_kernels():
    X, Y, terms, (R, _) = _sum_of_kernels()
    fits = {"tol": 1e-6, "fit_intercept": False}
    parts = lw.MaxMarginClassifier(kernel=terms, label_covariance=[R, R], **fits).fit(X, Y)
    whole = lw.MaxMarginClassifier(kernel=terms[0] + terms[1], label_covariance=R, **fits).fit(X, Y)
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), atol=0.01)


def test_hyperparameters_are_learned_on_a_surrogate():
    X, Y = draw_waves(n=160, missing=0.1)
    plain = lw.MaxMarginClassifier(kernel="rbf", gamma=30.0, C=0.01).fit(X, Y)
    model = lw.MaxMarginClassifier(kernel="rbf", gamma=1.0, hyperparameters="learn").fit(X, Y)
    surrogate = lw.KernelLogisticClassifier(kernel="rbf", gamma=1.0, scale=2.0, tol=1e-3).fit(X, Y)
    assert pytest.approx(surrogate.hyperparameters_["scale"] / 2) == model.C_
    assert model.kernel_.gamma == pytest.approx(surrogate.hyperparameters_["gamma"])
    assert plain.C_ == 0.01
    X_new, Y_new = X[:80], Y[:80]
    later = lw.MaxMarginClassifier(kernel="rbf", gamma=1.0, hyperparameters="learn").fit(X[80:], Y[80:])
    worse = lw.MaxMarginClassifier(kernel="rbf", gamma=30.0, C=0.01).fit(X[80:], Y[80:])
    assert lw.metrics.hamming_loss(Y_new, later.predict(X_new)) < lw.metrics.hamming_loss(
        Y_new, worse.predict(X_new)
    )


def test_the_surrogate_knows_classes_by_name_and_counts_doubts_once():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    codes, names = np.digitize(X[:, 0], [-0.5, 0.5]), np.array(["a", "b", "c"])

    def learned(covariance=None, y=names[codes], **weights):
        model = lw.MaxMarginClassifier(
            kernel="rbf", gamma=1.0, label_covariance=covariance, hyperparameters="learn"
        )
        return model.fit(X, y, **weights).C_

    R, order = np.array([[1.0, 0.8, 0.0], [0.8, 2.0, -0.3], [0.0, -0.3, 1.0]]), [2, 0, 1]
    named = lw.LabelCovariance.dense(R[np.ix_(order, order)], names[order])
    assert learned(named) == pytest.approx(learned(R))
    tree = lw.Taxonomy.from_any({"x": ["a", "b"], "y": ["c"]})
    assert learned(tree) == pytest.approx(learned(lw.LabelCovariance.from_taxonomy(tree, names)))
    Y = np.eye(3)[codes]
    targets = np.clip(Y, 0.1, 0.8)
    weights = abs(2 * targets - 1)
    assert learned(y=lw.LabelMatrix.from_probabilities(targets)) == pytest.approx(
        learned(y=Y, entry_weight=weights)
    )


def test_a_label_covariance_is_learned():
    X, Y = draw_waves(n=120)
    Y[:, 1] = Y[:, 0]
    model = lw.MaxMarginClassifier(kernel="rbf", label_covariance="learn", hyperparameters="learn").fit(X, Y)
    R = model.label_covariance_.to_dense()
    correlation = R / np.sqrt(np.outer(np.diag(R), np.diag(R)))
    assert correlation[0, 1] > 0.5 > abs(correlation[0, 2])
    assert np.diag(R).mean() == pytest.approx(1)


@pytest.mark.parametrize(
    "make",
    [lw.MaxMarginClassifier, lw.LowRankClassifier, lw.KernelLogisticClassifier, lw.LabelGraphClassifier],
)
def test_a_fitted_model_keeps_its_kernel(make):
    X, Y = draw_waves()
    shared = 2.0 * RBFKernel(0.5)
    model = make(kernel=shared).fit(X, Y)
    before = model.decision_function(X)
    model.set_params(kernel__kernel__gamma=50.0)
    make(kernel=shared).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), before)
