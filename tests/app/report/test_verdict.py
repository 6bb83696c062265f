"""The top of the page: a verdict, metrics with a baseline, intervals; and models inside pipelines."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelweave as lw
from labelweave.app.report.label_numbers import label_numbers
from labelweave.app.report.measured import measure
from labelweave.app.report.reported_rows import read_rows
from labelweave.app.report.row_examples import LinearScores
from labelweave.app.report.yardstick import baseline_metrics, intervals, verdict
from labelweave.metrics import score_table


def measured_of(model, X, y):
    return measure(read_rows(model, X, None), y, "error", lambda words: None)


def test_results_come_before_versions(report, model, rows):
    page = report(model, *rows, facts={"Saved by": "labelweave 0.1"})
    order = ["always predicting", "Metrics", "Weak labels", "All labels", "Saved by"]
    places = [page.text.rindex(words) for words in order]
    assert places == sorted(places)
    assert "95 % interval" in page.text
    assert "Baseline" in page.text


def test_the_baseline_is_one_row_of_frequent_labels_for_all(model, rows):
    X, y = rows
    measured = measured_of(model, X, y)
    frequencies = y.positives.toarray().mean(axis=0)
    most = np.argsort(-frequencies, kind="stable")[: round(frequencies.sum())]
    predicted = np.zeros(y.shape, int)
    predicted[:, most] = 1
    expected = score_table(y, np.tile(frequencies, (len(y), 1)), predicted)
    assert baseline_metrics(measured, None) == pytest.approx(expected)


def test_intervals_are_those_of_the_mean_over_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    Y = (X[:, :3] + rng.normal(size=(600, 3)) > 0).astype(int)
    model = lw.MaxMarginClassifier().fit(X[:200], Y[:200])
    measured = measured_of(model, X[200:], Y[200:])
    found = intervals(measured)
    right = (model.predict(X[200:]) == Y[200:]).all(axis=1)  # the error of a mean is known
    half = 1.96 * right.std() / np.sqrt(400)
    low, high = found["subset_accuracy"]
    assert (high - low) / 2 == pytest.approx(half, rel=0.35)
    assert (low + high) / 2 == pytest.approx(right.mean())
    assert set(found) == set(measured.metrics)
    assert intervals(measured) == found  # the same draws


def test_large_tables_have_intervals_of_the_same_width(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 4))
    Y = (X[:, :3] + rng.normal(size=(1200, 3)) > 0).astype(int)
    measured = measured_of(lw.MaxMarginClassifier().fit(X[:200], Y[:200]), X[200:], Y[200:])
    low, high = intervals(measured)["micro_f1"]
    monkeypatch.setattr("labelweave.app.report.yardstick._ENTRIES_A_DRAW", 300 * 3)
    assert np.ptp(intervals(measured)["micro_f1"]) == pytest.approx(high - low, rel=0.4)


@pytest.mark.parametrize("kind", ["labels", "classes"])
def test_draws_of_what_hardly_anything_is_known_of(kind, report):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    model = lw.KernelLogisticClassifier(kernel="linear", hyperparameters="fixed")
    if kind == "labels":
        y = np.where(np.arange(1000)[:, None] < 3, X > [0, 0.5, 1], np.nan)
        page = report(model.fit(X[:100], (X > [0, 0.5, 1])[:100].astype(int)), X, y)
        assert "These numbers are from only 3 rows, so they are imprecise." in page.text
    else:
        y = np.array(["a", "b", "c"], object)[X.argmax(axis=1)]
        model.set_params(taxonomy=lw.Taxonomy.from_nested({"ab": ["a", "b"], "c": None})).fit(
            X[:100], y[:100]
        )
        known_in_part = np.where((np.arange(1000) < 3) | (y == "c"), y, "ab")
        known_in_part[(np.arange(1000) > 3) & (y == "c")] = None
        assert "have only a known group of classes" in report(model, X, known_in_part).text


def test_a_measure_that_only_some_draws_have_has_its_interval():
    values = iter([{"a": 1.0, "b": 0.5}, {"a": 0.5}, *[{"a": 0.5, "b": 0.25}] * 48])
    measured = SimpleNamespace(
        n_counted=9, outcomes=SimpleNamespace(names=["x"]), metrics={"b": 0.4, "a": 0.6},
        metrics_of=lambda part: next(values),
    )  # fmt: skip
    assert list(intervals(measured)) == ["b", "a"]


def test_a_model_of_noise_gets_no_praise():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(300, 3)), rng.random((300, 2)) < 0.5
    model = lw.MaxMarginClassifier().fit(X[:100], Y[:100])
    measured = measured_of(model, X[100:], Y[100:])
    numbers, found = label_numbers(measured.outcomes), intervals(measured)
    said = verdict(measured, numbers, found, baseline_metrics(measured, None))
    assert said[0].startswith(("The model is not clearly better than", "The model is worse than"))
    perfect = dict.fromkeys(measured.metrics, 0.0)
    assert verdict(measured, numbers, found, perfect)[0].startswith("The model is better than always")


def test_balanced_classes_have_a_bar_each(report):
    X = np.random.default_rng(0).normal(size=(200, 4))
    y = np.array(["ant", "bee", "cow", "doe"], object)[np.arange(200) % 4]
    X[np.arange(200), np.arange(200) % 4] += 2
    model = lw.KernelLogisticClassifier(kernel="linear", hyperparameters="fixed").fit(X[:100], y[:100])
    page = report(model, X[100:], y[100:])
    assert "All classes are about equally frequent here: 25 rows each." in page.text
    assert "better than always predicting the most frequent class" in page.text
    assert "against 0.25" in page.text
    assert "no contributions" not in page.text


@pytest.mark.parametrize(
    "model",
    [
        lw.KernelLogisticClassifier(kernel="linear", hyperparameters="fixed"),
        lw.KernelLogisticClassifier(kernel="cosine", hyperparameters="fixed"),
        lw.LowRankClassifier(rank=2),
        lw.LowRankClassifier(rank=2, loss="log_loss"),
    ],
)
def test_contributions_of_linear_models(model, data):
    X, Y = data
    linear = LinearScores(model.fit(X[:200], Y[np.arange(200)]))
    assert linear.why_not is None
    outcomes = measured_of(model, X[200:], Y[np.arange(200, 300)]).outcomes
    for label in range(3):
        found = linear.explain(X[[210]], label, outcomes.scores[10, label], outcomes.thresholds[label])
        assert found.others == 0.0  # the parts sum to the whole
        assert len(found.contributions) == X[[210]].nnz


def test_kernels_have_no_contributions(data):
    X, Y = data
    model = lw.KernelLogisticClassifier(kernel="rbf", hyperparameters="fixed").fit(X[:50], Y[np.arange(50)])
    assert "sums of kernels" in LinearScores(model).why_not


def test_pipelines_of_texts_and_of_frames(report):
    words = np.array(["red rose", "blue sea", "red sea", "green leaf"], object)
    texts = [f"a {words[k % 4]} number{k}" for k in range(40)]
    Y = pd.DataFrame({"red": ["red" in text for text in texts], "sea": ["sea" in text for text in texts]})
    model = make_pipeline(TfidfVectorizer(), lw.MaxMarginClassifier(C=10)).fit(texts, Y.astype(int))
    page = report(model, texts, Y.astype(int), row_names=[f"t{k}" for k in range(40)], examples=2)
    assert "text a" in page.text
    assert "Row t" in page.text
    assert "sea" in page.text
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), [f"r{k}" for k in range(40)], ["u", "v"])
    model = make_pipeline(StandardScaler(), lw.MaxMarginClassifier()).fit(X, Y.astype(int))
    page = report(model, X, lw.LabelMatrix.from_any(Y.astype(int).to_numpy(), ["red", "sea"]))
    assert "Row r" in page.text
    assert "u " in page.text
