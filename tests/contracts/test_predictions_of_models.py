"""What every fitted model says of rows: sets, scores, probabilities and the best labels agree."""

from inspect import isclass

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from attacks.small_fits import EVERY, ONE_CLASS
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import labelweave
from labelweave import decisions, estimators
from small_models import complete, data, fit, fit_once, has, kinds, model, scores

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


@kinds(lambda name: name not in ("conformal", "zero-shot"))  # whose scores are shares of other things
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


@kinds(lambda name: name != "texts of labels")  # names are words to it
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
    assert public - {type(made).__name__ for made in EVERY.values()} == {"TableModel"}  # of frames alone
