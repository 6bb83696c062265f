"""Several columns of y with several classes each: fits, predictions and scores, in the type of y."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import KFold, cross_val_score

import labelweave as lw
from labelweave.labels import LabelMatrix, read_class_columns
from labelweave.metrics import column_accuracy_score, get_scorer
from labelweave.metrics.known_labels import TruthWarning

pytestmark = pytest.mark.filterwarnings("ignore:In Y column")

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(90, 5))
COLOR = np.array(["blue", "green", "red"], object)[X[:, :3].argmax(axis=1)]
SIZE = 4 + (X[:, 3] > 0).astype(int) + (X[:, 4] > 0.5)
GAPS = np.where(RANDOM.random(90) < 0.2, None, COLOR)
FRAME = pd.DataFrame({"color": GAPS, "size": SIZE})
FIXED = {"hyperparameters": "fixed"}
MODELS = {
    "max-margin": lw.MaxMarginClassifier(C=10.0, tol=1e-6),
    "logistic": lw.KernelLogisticClassifier(**FIXED, tol=1e-8),
    "low rank": lw.LowRankClassifier(6, tol=1e-8),
    "low rank, logistic": lw.LowRankClassifier(6, loss="log_loss"),
    "relevance": lw.BinaryRelevance(),
    "auto": lw.AutoLabelClassifier(members=["rbf"], time_budget=1.0),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_frame_comes_back(name, tmp_path):
    wide = FRAME.assign(
        large=X[:, 0] > 0, kind=pd.Categorical(COLOR), count=pd.array([*SIZE[:-1], None], "Int64")
    )
    model = MODELS[name].fit(X, wide)
    found = model.predict(X)
    assert found.dtypes.astype(str).tolist() == wide.dtypes.astype(str).tolist()
    assert found.columns.tolist() == wide.columns.tolist()
    assert model.classes_.tolist() == read_class_columns(wide).names.tolist()
    assert min(column_accuracy_score(wide, found).values()) > 0.7
    exact = (found["color"].eq(FRAME["color"]) | FRAME["color"].isna()) & found["size"].eq(SIZE)
    exact &= found["large"].eq(wide["large"]) & found["kind"].eq(wide["kind"])
    exact &= (found["count"].eq(wide["count"]) | wide["count"].isna()).astype(bool)
    assert model.score(X, wide) == pytest.approx(exact.mean())
    model.save(tmp_path / "m.lw")
    again = lw.load(tmp_path / "m.lw")
    pd.testing.assert_frame_equal(again.predict(X), found)
    assert again.score(X, wide) == model.score(X, wide)


@pytest.mark.parametrize(
    "y",
    [np.c_[SIZE, SIZE - 3], np.c_[COLOR, COLOR].astype(str), np.c_[SIZE, np.where(SIZE > 4, SIZE, np.nan)]],
)
def test_an_array_comes_back(y):
    found = MODELS["max-margin"].fit(X, y).predict(X)
    assert (found.shape, found.dtype) == (y.shape, y.dtype)
    seen = y == y
    assert (found == y)[seen].mean() > 0.75


def test_one_class_of_a_column_has_the_highest_score():
    labels = read_class_columns(FRAME)
    model = MODELS["max-margin"].fit(X, FRAME)
    free = lw.MaxMarginClassifier(C=10.0, tol=1e-6).fit(
        X, LabelMatrix(labels.positives, labels.observed, labels.names)
    )
    scores = model.decision_function(X)
    np.testing.assert_array_equal(scores, free.decision_function(X))
    best = np.c_[scores[:, :3].argmax(axis=1), 3 + scores[:, 3:].argmax(axis=1)]
    known = model.predict(X)
    assert (np.c_["color=" + known["color"], "size=" + known["size"].astype(str)] == labels.names[best]).all()


@pytest.mark.parametrize("name", ["logistic", "auto"])
def test_probabilities_are_those_of_each_column(name):
    model = MODELS[name].fit(X, FRAME)
    shares = model.predict_proba(X)
    assert [table.shape for table in shares] == [(90, 3), (90, 3)]
    for table, column in zip(shares, model.predict(X).to_numpy().T, strict=True):
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
        assert (np.unique(column.astype(str))[table.argmax(axis=1)] == column.astype(str)).all()


def test_columns_have_the_softmax_of_fits_to_each():
    """Columns share only the kernel, so each is the multinomial model of its own rows."""
    shares = MODELS["logistic"].fit(X, FRAME).predict_proba(X)
    for table, y in zip(shares, [GAPS, SIZE], strict=True):
        alone = lw.KernelLogisticClassifier(**FIXED, tol=1e-8).fit(X, y)
        np.testing.assert_allclose(table, alone.predict_proba(X), atol=1e-4)


def test_hyperparameters_are_learned_with_the_softmax_loss():
    search = lw.HyperparameterSearch(max_learning_iter=12)
    model = lw.KernelLogisticClassifier(hyperparameters=search).fit(X, FRAME)
    assert model.cross_validation_loss_ < model.learning_trace_[0].value
    assert model.score(X, FRAME) > 0.8


@pytest.mark.parametrize("name", ["max-margin", "low rank"])
def test_later_rows_may_have_new_classes(name):
    model = clone(MODELS[name])
    whole = MODELS[name].fit(X, FRAME).decision_function(X)
    order = np.argsort(COLOR, kind="stable")  # blue first
    model.partial_fit(X[order[:40]], FRAME.iloc[order[:40]])
    model.partial_fit(X[order[40:]], FRAME.iloc[order[40:]])
    assert model.classes_.tolist() == read_class_columns(FRAME).names.tolist()
    np.testing.assert_allclose(model.decision_function(X), whole, atol=0.02)
    with pytest.raises(ValueError, match="go on with the same"):
        model.partial_fit(X, FRAME[["size"]])


def test_what_is_measured():
    model = MODELS["auto"].fit(X, FRAME)
    labels, honest = read_class_columns(FRAME), model._out_of_fold.honest.scores
    found = np.c_[honest[:, :3].argmax(axis=1), honest[:, 3:].argmax(axis=1)]
    seen = np.c_[[entry is not None for entry in GAPS], np.ones(90, bool)]
    true = np.c_[labels.positives[:, :3].argmax(axis=1), labels.positives[:, 3:].argmax(axis=1)]
    assert model.oof_score_ == pytest.approx((found == true)[seen].mean())
    predicted = model.predict(X)
    kept = seen[:, 0]
    expected = [accuracy_score(GAPS[kept].astype(str), predicted["color"][kept].astype(str))]
    expected.append(accuracy_score(SIZE, predicted["size"]))
    assert [*column_accuracy_score(FRAME, predicted[["size", "color"]]).values()] == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["micro_f1", "subset_accuracy", "neg_log_loss", "neg_ranking_loss"])
def test_scorers_read_columns(metric):
    scores = cross_val_score(MODELS["logistic"], X, FRAME, scoring=get_scorer(metric), cv=KFold(3))
    assert np.isfinite(scores).all()
    if metric == "subset_accuracy":
        assert scores.tolist() == cross_val_score(MODELS["logistic"], X, FRAME, cv=KFold(3)).tolist()


def test_unknown_classes_of_a_truth_count_as_missed():
    model, later = MODELS["max-margin"].fit(X, FRAME), FRAME.assign(size=SIZE + (np.arange(90) == 0) * 90)
    with pytest.warns(TruthWarning, match="'size=9"):
        assert model.score(X[:1], later[:1]) == 0.0
    assert model.score(X, later, unknown_labels="ignore") <= model.score(X, FRAME)
    with pytest.raises(ValueError, match="unknown to the model"):
        model.score(X, later, unknown_labels="raise")
