"""What features add to a score adds up to it, in every model of weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from labelweave import LabelGraphClassifier, LowRankClassifier, MaxMarginClassifier, TunedThresholdClassifier
from labelweave.baselines import PLST, BinaryRelevance
from labelweave.datasets import TableVectorizer, make_clique_toy
from labelweave.estimators import TableModel
from labelweave.report.reported_rows import Outcomes, read_rows
from labelweave.report.row_examples import LinearScores, RowExamples

MODELS = {
    "max-margin": MaxMarginClassifier(),
    "cosine": MaxMarginClassifier(kernel="cosine"),
    "low rank": LowRankClassifier(rank=3, threshold="macro_f1"),
    "low rank, single": LowRankClassifier(rank=3, precision="float32"),
    "least squares": BinaryRelevance(),
    "codes": PLST(rank=3),
    "in a wrapper": TunedThresholdClassifier(MaxMarginClassifier(), "macro_f1"),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("is_sparse", [True, False])
def test_parts_add_up_to_the_score(data, name, is_sparse):
    X, Y = data
    X = X if is_sparse else X.toarray()
    model = MODELS[name].fit(X, Y)
    linear = LinearScores(model)
    assert linear.why_not is None
    scores = linear.classifier.decision_function(X[:20])
    for row in range(20):
        for label in range(Y.n_labels):
            found = linear.explain(X[[row]], label)
            total = found.intercept - found.threshold + sum(part.amount for part in found.contributions)
            assert total + found.others == pytest.approx(found.score, abs=1e-12)
            assert found.score == pytest.approx(scores[row, label], abs=1e-5)
            assert found.others == 0
            # only features that the row has, each once
            places = [part.feature for part in found.contributions]
            assert len(set(places)) == len(places)
            assert set(places) <= set(np.flatnonzero(np.asarray(abs(X[[row]]).sum(axis=0)).ravel()))


def test_of_two_classes_each_has_its_sign(data):
    X, Y = data
    y = np.where(Y.to_dense()[:, 0] == 1, "yes", "no")
    linear = LinearScores(MaxMarginClassifier().fit(X, y))
    no, yes = (linear.explain(X[[0]], label) for label in (0, 1))
    assert yes.score == pytest.approx(linear.classifier.decision_function(X[[0]])[0])
    assert no.score == pytest.approx(-yes.score)


def test_a_label_graph_adds_what_other_labels_do():
    data, edges = make_clique_toy(200)
    model = LabelGraphClassifier(graph=edges, tol=1e-2).fit(data.X, data.Y)
    linear, scores = LinearScores(model), model.decision_function(data.X[:5])
    found = linear.explain(data.X[[0]], 0)
    own = found.intercept + sum(part.amount for part in found.contributions)
    assert own == pytest.approx(float(data.X[0] @ model.coef_[0]) + model.intercept_[0])
    assert found.others == pytest.approx(scores[0, 0] - own)
    assert found.others != 0


def test_lines_of_an_example_add_up(data):
    X, Y = data
    model = LowRankClassifier(rank=3, threshold="f1").fit(X, Y)
    scores = model.decision_function(X)
    outcomes = Outcomes(Y, _sparse(scores > 0), scores, np.arange(len(Y)), np.arange(7))
    examples = RowExamples(read_rows(model, X, None), outcomes).across(10)
    assert len(examples) == 10
    for row in examples:
        for label in row.labels:
            assert sum(part.amount for part in label.parts) == pytest.approx(label.total)
            assert label.total == pytest.approx(label.number)


def _sparse(table):
    import scipy.sparse as sp

    return sp.csr_array(table.astype(np.int8))


def test_words_are_marked_in_the_text():
    frame = pd.DataFrame(
        {"text": ["A red rose, red!", "a blue sea", "the rose", "blue ink"], "n": [1.0, 2.0, None, 4.0]}
    )
    vectorizer = TableVectorizer(text="text", numeric="n", missing_numeric="mean").fit(frame)
    flower = MaxMarginClassifier(C=10).fit(vectorizer.transform(frame), [[1], [0], [1], [0]])
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
