"""Columns of classes as labels: reading, joining, and matching those of a model."""

import numpy as np
import pandas as pd
import pytest

from labelweave import LabelMatrix, MaxMarginClassifier, read_class_columns
from labelweave.labels.class_columns import joined_columns, labels_of_columns
from labelweave.labels.targets import read_labels

NAN = np.nan


@pytest.mark.parametrize(
    "y",
    [
        np.array([[0, 1], [1, 0]]),
        np.array([[-1, 1], [1, -1.0]]),
        np.array([[0, NAN], [1, 0]]),
        np.array([["0", "1"], ["1", "nan"]]),
        pd.DataFrame({"a": ["yes", "no"], "b": ["no", None]}),
        pd.DataFrame({"a": ["0", "1"], "b": ["1", "0"]}),
        pd.DataFrame({"a": [True, False]}),
    ],
)
def test_tables_of_labels_are_read_as_labels(y):
    found, known = read_labels(y), LabelMatrix.from_any(y)
    assert found.class_columns is None
    np.testing.assert_array_equal(found.to_dense(), known.to_dense())


@pytest.mark.parametrize("form", [np.array, pd.DataFrame, list])
def test_numbers_that_are_read_as_classes_are_said(form):
    y = form([[0, 7], [1, 3], [0, 3], [1, 7]])
    with pytest.warns(
        UserWarning, match=r"In Y column '1' holds numbers such as 3, so .* Y > 0 makes labels"
    ):
        MaxMarginClassifier().fit(np.eye(4), y)
    MaxMarginClassifier().fit(np.eye(4), read_class_columns(y))
    MaxMarginClassifier().fit(np.eye(4), pd.DataFrame(y).astype("category"))


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.array([[0, 1], [2, 0]]), "is 2"),  # one entry, treated as a mistake
        (np.array([[0, 0.5], [0.25, 3]]), "is 0.5"),
        (np.array([[0, -1], [1, 0]]), "mixes two codings"),
        (pd.DataFrame({"a": [pd.Timestamp(0)] * 2, "b": ["x", "y"]}), "Y has entries that are not numbers"),
    ],
)
def test_what_is_neither_is_refused_as_labels_are(y, words):
    with pytest.raises(ValueError, match=words):
        read_labels(y)


@pytest.mark.parametrize(
    ("y", "names"),
    [
        (np.array([[0, 3], [2, 5], [0, 3]]), ["0=0", "0=2", "1=3", "1=5"]),
        (np.array([[0.0, 3], [2, 5], [0, NAN]]), ["0=0", "0=2", "1=3", "1=5"]),
        (np.array([["x", "1"], ["y", "2"], ["x", "1"]]), ["0=x", "0=y", "1=1", "1=2"]),
        (pd.DataFrame({"a": ["x", None, "y"], "b": [1, 2, 1]}), ["a=x", "a=y", "b=1", "b=2"]),
        (pd.DataFrame({"a": pd.array([4, None, 5], "Int64")}), ["a=4", "a=5"]),
        (pd.DataFrame({7: ["x", "x", "y"]}).astype("category"), ["7=x", "7=y"]),
        (np.ma.array([[4, 5], [5, 5], [4, 4]], mask=[[0, 1], [0, 0], [0, 0]]), ["0=4", "0=5", "1=4", "1=5"]),
    ],
)
def test_classes_become_labels(y, names):
    labels = read_labels(y)
    assert labels.names.tolist() == names
    table = labels.to_dense()
    for part in labels.class_columns.slices:
        assert set(np.nansum(table[:, part], axis=1)) <= {0.0, 1.0}
        assert (np.isnan(table[:, part]).all(axis=1) == np.isnan(table[:, part]).any(axis=1)).all()


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries(library):
    module = pytest.importorskip(library)
    cells = {"a": ["x", None, "y"], "b": [4, 5, None]}
    labels = read_labels(module.DataFrame(cells) if library == "polars" else module.table(cells))
    assert labels.names.tolist() == ["a=x", "a=y", "b=4", "b=5"]
    assert labels.observed_counts().tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (pd.DataFrame({"a": ["x", 1], "b": ["p", "q"]}), "mixes entries of the types int, str"),
        (pd.DataFrame({"a": [f"text {k}" for k in range(50)]}), "50 distinct values in 50 rows"),
        ([["x"], ["y", "z"]], "shape"),
    ],
)
def test_columns_that_hold_no_classes(y, words):
    with pytest.raises(ValueError, match=words):
        read_class_columns(y)


def test_rows_keep_their_columns():
    labels = read_class_columns([["x", 1], [None, 2], ["y", 1]])
    part = labels[[2, 1]]
    assert part.class_columns is labels.class_columns
    np.testing.assert_array_equal(part.to_dense(), labels.to_dense()[[2, 1]])


def test_joined_columns_have_the_classes_of_both():
    tables = [[["b", 1], [None, 2]], [["a", 3], ["c", 1]]]
    joined = joined_columns(*(read_class_columns(table) for table in tables))
    whole = read_class_columns(tables[0] + tables[1])
    assert joined.names.tolist() == whole.names.tolist()
    np.testing.assert_array_equal(joined.to_dense(), whole.to_dense())


@pytest.mark.parametrize(
    ("other", "words"), [([["a"]], "has the columns|y has the columns"), ([[1, 1]], "mixes")]
)
def test_other_columns_are_not_joined(other, words):
    with pytest.raises(ValueError, match=words):
        joined_columns(read_class_columns([["b", 1]]), read_class_columns(other))


def test_columns_of_a_model_match_by_name_and_unknown_classes_come_last():
    known = read_class_columns(pd.DataFrame({"a": ["x", "y"], "b": [1, 2]})).class_columns
    later = pd.DataFrame({"b": [2.0, NAN], "a": ["z", "y"]})
    labels = labels_of_columns(later, known)
    assert labels.names.tolist() == ["a=x", "a=y", "b=1", "b=2", "a=z"]
    np.testing.assert_array_equal(labels.to_dense(), [[0, 0, 0, 1, 1], [0, 1, NAN, NAN, 0]])
    with pytest.raises(ValueError, match="these columns"):
        labels_of_columns(later[["a"]], known)
