"""Lists of tags as targets, from lists, Series and columns of pandas, polars and pyarrow."""

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from labelweave import LabelMatrix, metrics
from labelweave.splits import IterativeStratifiedKFold, stratified_train_test_split

ROWS = [["sea", "blue"], ["red"], None, [], ["red", "blue", "red"]]
TABLE = [[1, 0, 1], [0, 1, 0], [np.nan] * 3, [0, 0, 0], [1, 1, 0]]
FORMS = {
    "lists": ROWS,
    "tuples": [row if row is None else tuple(row) for row in ROWS],
    "sets": [row if row is None else set(row) for row in ROWS],
    "frozensets": [row if row is None else frozenset(row) for row in ROWS],
    "array": np.array([*ROWS, None], object)[:-1],
    "Series": pd.Series(ROWS),
    "NaN": pd.Series([row if row is not None else np.nan for row in ROWS]),
    "NA": pd.Series([row if row is not None else pd.NA for row in ROWS]),
    "split": pd.Series(["sea,blue", "red", None, "", "red, blue ,red"]).str.split(","),
    "pandas of arrow": pd.Series(ROWS, dtype=pd.ArrowDtype(pa.list_(pa.string()))),
    "pandas frame": pd.DataFrame({"tags": ROWS}),
    "polars": pl.Series("tags", ROWS),
    "polars frame": pl.DataFrame({"tags": ROWS}),
    "arrow": pa.array(ROWS),
    "chunked": pa.chunked_array([ROWS[:2], ROWS[2:]]),
    "arrow table": pa.table({"tags": ROWS}),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_lists_is_read_alike(form):
    labels = LabelMatrix.from_any(FORMS[form])
    assert labels.names.tolist() == ["blue", "red", "sea"]
    np.testing.assert_array_equal(labels.to_dense(), TABLE)


def test_numbers_are_tags_in_sets_and_columns_and_a_table_in_nested_lists():
    for given in ([{7, 10}, {10}, set()], pd.Series([[7, 10], [10], []]), pl.Series([[7, 10], [10], []])):
        labels = LabelMatrix.from_any(given)
        assert labels.names.tolist() == ["7", "10"]
        np.testing.assert_array_equal(labels.to_dense(), [[1, 1], [0, 1], [0, 0]])
    assert LabelMatrix.from_any([[1, 0], [0, 1]]).names is None
    floats = pd.Series([np.array([7.0, 10.0]), np.array([10.0])])
    assert LabelMatrix.from_any(floats).names.tolist() == ["7", "10"]


def test_strange_names_stay_as_they_are():
    names = ["a,b", "=1+1", "ünï", "line\nbreak", "x" * 300, "nan", "None", "7"]
    labels = LabelMatrix.from_any([{name} for name in names])
    assert sorted(names) == labels.names.tolist()
    assert (labels.to_dense().sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([["a"], "a,b"], "Y at row 1 is the text 'a,b'"),
        (pd.Series([["a"], 3]), "Y at row 1 is of type int where other rows are lists"),
        (pd.Series([["a"], {"b": 1}]), "Y at row 1 is of type dict"),
        ([["a"], ["b", None]], "Y at row 1 has a tag that is missing"),
        ([["a"], ["b", ["c"]]], "Y at row 1 has a tag that is of type list"),
        ([["a"], ["b", b"c"]], "Y at row 1 has a tag that is of type bytes"),
        ([["a"], {np.bytes_(b"c")}], "Y at row 1 has a tag that is of type bytes_"),
        ([["a"], {np.datetime64("2020-01-01")}], "Y at row 1 has a tag that is of type datetime64"),
        ([{1, "a"}, {"1"}], "The tag '1' occurs as text and as a number"),
        ([["0", "1"], ["1", "1"]], "the tags '0', '1'"),
        (pd.Series([[0, 1, 0], [1, 1, 0]]), "only the tags 0, 1"),
        ([[1], [0, 1]], "rows of different lengths"),
        ([[1, 2], [3, 4]], "Y at row 0, label 1 is 2"),
        (pl.LazyFrame({"a": [1]}), "call collect"),
        ({"a": [1]}, "not 'dict'"),
        (pa.table({"a": ["x"]}), "entries that are not numbers"),
    ],
)
def test_what_is_no_list_of_tags_is_refused_in_a_sentence(given, message):
    with pytest.raises(ValueError, match=message):
        LabelMatrix.from_any(given)


