"""Decisions on Dask's collections equal those of the ordinary classifiers on the same rows in memory."""

from functools import partial

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

import dask
import labelweave as lw
import partitioned
from labelweave import LowRankClassifier, MaxMarginClassifier
from labelweave.dask import score_table

SIZES = (50, 0, 40, 30)
MARGIN = {"C": 0.1, "tol": 1e-8}


def table(n=120, d=10, n_labels=4):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    Y = (X @ random.normal(size=(d, n_labels)) + 2 * random.normal(size=(n, n_labels)) > 1).astype(float)
    Y[::5, 1] = np.nan
    return X, Y, random.uniform(0.5, 2.0, n)


chunks = partial(partitioned.chunks, sizes=SIZES)


partitions = partial(partitioned.partitions, sizes=SIZES)


def pair(name, inner=MARGIN, kind=MaxMarginClassifier, **settings):
    """Two such models, one to be fitted on the cluster and one in memory."""
    return tuple(getattr(lw, name)(kind(**inner), **settings) for _ in range(2))


@pytest.fixture(autouse=True)
def from_zero(monkeypatch):
    """Max-margin fits begin at 0 in memory, as they do on a cluster, not where another part's ended."""
    monkeypatch.setattr(lw.MaxMarginClassifier, "_begin_at", lambda *_: None)
    monkeypatch.setattr(
        lw.MaxMarginClassifier, "_fit_from", lambda self, part, kept, X, y, **more: self.fit(X, y, **more)
    )


def assert_same(there, here, X, rows):
    """Decisions, scores and probabilities are the same, lazily and in a model file."""
    scores = there.decision_function(rows).compute()
    assert np.allclose(scores, here.decision_function(X), rtol=0, atol=1e-12)
    found, expected = there.predict(rows).compute(), here.predict(X)
    assert (found != expected).nnz == 0 if sp.issparse(expected) else np.array_equal(found, expected)
    if hasattr(here, "predict_proba"):
        found = there.predict_proba(rows).compute()
        assert np.allclose(found, here.predict_proba(X), rtol=0, atol=1e-12)


