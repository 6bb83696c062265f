"""Predictions of fitted models are consistent, and invalid parameters are refused by name."""

from inspect import isclass

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from attacks.small_fits import EVERY, ONE_CLASS
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_param_validation

import labelweave
from labelweave import (
    KernelLogisticClassifier,
    LabelGraphClassifier,
    LowRankClassifier,
    MaxMarginClassifier,
    Taxonomy,
    decisions,
    estimators,
)
from small_models import complete, data, fit, fit_once, has, kinds, model, scores, takes

OWN_THRESHOLDS = (
    "tuned", "tuned, top", "calibrated, sets", "automatic", "tuned, by label", "tuned, probabilities",
)  # fmt: skip
"""Kinds whose labels have a threshold each, or of which a row has the best."""


def array(table):
    return table.toarray() if sp.issparse(table) else np.asarray(table)


@kinds(lambda name: name not in ("zero-shot", *ONE_CLASS, *OWN_THRESHOLDS))
def test_positive_scores_are_what_is_predicted(name):
    X, _ = data(name)
    found = fit_once(name)
    rows = np.r_[X, np.zeros((2, X.shape[1]))]
    np.testing.assert_array_equal(array(found.predict(rows)), scores(found, rows) > 0)


@kinds(has("predict_proba"))
def test_probabilities_are_some_and_agree_with_what_is_predicted(name):
    X, Y = data(name)
    found = fit_once(name)
    shares, predicted = found.predict_proba(X), array(found.predict(X))
    assert shares.shape == (len(X), len(found.classes_))
    assert ((shares >= 0) & (shares <= 1)).all()
    if np.ndim(Y) == 1:
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        np.testing.assert_array_equal(predicted, found.classes_[shares.argmax(axis=1)])
    elif hasattr(found, "thresholds_"):
        np.testing.assert_array_equal(predicted == 1, shares > found.thresholds_)
    if np.ndim(Y) == 2:
        order, ranks = (np.argsort(table, axis=0, kind="stable") for table in (shares, scores(found, X)))
        np.testing.assert_array_equal(order, ranks)
    if hasattr(found, "predict_log_proba"):
        np.testing.assert_allclose(np.exp(found.predict_log_proba(X)), shares, atol=1e-12)


@kinds(has("predict_top"))
def test_the_best_labels_are_those_of_the_scores(name):
    X, _ = data(name)
    found = fit_once(name)
    table = scores(found, X)
    places, values = found.predict_top(X, 3)
    np.testing.assert_array_equal(values, np.take_along_axis(table, places, axis=1))
    np.testing.assert_array_equal(values, -np.sort(-table, axis=1)[:, :3])
    for k in (0, 6):
        with pytest.raises(ValueError, match=f"k is {k}"):
            found.predict_top(X, k)


@kinds()
def test_rows_in_blocks_are_rows_at_once(name, monkeypatch):
    X, _ = data(name)
    found = fit_once(name)
    whole = scores(found, X), array(found.predict(X))
    for place in ("estimators.base._SCORES_AT_ONCE", "decisions.label_scores._SCORES_AT_ONCE"):
        monkeypatch.setattr(f"labelweave.{place}", 7 * 5)
    monkeypatch.setattr("labelweave.estimators.scorers._KERNEL_VALUES_AT_ONCE", 100)
    monkeypatch.setattr("labelweave.estimators.label_graph.model._NUMBERS_AT_ONCE", 300)
    np.testing.assert_allclose(scores(found, X), whole[0], rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(array(found.predict(X)), whole[1])


@kinds()
def test_a_row_alone_is_a_row_among_others(name):
    X, _ = data(name)
    found = fit_once(name)
    np.testing.assert_allclose(scores(found, X[:1]), scores(found, X)[:1], rtol=1e-9, atol=1e-11)
    assert len(found.predict(X[:1])) == 1


@kinds(lambda name: name not in ("conformal", "zero-shot"))  # whose scores are shares of something else
def test_scores_of_models_count_rows_by_their_weights(name):
    X, Y = data(name)
    truth, weights = complete(name)[1] if np.ndim(Y) == 2 else Y, np.linspace(0.5, 2.0, len(X))
    found = fit_once(name)
    hits = array(found.predict(X)) == np.asarray(truth)
    hits = hits.all(axis=1) if np.ndim(Y) == 2 else hits
    assert found.score(X, truth) == pytest.approx(hits.mean())
    assert found.score(X, truth, weights) == pytest.approx(np.average(hits, weights=weights))


@kinds()
def test_rows_of_other_features_are_refused(name):
    X, _ = data(name)
    found = fit_once(name)
    broken = X.copy()
    broken[3, 1] = np.inf
    for rows, said in (
        (X[:, :5], "5 features"),
        (broken, "infinity at row 3, column 1"),
        (X[:0], "0 sample|0 rows"),
    ):
        with pytest.raises(ValueError, match=said):
            found.predict(rows)


@kinds(lambda name: name != "texts of labels")  # it treats names as words
def test_features_go_by_name(name):
    X, Y = data(name)
    frame = pd.DataFrame(X, columns=list("uvwxyz"))
    found = fit(name, frame, Y)
    assert found.feature_names_in_.tolist() == list("uvwxyz")
    assert found.n_features_in_ == 6
    with pytest.raises(ValueError, match="feature names"):
        found.predict(frame.rename(columns={"u": "other"}))
    with pytest.raises(ValueError, match="feature names"):
        found.predict(frame[list("zyxwvu")])
    with pytest.warns(UserWarning, match="valid feature names"):
        found.predict(X)


@kinds()
def test_a_model_that_is_not_fitted_says_so(name, tmp_path):
    X, _ = data(name)
    with pytest.raises(NotFittedError):
        model(name).predict(X)
    with pytest.raises(ValueError, match="not fitted"):
        model(name).save(tmp_path / "model.lw")
    assert not list(tmp_path.iterdir())


@kinds()
def test_a_fit_leaves_parameters_as_they_were(name):
    assert repr(clone(fit_once(name))) == repr(EVERY[name])


def test_every_public_estimator_is_looked_at():
    homes = (labelweave, decisions, estimators)
    public = {
        name
        for home in homes
        for name in home.__all__
        if hasattr(getattr(home, name), "fit") and isclass(getattr(home, name))
    }
    assert public - {type(made).__name__ for made in EVERY.values()} == {"TableModel"}  # of frames only


CLASSES = {type(made): made for made in EVERY.values()}
X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X > 0).astype(int)
GRAM = rbf_kernel(X)
OF_KERNELS = [MaxMarginClassifier, KernelLogisticClassifier, LowRankClassifier, LabelGraphClassifier]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_values_that_a_parameter_cannot_have_are_refused_by_its_name(kind, monkeypatch):
    """scikit-learn generates some: of other types, just outside of ranges, and other words."""
    allowed = kind._parameter_constraints
    names = CLASSES[kind].get_params(deep=False)
    own = {name: allowed[name] if name != "rank" else "no_validation" for name in names}  # a share or a count
    monkeypatch.setattr(kind, "_parameter_constraints", own)
    check_param_validation(kind.__name__, clone(CLASSES[kind]))