def test_names_may_be_given():
    labels = LabelMatrix.from_any([["b"], None], ["b", "c"])
    np.testing.assert_array_equal(labels.to_dense(), [[1, 0], [np.nan, np.nan]])
    with pytest.raises(ValueError, match="Y at row 0 has the tag 'b'"):
        LabelMatrix.from_any([["b"]], ["c"])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_numbers_and_booleans(frame):
    labels = LabelMatrix.from_any(frame({"a": [1, 0, None], "b": [True, None, False]}))
    assert labels.names.tolist() == ["a", "b"]
    np.testing.assert_array_equal(labels.to_dense(), [[1, 1], [0, np.nan], [np.nan, 0]])


def test_a_label_matrix_is_an_array():
    labels = LabelMatrix.from_any(ROWS)
    np.testing.assert_array_equal(np.asarray(labels), TABLE)
    assert np.asarray(labels[:2], dtype=int).tolist() == [[1, 0, 1], [0, 1, 0]]
    with pytest.raises(ValueError, match="unobserved entries, which type int64 cannot"):
        np.asarray(labels, dtype=int)
    with pytest.raises(ValueError, match="copy=False"):
        np.asarray(labels, copy=False)


def test_tags_0_and_1_are_tags_where_others_are_known():
    assert metrics.f1_score([{0, 3}, {1, 7}], [{1}, {0}]) == 0.0
    assert metrics.f1_score([{0, 3}, {1, 7}], [{0}, {1}]) == pytest.approx(4 / 6)
    labels = LabelMatrix.from_any(pd.Series([[0], [1, 0]]), list("012"))
    np.testing.assert_array_equal(labels.to_dense(), [[1, 0, 0], [1, 1, 0]])
    shares = pd.Series([[0.2, 0.8, 0], [1, 0.5, 0]])
    for table in (pd.Series([[0, 1, 0], [1, 1, 0]]), [["0", "1", "0"], None], shares):
        with pytest.raises(ValueError, match="like a table of numbers"):
            LabelMatrix.from_any(table, list("012"))
    with pytest.raises(ValueError, match="like a table of numbers"):
        metrics.f1_score([{0}, {1}], [{1}, {0}])


def test_numbers_of_any_size_are_tags():
    assert LabelMatrix.from_any([{10**400}, {Fraction(1, 2), np.float32(3)}]).words == [
        "1/2",
        "3",
        str(10**400),
    ]


def test_metrics_of_lists_count_the_tags_of_either():
    true, predicted = [["a", "b"], ["b"], None], [["a"], ["b", "c"], ["c"]]
    assert metrics.f1_score(true, predicted) == pytest.approx(2 * 2 / (3 + 3))
    assert metrics.hamming_loss(true, predicted) == pytest.approx(2 / 6)
    assert metrics.subset_accuracy(LabelMatrix.from_any(true, list("abc")), predicted) == 0.0
    assert metrics.score_table(true, Y_pred=predicted)["micro_f1"] == pytest.approx(2 / 3)


def test_lists_are_split_by_their_tags():
    tags = pd.Series([["a"], ["a"], ["b"], ["b"]])
    held = [sorted(tags[test].str[0]) for _, test in IterativeStratifiedKFold(2).split(tags, tags)]
    assert held == [["a", "b"], ["a", "b"]]
    *_, test = stratified_train_test_split(np.zeros((4, 1)), tags.tolist(), test_size=2, random_state=0)
    assert sorted(test) == [["a"], ["b"]]