CASES = {
    "calibrated": ("CalibratedLabelClassifier", {"cv": 2}),
    "isotonic": ("CalibratedLabelClassifier", {"method": "isotonic", "decision": "expected_f1", "cv": 2}),
    "thresholds": ("TunedThresholdClassifier", {"objective": "macro_f1", "validation_fraction": 0.3}),
    "top k": ("TunedThresholdClassifier", {"scope": "top_k", "cv": KFold(3, shuffle=True, random_state=0)}),
    "conformal": ("ConformalLabelClassifier", {"level": 0.3}),
    "conformal folds": ("ConformalLabelClassifier", {"level": 0.4, "cv": 2, "guarantee": "expectation"}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("has_weights", [False, True], ids=["even", "weighted"])
def test_decisions_are_those_in_memory(client, reloaded, case, has_weights):
    X, Y, weights = table()
    name, settings = CASES[case]
    there, here = pair(name, **settings)
    own = (weights,) if has_weights else ()
    there.fit(chunks(X), chunks(Y), *map(chunks, own))
    here.fit(X, Y, *own)
    assert_same(there, here, X, chunks(X))
    loaded = reloaded(there)
    assert np.array_equal(loaded.predict(X), here.predict(X))
    assert there.score(chunks(X), chunks(Y)) == pytest.approx(here.score(X, Y), rel=1e-12)
    assert score_table(there, chunks(X), chunks(Y))["micro_f1"] > 0.5
    labels, best = there.predict_top(chunks(X), 2)
    assert np.array_equal(labels.compute(), here.predict_top(X, 2)[0])
    assert best.shape == (120, 2)


def test_fits_that_go_on_from_parts_in_memory_end_within_the_tolerance(client, monkeypatch):
    X, Y, _ = table()
    monkeypatch.undo()
    there, here = pair("CalibratedLabelClassifier")
    there.fit(chunks(X), chunks(Y))
    found = [model.predict_proba(X) for model in (there, here.fit(X, Y))]
    assert np.allclose(*found, atol=1e-5)


@pytest.mark.parametrize("case", ["thresholds", "conformal folds"])
def test_a_low_rank_fit_goes_on_from_a_part_as_in_memory(client, case):
    X, Y, _ = table()
    name, settings = CASES[case]
    there, here = pair(name, {"rank": 2, "penalty": "ridge", "tol": 1e-2}, LowRankClassifier, **settings)
    there.fit(chunks(X), chunks(Y))
    # of sparse rows, as dense ones in memory take other steps, in their principal axes
    assert_same(there, here.fit(sp.csr_array(X), Y), X, chunks(X))


def test_sparse_rows_by_coordinates(client):
    X, Y, _ = table()
    rows = sp.csr_array(X * (X > 1))
    there, here = pair("ConformalLabelClassifier", {"tol": 1e-3}, level=0.4)
    there.fit(partitions(rows), partitions(sp.csr_array(Y == 1).astype(int)))
    here.fit(rows, sp.csr_array(Y == 1).astype(int))
    assert np.array_equal(there.estimator_.coef_, here.estimator_.coef_)
    assert there.threshold_ == here.threshold_
    (found, *_) = dask.compute(there.predict(partitions(rows)))[0]
    assert (found != here.predict(rows)[: SIZES[0]]).nnz == 0


def test_frames_of_unknown_sizes(client):
    X, Y, _ = table()
    rows, labels = pd.DataFrame(X).rename(columns="x{}".format), pd.DataFrame(Y, columns=list("pqrs"))
    there, here = pair("TunedThresholdClassifier")
    X_there, Y_there = (dd.from_pandas(frame, npartitions=3) for frame in (rows, labels))
    there.fit(X_there, Y_there)
    here.fit(rows, labels)
    assert list(there.feature_names_in_) == list(rows.columns)
    assert np.allclose(there.thresholds_, here.thresholds_, rtol=0, atol=1e-12)
    found = there.predict(X_there).compute()
    pd.testing.assert_frame_equal(found, here.predict(rows), check_dtype=False)


@pytest.mark.parametrize("inside", ["cluster", "memory", "calibrated"])
def test_a_fitted_model_is_taken_as_it_is(client, inside):
    X, Y, _ = table()
    local = lw.MaxMarginClassifier(**MARGIN).fit(X, Y)
    if inside == "calibrated":
        local = lw.CalibratedLabelClassifier(local, cv="prefit").fit(X, Y)
    given = local
    if inside == "cluster":
        given = MaxMarginClassifier(**MARGIN).fit(chunks(X), chunks(Y))
    there = lw.TunedThresholdClassifier(given, cv="prefit")
    there.fit(chunks(X), chunks(Y))
    here = lw.TunedThresholdClassifier(local, cv="prefit").fit(X, Y)
    assert_same(there, here, X, chunks(X))


def test_a_fitted_model_may_know_more_classes_than_the_rows_have(client):
    X, *_ = table()
    y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    given = MaxMarginClassifier(**MARGIN).fit(chunks(X), chunks(y))
    few = X[y != "c"][:60]
    classes = y[y != "c"][:60]
    there = lw.CalibratedLabelClassifier(given, cv="prefit")
    there.fit(chunks(few, sizes=(40, 20)), chunks(classes, sizes=(40, 20)))
    here = lw.CalibratedLabelClassifier(given, cv="prefit").fit(few, classes)
    assert_same(there, here, X, chunks(X))
    with pytest.raises(ValueError, match="y has the class 'd', which the fitted estimator lacks"):
        there.fit(chunks(X), chunks(np.where(y == "a", "d", y)))


@pytest.mark.parametrize("are_numbers", [False, True])
def test_a_fitted_model_may_know_other_tags_than_the_rows_have(client, are_numbers):
    X, Y, _ = table()
    names = np.array([30, 10, 20, 40] if are_numbers else list("srqp"), object)
    tags = pd.Series([names[row > 0].tolist() for row in Y])
    given = MaxMarginClassifier(**MARGIN).fit(partitions(X), partitions(tags))
    strange = 99 if are_numbers else "other"
    others = pd.Series([[strange if name == names[0] else name for name in row] for row in tags])
    there = lw.CalibratedLabelClassifier(given, cv="prefit").fit(partitions(X), partitions(others))
    here = lw.CalibratedLabelClassifier(given, cv="prefit").fit(X, others)
    assert there.classes_.tolist() == here.classes_.tolist()
    assert np.array_equal(there.predict_proba(X), here.predict_proba(X))
    assert list(there.predict(X)) == list(here.predict(X))


CLASSES = {
    "two": lambda X: np.where(X[:, 0] + X[:, 1] > 0.5, "yes", "no"),
    "three": lambda X: np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)],
    # a class of one row is unknown to the fit that holds this row out
    "four": lambda X: np.where(np.arange(len(X)) == 7, "only", CLASSES["three"](X)),
}


