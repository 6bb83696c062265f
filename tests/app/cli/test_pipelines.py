"""Commands read pipelines saved by ``labelweave.save``: matrices, frames of columns, texts."""

import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import labelweave
from labelweave import (
    BinaryRelevance,
    KernelLogisticClassifier,
    LabelMatrix,
    LowRankClassifier,
    MaxMarginClassifier,
    TunedThresholdClassifier,
    datasets,
    metrics,
)
from labelweave.app.cli.model_rows import _unknown_counts
from labelweave.app.cli.pipeline_rows import _chosen, _words, as_taken
from labelweave.app.cli.program import _unwound_at_sigterm
from labelweave.datasets import LabeledData

RANDOM = np.random.default_rng(0)
N = 80
WORDS = RANDOM.choice(["slow", "fast", "broken", "login", "invoice", "page"], (N, 4))
FRAME = pd.DataFrame(
    {
        "title": [" ".join(row) for row in WORDS],
        "channel": RANDOM.choice(["mail", "phone", ""], N),
        "minutes": np.where(RANDOM.random(N) < 0.2, np.nan, RANDOM.integers(1, 90, N)),
    }
)
Y = pd.DataFrame(
    {word: [int(word in title.split()) for title in FRAME["title"]] for word in ("slow", "login")}
)
COLUMNS = make_column_transformer(
    (TfidfVectorizer(), "title"),
    (OneHotEncoder(), ["channel"]),
    (make_pipeline(SimpleImputer(), StandardScaler()), ["minutes"]),
)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "tickets.csv"
    FRAME.assign(**Y).rename_axis("number").to_csv(path)
    return path


def _saved(model, tmp_path):
    labelweave.save(model, tmp_path / "model.lw")
    return tmp_path / "model.lw"


def _sets(done):
    rows = done.records
    return [sorted(label["label"] for label in row["labels"]) for row in rows]


def _wanted(predicted):
    return [
        sorted(Y.columns[row > 0])
        for row in np.asarray(predicted.toarray() if sp.issparse(predicted) else predicted)
    ]


LABELS = "--label-column slow --label-column login"
CASES = {
    "columns": (make_pipeline(COLUMNS, MaxMarginClassifier()), FRAME),
    "texts": (make_pipeline(TfidfVectorizer(), MaxMarginClassifier()), FRAME["title"].tolist()),
    "wrapper inside": (make_pipeline(COLUMNS, TunedThresholdClassifier(MaxMarginClassifier())), FRAME),
    "wrapper around": (TunedThresholdClassifier(make_pipeline(COLUMNS, MaxMarginClassifier())), FRAME),
}


@pytest.mark.parametrize("name", CASES)
def test_tables(run, tmp_path, table, name):
    model, X = CASES[name]
    model.fit(X, Y)
    path = _saved(model, tmp_path)
    text = ["--text", "title"] if name == "texts" else []
    assert _sets(run("predict", path, table, *text)) == _wanted(model.predict(X))
    done = run("evaluate", path, table, *LABELS.split(), *text, "--json")
    f1 = metrics.f1_score(Y, model.predict(X), average="micro")
    assert done.json["micro_f1"] == pytest.approx(f1)
    done = run("inspect", path)
    assert ("TfidfVectorizer" if name == "texts" else "ColumnTransformer") in done.out
    assert "MaxMarginClassifier" in done.out
    told = run("inspect", path, "--json").json
    assert told["labels"] == ["slow", "login"]
    assert len(told["steps_before"]) == 1
    shown = run("inspect", path, "--label", "slow")
    assert name == "wrapper around" or "slow" in shown.out.split("against")[0]


def test_a_text_column_is_found_where_there_is_one(run, tmp_path):
    model = make_pipeline(TfidfVectorizer(), MaxMarginClassifier()).fit(FRAME["title"], Y)
    path = _saved(model, tmp_path)
    alone = tmp_path / "alone.csv"
    titles = [f"{title} {number} of many" for number, title in enumerate(FRAME["title"])]
    pd.DataFrame({"title": titles}).to_csv(alone, index=False)
    two = tmp_path / "two.csv"
    pd.DataFrame({"title": titles, "again": titles[::-1]}).to_csv(two, index=False)
    assert _sets(run("predict", path, alone)) == _wanted(model.predict(titles))
    assert "name one with --text" in run("predict", path, two, code=2).err


def test_decide_keeps_the_steps(run, tmp_path, table):
    model = CASES["columns"][0].fit(FRAME, Y)
    path, out = _saved(model, tmp_path), tmp_path / "decided.lw"
    run("decide", path, table, *LABELS.split(), "--tune-threshold", "macro_f1", "--out", out)
    whole = labelweave.load(out)
    assert _sets(run("predict", out, table)) == _wanted(whole.predict(FRAME))
    page = tmp_path / "page.html"
    run("report", out, table, *LABELS.split(), "--out", page, "-q")
    assert "broken" in page.read_text()


