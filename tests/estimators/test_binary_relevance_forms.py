"""Binary relevance: forms of input and output, model files, errors, scikit-learn's own checks."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import labelweave
from labelweave import BinaryRelevance, LabelMatrix

MODELS = [
    BinaryRelevance(),
    BinaryRelevance("logistic"),
    BinaryRelevance("squared_hinge", fit_intercept=False),
]
EVERY = pytest.mark.parametrize("model", MODELS, ids=str)


def _data(n=40, d=5, n_labels=4, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * (random.random((n, d)) < 0.8)
    Y = (X @ random.normal(size=(d, n_labels)) + random.normal(size=(n, n_labels)) > 0.3).astype(int)
    return X, Y


@EVERY
def test_every_form_of_data_gives_the_same_model(model):
    pandas = pytest.importorskip("pandas")
    X, Y = _data()
    scores = clone(model).fit(X, Y).decision_function(X)
    frame = pandas.DataFrame(X, columns=list("abcde"))
    forms = [
        (sp.csr_array(X), sp.csr_array(Y)),
        (frame, pandas.DataFrame(Y, columns=list("wxyz"))),
        (X, 2 * Y - 1),
        (X, LabelMatrix(sp.csr_array(Y))),
    ]
    for features, labels in forms:
        other = clone(model).fit(features, labels)
        np.testing.assert_allclose(other.decision_function(features), scores, atol=1e-9)
        assert type(other.predict(features)) is not type(None)


@EVERY
def test_predictions_look_like_the_labels(model):
    pandas = pytest.importorskip("pandas")
    X, Y = _data()
    expected = clone(model).fit(X, Y).predict(X)
    named = clone(model).fit(X, pandas.DataFrame(Y, columns=list("wxyz")))
    assert list(named.label_names_) == list("wxyz")
    assert list(named.predict(X).columns) == list("wxyz")
    np.testing.assert_array_equal(named.predict(X), expected)
    sparse = clone(model).fit(X, sp.csr_array(Y)).predict(X)
    np.testing.assert_array_equal(sparse.toarray(), expected)
    np.testing.assert_array_equal(clone(model).fit(X, 2 * Y - 1).predict(X), 2 * expected - 1)


@EVERY
def test_the_best_labels_are_those_of_the_scores(model):
    X, Y = _data()
    fitted = clone(model).fit(X, Y)
    labels, scores = fitted.predict_top(X, 2)
    np.testing.assert_array_equal(labels, np.argsort(-fitted.decision_function(X), axis=1)[:, :2])
    assert (scores[:, 0] >= scores[:, 1]).all()


@EVERY
@pytest.mark.parametrize("classes", [2, 3])
def test_model_files_keep_everything(model, classes, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, Y = _data()
    frame = pandas.DataFrame(X, columns=list("abcde"))
    for y in (Y, np.asarray(["one", "two", "three"])[np.arange(40) % classes]):
        fitted = clone(model).fit(frame, y)
        fitted.save(tmp_path / "model.lw")
        loaded = labelweave.load(tmp_path / "model.lw")
        assert type(loaded) is type(model)
        assert loaded.get_params() == fitted.get_params()
        np.testing.assert_array_equal(loaded.decision_function(frame), fitted.decision_function(frame))
        np.testing.assert_array_equal(loaded.predict(frame), fitted.predict(frame))
        np.testing.assert_equal(loaded.trace_, fitted.trace_)
        assert list(loaded.feature_names_in_) == list("abcde")


@EVERY
def test_a_fully_observed_mask_is_no_mask(model):
    X, Y = _data()
    mask = LabelMatrix(sp.csr_array(Y), sp.csr_array(np.ones_like(Y)))
    expected = clone(model).fit(X, Y).decision_function(X)
    np.testing.assert_allclose(clone(model).fit(X, mask).decision_function(X), expected, atol=1e-9)


@EVERY
def test_rows_without_weight_are_left_out(model):
    X, Y = _data()
    weights = (np.arange(40) % 3 > 0).astype(float)
    one = clone(model).fit(X, Y, sample_weight=weights)
    other = clone(model).fit(X[weights > 0], Y[weights > 0])
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-9)
    with pytest.raises(ValueError, match="at least one non-zero"):
        clone(model).fit(X, Y, sample_weight=np.zeros(40))


@EVERY
def test_bad_data_are_refused_by_name(model):
    X, Y = _data()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN at row 3, column 1"):
        clone(model).fit(X, Y)
    X, Y = _data()
    with pytest.raises(ValueError, match="X has 40 rows but y has 39"):
        clone(model).fit(X, Y[:-1])
    Y[2, 3] = 7
    with pytest.raises(ValueError, match="row 2, label 3 is 7"):
        clone(model).fit(X, Y)
    Y = np.full((40, 2), np.nan)
    Y[:, 0] = 1
    with pytest.raises(ValueError, match="Label 1 has no observed entry"):
        clone(model).fit(X, Y)


def test_bad_parameters_are_refused():
    with pytest.raises(ValueError, match="parameter of"):
        BinaryRelevance("hinge").fit(*_data())


def test_parameters_can_be_searched():
    X, Y = _data()
    search = GridSearchCV(BinaryRelevance(), {"regularization": [1.0, 4.0]}, cv=2).fit(X, Y)
    assert search.best_params_["regularization"] in (1.0, 4.0)


@EVERY
def test_what_makes_scores_is_kept_as_a_scorer(model):
    X, Y = _data()
    fitted = clone(model).fit(X, Y)
    assert fitted.scorer_.intercept_ is fitted.intercept_
    scores = X @ fitted.coef_.T + fitted.intercept_ - fitted.threshold_
    np.testing.assert_allclose(fitted.decision_function(X), scores, atol=1e-9)


@parametrize_with_checks([BinaryRelevance("logistic"), BinaryRelevance("squared_hinge")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
