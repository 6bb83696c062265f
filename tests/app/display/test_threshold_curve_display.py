"""Threshold curves, drawn without a screen, against scikit-learn's F1 and the models' own predictions."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.metrics
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelweave as lw
from drawn import draw_own
from labelweave.display import ThresholdCurveDisplay
from labelweave.metrics import f1_score, precision_score, recall_score
from pictures import legend_texts


@pytest.fixture(scope="module")
def rows():
    return draw_own(200, 5, noise=0.8, above=[0.3, 0.8, 1.2])


@pytest.fixture
def case(rows):
    X, Y = rows
    return Y, X[:, :3] + 0.1


def test_the_curves_are_the_measures_at_every_threshold(case):
    Y, scores = case
    curve = ThresholdCurveDisplay.from_predictions(Y, scores, thresholds=0.4).curves[0]
    measures = {"precision": precision_score, "recall": recall_score, "f1": f1_score}
    for place in range(0, len(curve.thresholds) - 1, 37):
        predicted = (scores > curve.thresholds[place]).astype(int)
        for name, measure in measures.items():
            assert getattr(curve, name)[place] == pytest.approx(measure(Y, predicted, average="micro"))
    every = [sklearn.metrics.f1_score(Y, scores > t, average="micro") for t in np.unique(scores)]
    assert curve.f1.max() >= max(every) - 1e-12


def test_several_labels_have_a_curve_each(case):
    frame = pd.DataFrame(case[0], columns=["a", "b", "c"])
    thresholds = [0.1, 0.2, 0.3]
    display = ThresholdCurveDisplay.from_predictions(frame, case[1], labels=["c", 0], thresholds=thresholds)
    assert [curve.name for curve in display.curves] == ["c", "a"]
    assert [curve.chosen for curve in display.curves] == [0.3, 0.1]
    expected = sklearn.metrics.f1_score(case[0][:, 2], case[1][:, 2] > 0.3)
    assert display.curves[0].at_chosen("f1") == pytest.approx(expected)
    assert len(display.lines_) == 2
    assert legend_texts(display)[0].startswith(f"c: {expected:.3f}, ")
    alone = ThresholdCurveDisplay.from_predictions(frame, case[1], labels="b", measures=["recall", "f1"])
    assert legend_texts(alone)[0] == "Recall"
    assert legend_texts(alone)[1].endswith(" at best")


def test_unobserved_entries_are_not_counted(case):
    Y, scores = case[0].astype(float), case[1].copy()
    hidden = np.random.default_rng(1).random(Y.shape) < 0.3
    Y[hidden] = np.nan
    scores[hidden] = 1e3
    curve = ThresholdCurveDisplay.from_predictions(Y, scores, thresholds=0.4).curves[0]
    expected = f1_score(Y, scores > 0.4, average="micro")
    assert curve.at_chosen("f1") == pytest.approx(expected)
    assert curve.chosen in curve.thresholds


@pytest.mark.slow
def test_models_are_marked_where_they_decide(rows):
    X, Y = rows
    piped = make_pipeline(StandardScaler(), lw.TunedThresholdClassifier(lw.MaxMarginClassifier()))
    ones = OneVsRestClassifier(LogisticRegression())
    for model in (
        lw.MaxMarginClassifier(),
        lw.TunedThresholdClassifier(lw.MaxMarginClassifier(), scope="global"),
        lw.TunedThresholdClassifier(ones, response_method="predict_proba"),
        lw.LowRankClassifier(rank=2),
        ones,
        piped,
        lw.ConformalLabelClassifier(lw.CalibratedLabelClassifier(lw.MaxMarginClassifier()), level=0.2),
    ):
        model.fit(X, Y)
        display = ThresholdCurveDisplay.from_estimator(model, X, Y)
        expected = f1_score(Y, model.predict(X), average="micro")
        assert display.curves[0].at_chosen("f1") == pytest.approx(expected), model
    labels = ThresholdCurveDisplay.from_estimator(piped, X, Y, labels=[0, 1])
    assert [curve.chosen for curve in labels.curves] == pytest.approx(list(piped[-1].thresholds_[:2]))


def test_thresholds_on_another_scale_are_not_marked(rows):
    X, Y = rows
    ones = OneVsRestClassifier(LogisticRegression())
    tuned = lw.TunedThresholdClassifier(ones).fit(X, Y)
    for model, response in (
        (tuned, "decision_function"),
        (lw.TunedThresholdClassifier(ones, scope="top_k").fit(X, Y), "auto"),
    ):
        display = ThresholdCurveDisplay.from_estimator(model, X, Y, response_method=response)
        assert display.curves[0].chosen is None
    plain = tuned.estimator_
    display = ThresholdCurveDisplay.from_estimator(plain, X, Y, response_method="predict_proba")
    assert display.curves[0].chosen == 0.5


def test_where_whole_rows_decide_no_threshold_is_marked(rows):
    X, Y = rows
    named = lw.LabelMatrix.from_any(Y, ["a", "b", "c"])
    classes = np.array(["x", "y", "z"])[np.argmax(X[:, :3], axis=1)]
    given = lw.MaxMarginClassifier(threshold=-0.2)
    for model, y in (
        (lw.MaxMarginClassifier(), classes),
        (LogisticRegression(), classes),
        (lw.HierarchicalClassifier(given, lw.Taxonomy.from_nested({"a": ["b", "c"]})), named),
        (lw.CalibratedLabelClassifier(lw.MaxMarginClassifier(), decision="expected_f1"), named),
    ):
        display = ThresholdCurveDisplay.from_estimator(model.fit(X, y), X, y)
        assert display.curves[0].chosen is None
    sets = lw.ConformalLabelClassifier(LogisticRegression(), level=0.2, guarantee="expectation").fit(
        X, classes
    )
    assert ThresholdCurveDisplay.from_estimator(sets, X, classes).curves[0].chosen == sets.threshold_


def test_two_classes_and_many(rows):
    X, Y = rows
    names = np.where(Y[:, 0] == 1, "yes", "no")
    two = ThresholdCurveDisplay.from_estimator(lw.MaxMarginClassifier().fit(X, names), X, names, labels="yes")
    assert two.curves[0].recall[0] == 1
    classes = np.array(["x", "y", "z"])[np.argmax(X[:, :3], axis=1)]
    many = ThresholdCurveDisplay.from_estimator(
        LogisticRegression().fit(X, classes), X, classes, labels=["z"]
    )
    assert many.curves[0].name == "z"


def test_large_sparse_tables_are_read(case):
    Y, scores = sp.csr_array(case[0]), case[1]
    display = ThresholdCurveDisplay.from_predictions(Y, sp.csr_array(np.maximum(scores, 0)), measures=["f1"])
    assert display.curves[0].name == "all 3 labels"
    assert display.ax_.get_ylabel() == "Value"
