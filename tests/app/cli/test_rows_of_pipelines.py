"""What the command line asks of scikit-learn's pipelines, and counts of labels that a model does not know."""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from labelweave import BinaryRelevance, KernelLogisticClassifier, LabelMatrix
from labelweave.app.cli.model_rows import _unknown_counts
from labelweave.app.cli.pipeline_rows import _chosen, _words, as_taken
from labelweave.app.cli.program import _unwound_at_sigterm
from labelweave.datasets import LabeledData

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