@pytest.mark.parametrize(
    ("made", "name", "said"),
    [
        (MaxMarginClassifier(hyperparameters="learn"), "hyperparameters__cv", "to a HyperparameterSearch"),
        (LowRankClassifier(), "rank__cv", "rank is 100, .* to a RankSearch"),
        (LabelGraphClassifier(), "graph__refit", "graph is 'learn', which has no 'refit'; set graph to"),
    ],
)
def test_a_group_of_parameters_has_to_be_there_before_its_parts(made, name, said):
    with pytest.raises(ValueError, match=f"{said}.* first"):
        made.set_params(**{name: 3})


OF_LABELS = {
    "label_covariance": [
        (np.eye(4), "over 4 labels but y has 5"),
        (-np.eye(5), "smallest eigenvalue is -1"),
        (np.diag([1.0, 0, 1, 1, 1]), "(?i)variance"),
        (Taxonomy([("root", "leaf")]), "'0' is not in the taxonomy"),
    ],
    "false_negative_cost": [
        ([1, 2], r"false_negative_cost has shape \(2,\); .* each of the 5 labels"),
        ([1, 2, -1, 1, 1], "is -1 at label 2; costs must be finite and >= 0"),
        ([1, 2, np.inf, 1, 1], "false_negative_cost is inf at label 2"),
        (["a", 2, 1, 1, 1], "false_negative_cost has a non-numeric entry"),
    ],
    "label_mean": [
        (np.zeros((5, 4)), "5 labels and 4 features, but there are 5 and 6"),
        (np.zeros((2, 6)), "2 labels and 6 features"),
        (np.zeros(6), r"label_factors has shape \(6,\)"),
        (np.full((5, 6), np.nan), "is nan in an entry; pass a table of finite"),
    ],
    "flip_rates": [
        ((0.6, 0.5), "add up to 1"),
        ((None, 0.1), "None"),
        ((0.1,), "pair"),
        (([0.1, 0.2], 0.0), "shape"),
        ((-0.1, 0.0), "-0.1"),
    ],
}


PLAIN = (
    "margins, coordinates",
    "margins, rbf",
    "logistic, fixed",
    "low rank",
    "graph, none",
    "tree of one node",
)


@kinds(lambda name: name in PLAIN)
def test_what_is_given_a_label_is_checked(name):
    X, Y = data(name)
    for parameter, cases in OF_LABELS.items():
        for value, said in cases if takes(parameter)(name) else ():
            with pytest.raises(ValueError, match=said) as error:
                model(name, **{parameter: value}).fit(X, Y)
            assert "\n" not in str(error.value)


def spoiled(**entries):
    K = GRAM.copy()
    for place, value in entries.items():
        K[tuple(int(k) for k in place[1:].split("_"))] = value
    return K


@pytest.mark.parametrize("kind", OF_KERNELS)
@pytest.mark.parametrize(
    ("K", "message"),
    [
        (spoiled(_3_7=0.9), r"not symmetric: entry \((3, 7|7, 3)\) is"),
        (spoiled(_3_7=np.nan), "NaN at row 3, column 7"),
        (spoiled(_3_7=np.inf), "infinity at row 3, column 7"),
        (-GRAM, "not positive semi-definite"),
        (GRAM[:, :5], r"(?s)\(60, 5\).*square"),
        (spoiled(_3_3=-1.0), "not positive semi-definite"),
    ],
)
def test_a_kernel_matrix_that_is_none_is_refused(K, message, kind):
    with pytest.raises(ValueError, match=message) as error:
        kind(kernel="precomputed").fit(K, Y)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", OF_KERNELS)
def test_a_kernel_matrix_of_other_rows_is_refused_in_predictions(kind):
    model = kind(kernel="precomputed").fit(GRAM, Y)
    with pytest.raises(ValueError, match="59"):
        model.predict(GRAM[:, :59])


@pytest.mark.parametrize("kind", OF_KERNELS)
def test_a_kernel_matrix_is_split_by_rows_and_columns_in_searches(kind):
    search = GridSearchCV(kind(kernel="precomputed"), {"max_iter": [50]}, cv=3, error_score="raise")
    assert search.fit(GRAM, Y).best_score_ > 0.1