@pytest.mark.parametrize("form", ["arff", "svm"])
def test_matrices(run, tmp_path, form):
    data = datasets.make_text_like(60, 30, 3, labels_per_row=1.5, words_per_row=8, random_state=0)
    path = tmp_path / f"rows.{form}"
    if form == "svm":
        datasets.write_svmlight(data, path)
    else:
        names = [f"word {number}" for number in range(30)]
        named = datasets.LabeledData(
            data.X, LabelMatrix(data.Y.positives, None, list("abc")), np.array(names)
        )
        datasets.write_mulan(named, path, path.with_suffix(".xml"))
    y = data.Y if form == "svm" else named.Y
    model = make_pipeline(StandardScaler(with_mean=False), LowRankClassifier(rank=2)).fit(data.X, y)
    done = run("evaluate", _saved(model, tmp_path), path, "--json")
    f1 = metrics.f1_score(data.Y, model.predict(data.X), average="micro")
    assert done.json["micro_f1"] == pytest.approx(f1)


def test_refusals(run, tmp_path, table):
    path = _saved(CASES["columns"][0].fit(FRAME, Y), tmp_path)
    few = tmp_path / "few.csv"
    FRAME[["title", "channel"]].to_csv(few, index=False)
    assert "no column 'minutes'" in run("predict", path, few, code=2).err
    other = make_pipeline(StandardScaler(), LogisticRegression()).fit(
        RANDOM.normal(size=(9, 2)), [0, 1, 1] * 3
    )
    with pytest.raises(TypeError, match="LogisticRegression"):
        _saved(other, tmp_path)
    scaler = tmp_path / "scaler.lw"
    try:
        labelweave.save(make_pipeline(StandardScaler()).fit([[1.0], [2.0]]), scaler)
    except (TypeError, ValueError):
        return
    assert "classifier" in run("predict", scaler, table, code=2).err


NAMES = ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ("b", ["b"]), (["a", "d"], ["a", "d"]), ([0, 2], ["a", "c"]), (2, ["c"]), (slice(1, 3), ["b", "c"]),
        (slice("b", "d"), ["b", "c", "d"]), (slice(None, "b"), ["a", "b"]), (slice("c", None), ["c", "d"]),
        ([True, False, False, True], ["a", "d"]),
    ],
)  # fmt: skip
def test_columns_of_a_step_by_name_number_and_range(columns, names):
    assert _chosen(columns, NAMES) == names


def test_kinds_of_columns_are_read_off_the_steps():
    frame = pd.DataFrame({"a": ["x", "y"], "b": ["", "z"], "c": [1.0, 2.0], "d": ["w", "v"]})
    encoder = OneHotEncoder().fit(frame[["a", "b"]])
    assert _words(encoder, ["a", "b"]) == {"a": "category", "b": "text"}
    assert _words(StandardScaler().fit(frame[["c"]]), ["c"]) == {"c": "number"}
    filled = SimpleImputer(strategy="most_frequent").fit(frame[["a"]].astype(object))
    assert _words(filled, ["a"]) == {"a": "category"}
    both = FeatureUnion([("one", OneHotEncoder()), ("two", "passthrough")]).fit(frame[["a"]])
    assert _words(make_pipeline("passthrough", both), ["a"]) == {"a": "category"}
    parts = make_column_transformer(
        (OneHotEncoder(), ["a"]), ("drop", ["b"]), (TfidfVectorizer(token_pattern="."), "d"),
        ("passthrough", ["c"]),
    ).fit(frame)  # fmt: skip
    assert _words(parts, NAMES) == {"a": "category", "b": "number", "c": "number", "d": "text"}


def test_rows_are_handed_over_as_pipelines_take_them():
    matrix, y = np.arange(6.0).reshape(3, 2), [0, 1, 0]
    named = make_pipeline(StandardScaler(), RidgeClassifier()).fit(
        pd.DataFrame(matrix, columns=["a", "b"]), y
    )
    assert list(as_taken(named, matrix).columns) == ["a", "b"]
    plain = make_pipeline(StandardScaler(), RidgeClassifier()).fit(matrix, y)
    assert as_taken(plain, matrix) is matrix
    model = RidgeClassifier().fit(matrix, y)
    assert as_taken(model, matrix) is matrix
    texts = make_pipeline(FeatureUnion([("words", TfidfVectorizer())]), RidgeClassifier())
    texts.fit(["red rose", "blue sea", "red sea"], y)
    assert as_taken(texts, pd.DataFrame({"t": ["red", "blue"]})) == ["red", "blue"]


def test_labels_and_classes_that_a_model_does_not_know_are_counted():
    X = np.eye(4)
    known = BinaryRelevance().fit(X, LabelMatrix.from_any([[1, 0], [0, 1], [1, 1], [0, 0]], ["a", "b"]))
    truth = LabelMatrix.from_any([[1, 1, 0], [0, 1, 1], [0, 1, 0], [0, 0, 0]], ["a", "c", "d"])
    assert _unknown_counts(known, LabeledData(X, truth)) == {"c": 3, "d": 1}
    assert _unknown_counts(known, LabeledData(X, LabelMatrix.from_any(np.eye(4)[:, :2]))) == {}
    classes = KernelLogisticClassifier(hyperparameters="fixed").fit(X, ["a", "b", "c", "a"])
    one_each = LabelMatrix.from_any(np.eye(4), ["a", "b", "c", "other"])
    assert _unknown_counts(classes, LabeledData(X, one_each)) == {"other": 1}


def test_threads_other_than_the_first_leave_signals_alone():
    done = []

    def work():
        with _unwound_at_sigterm():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
