"""The contributions of features sum to the score, in every model of weights."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelweave as lw
from labelweave.app.report.measured import measure
from labelweave.app.report.reported_rows import Outcomes, read_rows
from labelweave.app.report.row_examples import LinearScores, RowExamples
from labelweave.datasets import TableVectorizer, make_clique_toy
from labelweave.decisions.layers import shown_labels, shown_thresholds
from labelweave.estimators import TableModel
from labelweave.report import write_report

MODELS = {
    "max-margin": lw.MaxMarginClassifier(),
    "cosine": lw.MaxMarginClassifier(kernel="cosine"),
    "low rank": lw.LowRankClassifier(rank=3, threshold=0.4),
    "low rank, single": lw.LowRankClassifier(rank=3, dtype="float32"),
    "least squares": lw.BinaryRelevance(),
    "in a wrapper": lw.TunedThresholdClassifier(lw.MaxMarginClassifier(), "macro_f1"),
    "thresholds twice": lw.TunedThresholdClassifier(lw.LowRankClassifier(rank=3, threshold=0.4), "macro_f1"),
    "calibrated": lw.CalibratedLabelClassifier(lw.MaxMarginClassifier()),
    "isotonic": lw.CalibratedLabelClassifier(lw.MaxMarginClassifier(threshold=-0.2), "isotonic"),
    "thresholds of probabilities": lw.TunedThresholdClassifier(
        lw.CalibratedLabelClassifier(lw.MaxMarginClassifier())
    ),
    "sets of expected F1": lw.CalibratedLabelClassifier(lw.MaxMarginClassifier(), decision="expected_f1"),
    "guaranteed": lw.ConformalLabelClassifier(lw.MaxMarginClassifier(), level=0.3),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("is_sparse", [True, False])
def test_parts_add_up_to_the_decision(data, name, is_sparse):
    X, Y = data
    X = X if is_sparse else X.toarray()
    model = clone(MODELS[name]).fit(X, Y)
    linear = LinearScores(model)
    assert linear.why_not is None
    shown, limits = shown_labels(model, X[:20]), shown_thresholds(model)
    constants = []
    for row in range(20):
        for label in range(Y.n_labels):
            number, limit = shown.numbers[row, label], None if limits is None else limits[label]
            found = linear.explain(X[[row]], label, number, limit)
            total = found.intercept + sum(part.amount for part in found.contributions) + found.others
            assert total + found.calibration - found.threshold == pytest.approx(found.margin, abs=1e-9)
            if limit is not None:
                assert (found.margin > 0) == shown.predicted[row, label]
            if shown.word == "score":
                assert found.margin == pytest.approx(number - limit, abs=1e-5)
                constants.append((label, found.threshold))
            else:
                odds = found.margin + found.threshold
                assert expit(odds) == pytest.approx(number, abs=1e-9)
            assert found.others == 0
            # only features that the row has, each once
            places = [part.feature for part in found.contributions]
            assert len(set(places)) == len(places)
            assert set(places) <= set(np.flatnonzero(np.asarray(abs(X[[row]]).sum(axis=0)).ravel()))
    for label in range(Y.n_labels if constants else 0):  # a threshold is the same for all rows
        assert np.ptp([value for which, value in constants if which == label]) < 1e-5


def test_of_two_classes_each_has_its_sign(data):
    X, Y = data
    y = np.where(Y.to_dense()[:, 0] == 1, "yes", "no")
    linear = LinearScores(lw.MaxMarginClassifier().fit(X, y))
    score = linear.classifier.decision_function(X[[0]])[0]
    no, yes = (linear.explain(X[[0]], label, sign * score, None) for label, sign in ((0, -1), (1, 1)))
    assert yes.margin == pytest.approx(score)
    assert no.margin == -yes.margin
    for found in (no, yes):
        own = found.intercept + sum(part.amount for part in found.contributions)
        assert own - found.threshold == pytest.approx(found.margin)
        assert found.threshold == pytest.approx(0, abs=1e-6)


def test_a_label_graph_adds_what_other_labels_do():
    data, edges = make_clique_toy(200)
    model = lw.LabelGraphClassifier(graph=edges, tol=1e-2).fit(data.X, data.Y)
    linear, scores = LinearScores(model), model.decision_function(data.X[:5])
    found = linear.explain(data.X[[0]], 0, scores[0, 0], 0.0)
    own = found.intercept + sum(part.amount for part in found.contributions)
    assert own == pytest.approx(float(data.X[0] @ model.coef_[0]) + model.intercept_[0])
    assert found.others == pytest.approx(scores[0, 0] - own)
    assert found.others != 0


@pytest.mark.parametrize(
    "members", [["max-margin", "forest"], ["linear"], [lw.MaxMarginClassifier()]], ids=str
)
@pytest.mark.parametrize("is_sparse", [True, False])
def test_linear_members_of_a_combination_have_contributions(data, tmp_path, members, is_sparse):
    X, Y = data if is_sparse else (data[0].toarray(), data[1])
    model = lw.AutoLabelClassifier(members=members, time_budget=1).fit(X, Y)
    linear, shown = LinearScores(model), shown_labels(model, X[:5])
    only = len(linear.members) == len(model.scorer_.members) and model.scorer_.coupling is None
    for row, label in ((0, 0), (1, 1), (4, 2)):
        found = linear.explain(X[[row]], label, shown.numbers[row, label], model.thresholds_[label])
        total = found.intercept + sum(part.amount for part in found.contributions) + found.others
        assert found.calibration == 0
        assert found.margin == pytest.approx(total - found.threshold, abs=1e-9)
        assert (found.margin > 0) == shown.predicted[row, label]
        assert (found.others == 0) == only
    write_report(model, X, Y, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert f"only the contributions of the linear members ({', '.join(linear.members)})" in page


def test_a_combination_without_linear_members_has_no_contributions(data, tmp_path):
    model = lw.AutoLabelClassifier(members=["rbf"], time_budget=1).fit(*data)
    assert LinearScores(model).why_not == (
        "AutoLabelClassifier stores no weights of features, so their contributions are not available."
    )
    write_report(model, *data, tmp_path / "a.html")
    assert "linear members" not in (tmp_path / "a.html").read_text()


@pytest.mark.parametrize("name", ["low rank", "calibrated", "thresholds of probabilities"])
def test_lines_of_an_example_add_up_to_what_it_says(data, name):
    X, Y = data
    model = clone(MODELS[name]).fit(X, Y)
    rows = read_rows(model, X, None)
    outcomes = measure(rows, Y, "error", lambda words: None).outcomes
    examples = RowExamples(rows, outcomes).across(10)
    assert len(examples) == 10
    for row in examples:
        for label in row.labels:
            assert sum(part.amount for part in label.parts) == pytest.approx(label.total)
            away = [v if name == "low rank" else logit(v) for v in (label.number, label.threshold)]
            assert label.total == pytest.approx(away[0] - away[1])
            assert (label.total > 0) == (label.verdict in ("found", "wrong"))
            assert f"{label.number:.3f}" in {f"{v:.3f}" for v in outcomes.scores[int(row.name)]}


def test_small_probabilities_and_thresholds_are_told_apart(data, tmp_path):
    X, Y = data
    model = clone(MODELS["thresholds of probabilities"]).fit(X, Y)
    model.thresholds_ = np.full_like(model.thresholds_, 0.0123)
    write_report(model, X, Y, tmp_path / "p.html")
    assert "threshold 0.0123" in (tmp_path / "p.html").read_text()


@pytest.mark.parametrize("sign", [-1, 1])
def test_sure_probabilities_are_no_calibration(sign):
    X = np.array([[1.0], [-1.0], [2.0], [-2.0]])
    model = lw.KernelLogisticClassifier(kernel="linear", hyperparameters="fixed").fit(X, X > 0)
    row = np.array([[sign * 1e3]])
    found = LinearScores(model).explain(row, 0, float(model.predict_proba(row)[0, 0]), 0.5)
    assert abs(found.margin) > 30
    assert found.calibration == 0
    assert found.margin == pytest.approx(float(model.decision_function(row)[0, 0]))


def _sparse(table):
    import scipy.sparse as sp

    return sp.csr_array(table.astype(np.int8))


def test_cells_are_shown_as_they_are():
    X = pd.DataFrame({"id": [9007199254741251, 4], "n": [3, 4], "share": [0.5, None]})
    model = make_pipeline(SimpleImputer(), StandardScaler(), lw.MaxMarginClassifier()).fit(X, [[1], [0]])
    rows = read_rows(model, X, None)
    assert rows.cells(0) == [("id", "9007199254741251"), ("n", "3"), ("share", "0.5")]
    assert rows.cells(1)[2] == ("share", "")


def test_words_are_marked_in_the_text():
    frame = pd.DataFrame(
        {"text": ["A red rose, red!", "a blue sea", "the rose", "blue ink"], "n": [1.0, 2.0, None, 4.0]}
    )
    vectorizer = TableVectorizer(text="text", numeric="n", missing_numeric="mean").fit(frame)
    flower = lw.MaxMarginClassifier(C=10).fit(vectorizer.transform(frame), [[1], [0], [1], [0]])
    rows = read_rows(TableModel.of_fitted(vectorizer, flower), frame, None)
    assert rows.cells(2) == [("text", "the rose"), ("n", "")]
    scores = np.array([[-1.0], [-1.0], [1.0], [1.0]])  # as if it were wrong on rows 0 and 3
    from labelweave import LabelMatrix

    outcomes = Outcomes(
        LabelMatrix.from_any([[1], [0], [1], [0]], ["flower"]),
        _sparse(scores > 0),
        scores,
        np.arange(4),
        np.array([0]),
    )
    missed, wrong = RowExamples(rows, outcomes).of_label(0)
    assert (missed.name, wrong.name) == ("0", "3")
    pieces = dict(missed.cells[0][1])
    assert pieces["rose"] == "for"
    assert "".join(text for text, _ in missed.cells[0][1]) == "A red rose, red!"
    assert [part.name for part in missed.labels[0].parts if part.is_feature]
    assert dict(wrong.cells[0][1])["blue"] == "against"
