"""Scores: no table of weights is copied, one row reads only its own, and what is computed once per model."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import labelweave as lw
from drawn import draw_labels
from labelweave.estimators import base
from labelweave.estimators.scorers import KernelExpansion, KernelScorer, LinearScorer
from labelweave.features import FeatureMatrix, LinearKernel, RBFKernel, sparse_products
from labelweave.foundation.arrays import Workers

MODELS = {
    "sparse": lw.MaxMarginClassifier(),
    "ridge": lw.BinaryRelevance(),
    "graph": lw.LabelGraphClassifier(graph=[(0, 1)], max_iter=5, tol=0.5),
    "low rank": lw.LowRankClassifier(2),
}


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = sp.random_array((60, 30), density=0.2, rng=random, format="csr")
    return X, (random.random((60, 5)) < 0.4).astype(int)


@pytest.fixture(scope="module", params=MODELS)
def model(request, data):
    return MODELS[request.param].fit(*data)


def _scorer(n_labels, n_features=30, dtype=np.float64, kernel=None):
    random = np.random.default_rng(1)
    weights = random.normal(size=(n_features, n_labels)).astype(dtype)
    return LinearScorer(random.normal(size=n_labels), weights, kernel)


def _tables(model):
    scorer = model.scorer_
    names = {"LinearScorer": ("weights",), "CliqueScorer": ("coef_", "clique_coef_")}
    return [getattr(scorer, name) for name in names.get(type(scorer).__name__, ("feature_factors_",))]


@pytest.mark.parametrize("from_file", [False, True])
def test_products_read_weights_where_they_are(model, data, from_file, reloaded, monkeypatch):
    if from_file:
        model = reloaded(model)
    read, multiply = [], sparse_products.multiply_rows

    def seen(rows, table):
        read.append(table)
        return multiply(rows, table)

    monkeypatch.setattr(sparse_products, "multiply_rows", seen)
    model.decision_function(data[0])
    assert len(read) == len(_tables(model))
    for table, of_model in zip(read, _tables(model), strict=True):
        assert np.shares_memory(table, of_model)


def test_weights_of_a_feature_are_side_by_side_and_mapped(data, reloaded):
    dense = lw.MaxMarginClassifier().fit(data[0].toarray(), data[1])
    for model in (MODELS["sparse"].fit(*data), MODELS["ridge"].fit(*data), dense):
        loaded = reloaded(model)
        for one in (model, loaded):
            assert one.scorer_.weights.flags.c_contiguous
            assert np.shares_memory(one.coef_, one.scorer_.weights)
            assert one.coef_.shape == (5, 30)
        assert not loaded.scorer_.weights.flags.owndata
        np.testing.assert_array_equal(loaded.decision_function(data[0]), model.decision_function(data[0]))


@pytest.mark.parametrize("n_labels", [1, 7, 64, 400])
@pytest.mark.parametrize(
    "dtypes", [(np.float64, np.float64), (np.float32, np.float32), (np.float32, np.float64)]
)
@pytest.mark.parametrize("kernel", [None, LinearKernel()])
def test_scores_are_those_of_dense_products(n_labels, dtypes, kernel, data):
    X, scorer = data[0].astype(dtypes[0]), _scorer(n_labels, dtype=dtypes[1], kernel=kernel)
    expected = X.toarray().astype(np.float64) @ scorer.weights.astype(np.float64) + scorer.intercept_
    tolerance = 1e-5 if dtypes[1] == np.float32 else 1e-13
    for rows in (X, X[:1], X[:0], X.toarray()):
        found = scorer.scores(FeatureMatrix(rows))
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected[: rows.shape[0]], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n_labels", [7, 400])
def test_scores_have_the_same_bits_for_any_threads_and_rows(n_labels, data, monkeypatch):
    scorer, X = _scorer(n_labels), data[0]
    whole = scorer.scores(FeatureMatrix(X))
    for at_once, threads in ((1, 1), (1, 4), (3000, 3)):
        monkeypatch.setattr("labelweave.estimators.scorers._PRODUCTS_AT_ONCE", at_once)
        monkeypatch.setattr(Workers, "of_library", classmethod(lambda cls, n=threads: cls(n)))
        np.testing.assert_array_equal(scorer.scores(FeatureMatrix(X)), whole)
    parts = [scorer.scores(FeatureMatrix(X[rows])) for rows in (slice(0, 1), slice(1, 18), slice(18, 60))]
    np.testing.assert_array_equal(np.vstack(parts), whole)


def test_weights_for_other_features_are_refused(data):
    with pytest.raises(ValueError, match="mismatch"):
        _scorer(3, n_features=29).scores(FeatureMatrix(data[0]))


def _refuses(*arguments, **options):
    raise AssertionError("scikit-learn is asked")


def test_rows_that_scikit_learn_gives_back_do_not_go_there(data, monkeypatch):
    X, Y = data
    for table in (X, X.toarray()):
        model = lw.MaxMarginClassifier().fit(table, Y)
        expected = model.decision_function(table)
        with monkeypatch.context() as patch:
            patch.setattr(base, "validate_data", _refuses)
            for rows in (table, table.astype(np.float32)):
                np.testing.assert_allclose(model.decision_function(rows), expected, rtol=1e-5, atol=1e-5)
            for rows in (table[:, :-1], table[:0], table.astype(int), X.tocsc(), X.toarray().tolist()):
                with pytest.raises(AssertionError):
                    model.decision_function(rows)


def test_wider_scorers_keep_their_order(data):
    model = lw.MaxMarginClassifier(label_covariance=np.eye(5) + 0.1).fit(*data)
    before = model.coef_
    model.add_labels(["new"], label_covariance=np.eye(6) + 0.1)
    assert model.scorer_.weights.shape == (30, 6)
    assert model.scorer_.weights.flags.c_contiguous
    np.testing.assert_array_equal(model.coef_[:5], before)


def test_a_linear_kernel_of_many_rows_is_scored_by_weights_of_features(data):
    X, Y = data[0].toarray(), data[1]
    for rows in (X, data[0]):
        model = lw.KernelLogisticClassifier(kernel="linear").fit(rows, Y)
        scorer, (term,) = model.scorer_, model.scorer_.terms
        block = X @ np.asarray(model.support_vectors_ @ np.eye(30))[term.rows].T
        expected = block @ term.coefficients + scorer.intercept_
        found = scorer.scores(FeatureMatrix(rows))
        assert scorer._as_weights.weights.shape == (30, 5)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())
        few = replace(
            scorer, terms=(replace(term, rows=term.rows[:20], coefficients=term.coefficients[:20]),)
        )
        assert few._as_weights is None


def test_terms_of_some_rows_and_labels_have_their_columns():
    random = np.random.default_rng(0)
    vectors, coefficients = random.normal(size=(50, 4)), random.normal(size=(40, 2))
    rows, labels = random.permutation(50)[:40], np.array([2, 0])
    term = KernelExpansion(LinearKernel(), rows, labels, coefficients)
    scorer = KernelScorer(np.arange(3.0), (term,), np.arange(50), vectors)
    X = random.normal(size=(6, 4))
    expected = np.tile(np.arange(3.0), (6, 1))
    expected[:, labels] += X @ vectors[rows].T @ coefficients
    np.testing.assert_allclose(scorer.scores(FeatureMatrix(X)), expected, rtol=1e-12, atol=1e-12)
    several = replace(scorer, terms=(term, term))
    assert several._as_weights is None
    expected[:, labels] += X @ vectors[rows].T @ coefficients
    np.testing.assert_allclose(several.scores(FeatureMatrix(X)), expected, rtol=1e-12, atol=1e-12)
    none = replace(scorer, terms=())
    np.testing.assert_array_equal(none.scores(FeatureMatrix(X)), np.tile(np.arange(3.0), (6, 1)))


def test_what_scorers_make_of_their_parts_is_made_once_and_not_kept_in_copies(data):
    X, Y = data[0].toarray(), data[1]
    for model in (
        lw.LowRankClassifier(2, kernel="rbf").fit(X, Y),
        lw.KernelLogisticClassifier(kernel="linear").fit(X, Y),
        *(clone(one).fit(X, Y) for one in KERNEL_MODELS.values()),
    ):
        before = pickle.dumps(model.scorer_)
        first, expected = model.scorer_, model.decision_function(X)
        made = {name: value for name, value in vars(first).items() if name.startswith("_")}
        assert made
        model.decision_function(X)
        assert all(vars(first)[name] is value for name, value in made.items())
        assert pickle.dumps(first) == before
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), expected)


X, Y = draw_labels(40, 5, 3, above=0)

KERNEL_MODELS = {
    "one kernel": lw.MaxMarginClassifier(kernel="rbf"),
    "two kernels": lw.MaxMarginClassifier(kernel=["linear", "rbf"]),
    "sum": lw.MaxMarginClassifier(kernel=LinearKernel() + RBFKernel()),
}


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kind", KERNEL_MODELS)
def test_support_rows_are_checked_once(kind, make, monkeypatch, tmp_path):
    fitted = KERNEL_MODELS[kind].fit(make(X), Y)
    fitted.save(tmp_path / "model.lw")
    made, of_model = [], FeatureMatrix.of_model.__func__
    monkeypatch.setattr(
        FeatureMatrix, "of_model", classmethod(lambda cls, rows: made.append(rows) or of_model(cls, rows))
    )
    model = lw.load(tmp_path / "model.lw")
    found = [model.decision_function(make(X[:1])) for _ in range(3)]
    assert len(made) == len(model.scorer_.terms)
    for one in found:
        assert_array_equal(one, fitted.decision_function(make(X[:1])))


@pytest.mark.parametrize("kind", KERNEL_MODELS)
def test_rows_in_the_memory_of_the_support_have_the_scores_of_copies(kind):
    model = KERNEL_MODELS[kind].fit(X, Y)
    own = model.scorer_.support_vectors
    # BLAS may use another routine for a table times its own transpose
    assert_allclose(model.decision_function(own), model.decision_function(own.copy()), rtol=1e-11, atol=1e-13)


def test_members_inside_a_model_do_not_read_rows_again(monkeypatch):
    sparse = sp.csr_array(np.where(X > 0.3, X, 0.0))
    model = lw.AutoLabelClassifier(members=[lw.LowRankClassifier(2), "rbf"], time_budget=5).fit(sparse, Y)
    assert len(model.scorer_.members) == 2
    scores, read, check = model.decision_function(sparse[:3]), [], FeatureMatrix.__init__
    monkeypatch.setattr(FeatureMatrix, "__init__", lambda *a, **b: read.append(a) or check(*a, **b))
    assert_array_equal(model.decision_function(sparse[:3]), scores)
    assert sum(sp.issparse(rows) for _, rows, *_ in read) == 1
    with pytest.raises(ValueError, match="infinity at row 1"):
        model.predict(sp.csr_array(np.where(np.outer([0, 1, 0], np.ones(5)) > 0, np.inf, 0.0)))