@pytest.mark.parametrize(
    ("classes", "name", "settings"),
    [
        ("three", "CalibratedLabelClassifier", {"validation_fraction": 0.3}),
        ("two", "CalibratedLabelClassifier", {}),
        ("three", "ConformalLabelClassifier", {"validation_fraction": 0.3}),
        ("four", "CalibratedLabelClassifier", {"cv": 2}),
    ],
)
def test_one_class_a_row(client, classes, name, settings):
    X, *_ = table()
    y = CLASSES[classes](X)
    there, here = pair(name, **settings)
    there.fit(chunks(X), chunks(y))
    assert_same(there, here.fit(X, y), X, chunks(X))
    if classes == "three":
        with pytest.raises(ValueError, match="Only binary classification is supported"):
            pair("TunedThresholdClassifier")[0].fit(chunks(X), chunks(y))


@pytest.mark.parametrize("settings", [{"conditional": True}, {"decision": "h_loss", "enforce": "none"}])
def test_hierarchies_with_decisions_inside_and_around(client, settings):
    X, Y, _ = table()
    labels = lw.LabelMatrix.from_any(Y, list("pqrs"))
    tree = {"top": [{"p": ["q", "r"]}, "s"]}

    inner = lw.CalibratedLabelClassifier(MaxMarginClassifier(**MARGIN), "sigmoid", cv=2)
    kind = lw.HierarchicalClassifier(inner, tree, **settings)
    model = lw.TunedThresholdClassifier(kind, validation_fraction=0.3)
    there = clone(model).fit(chunks(X), partitions(labels))
    here = clone(model).fit(X, labels)
    assert_same(there, here, X, chunks(X))


def test_what_cannot_be_is_refused(client):
    from sklearn.linear_model import LogisticRegression

    X, Y, _ = table()
    fitted = MaxMarginClassifier(**MARGIN)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        lw.TunedThresholdClassifier(fitted, cv="prefit").fit(chunks(X), chunks(Y))
    other = LogisticRegression().fit(X, Y[:, 0] > 0)
    with pytest.raises(ValueError, match="which cannot read partitions"):
        lw.TunedThresholdClassifier(other, cv="prefit").fit(chunks(X), chunks(Y))
    model = lw.ConformalLabelClassifier(fitted, level=2.0)
    with pytest.raises(ValueError, match="'level' parameter"):
        model.fit(chunks(X), chunks(Y))
    with pytest.raises(NotFittedError, match="ConformalLabelClassifier"):
        clone(model).predict(chunks(X))
    assert not hasattr(model, "predict_proba")
    fitted.fit(chunks(X), chunks(Y))
    with pytest.raises(ValueError, match=r"X has 9 features, but .* 10 features"):
        lw.TunedThresholdClassifier(fitted, cv="prefit").fit(chunks(X[:, :9]), chunks(Y))
    with pytest.raises(ValueError, match="returns scores of shape"):
        lw.TunedThresholdClassifier(fitted, cv="prefit").fit(chunks(X), chunks(Y[:, :3]))
