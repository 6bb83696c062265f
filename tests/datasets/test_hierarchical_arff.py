import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.datasets import (
    DataFileError,
    LabeledData,
    make_taxonomy,
    read_hierarchical_arff,
    write_hierarchical_arff,
)
from labelweave.labels import LabelMatrix

HEAD = "@relation r\n@attribute f numeric\n@attribute class hierarchical 1,2,1/2,1/2/3\n@data\n"


def write(path, text):
    path.write_text(text, newline="")
    return path


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_classes_include_their_ancestors(tmp_path, ending):
    text = HEAD + "0.5,1/2/3\n1.5,2@1/2,{3}\n2,?\n"
    with pytest.warns(UserWarning, match="1 rows have weights"):
        data = read_hierarchical_arff(write(tmp_path / "t.arff", text.replace("\n", ending)))
    assert list(data.label_names) == ["1", "2", "1/2", "1/2/3"]
    assert data.parents == (("1", "1/2"), ("1/2", "1/2/3"))
    nan = np.nan
    expected = [[1, 0, 1, 1], [1, 1, 1, 0], [nan] * 4]
    np.testing.assert_array_equal(data.Y.to_dense(), expected)
    assert data.X.tolist() == [[0.5], [1.5], [2]]
    np.testing.assert_array_equal(data.weights, [1, 3, 1])
    assert data.Y.positives.indices.dtype == np.int32


def test_class_column_may_come_first_and_inner_nodes_may_be_omitted_of_the_header(tmp_path):
    text = "@relation r\n@attribute class hierarchical a/b/c\n@attribute f {x,y}\n@data\na/b/c,y\n"
    data = read_hierarchical_arff(write(tmp_path / "t.arff", text))
    assert list(data.label_names) == ["a/b/c", "a/b", "a"]
    assert data.X.tolist() == [[0, 1]]


@settings(max_examples=30)
@given(seed=st.integers(0, 99), where=st.floats(0, 1))
def test_round_trip_and_cuts(tmp_path, seed, where):
    data = make_taxonomy(4, 2, depth=1 + seed % 3, random_state=seed)
    path = tmp_path / "t.arff"
    write_hierarchical_arff(data, path)
    again = read_hierarchical_arff(path)
    np.testing.assert_array_equal(again.X, data.X)
    assert (again.Y.positives != data.Y.positives).nnz == 0
    assert again.parents == data.parents
    content = path.read_bytes()
    path.write_bytes(content[: int(where * len(content))])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            part = read_hierarchical_arff(path)
        except DataFileError:
            return
    np.testing.assert_array_equal(part.X, data.X[: len(part)])
    sure = len(part) - bool(caught)  # a last class that may be truncated causes a warning
    assert (part.Y.positives[:sure] != data.Y.positives[:sure]).nnz == 0


def test_a_missing_last_line_end_is_warned_of(tmp_path):
    path = write(tmp_path / "t.arff", HEAD + "0.5,1/2/3")
    with pytest.warns(UserWarning, match="t.arff:5: the last row has no line end"):
        assert read_hierarchical_arff(path).Y.to_dense().tolist() == [[1, 0, 1, 1]]


def test_missing_features_are_nan_and_written_again(tmp_path):
    data = read_hierarchical_arff(write(tmp_path / "t.arff", HEAD + "?,1\n0.5,2\n"))
    np.testing.assert_array_equal(data.X, [[np.nan], [0.5]])
    write_hierarchical_arff(data, tmp_path / "again.arff")
    np.testing.assert_array_equal(read_hierarchical_arff(tmp_path / "again.arff").X, data.X)


@pytest.mark.parametrize(
    ("Y", "names", "parents", "words"),
    [
        ([[0, 1]], ["a", "a/b"], (("a", "a/b"),), "without all its ancestors"),
        ([[0, 0]], ["a", "a/b"], (("a", "a/b"),), "no positive label"),
        ([[1, np.nan]], ["a", "a/b"], (("a", "a/b"),), "partially observed"),
        ([[1, 1]], ["a", "b"], (("a", "b"),), "not paths"),
        ([[1, 1]], ["a", "a/b c"], (("a", "a/b c"),), "cannot be written"),
        ([[1, 1]], ["a", "a/b"], None, "parents"),
        ([[1, 1, 1]], ["a", "b", "c"], (("a", "c"), ("b", "c")), "needs a tree, but node 'c' has two"),
    ],
)
def test_what_the_format_cannot_say(tmp_path, Y, names, parents, words):
    data = LabeledData(sp.csr_array([[1.0]]), LabelMatrix.from_any(Y, names), parents=parents)
    with pytest.raises(ValueError, match=words):
        write_hierarchical_arff(data, tmp_path / "t.arff")
    assert not list(tmp_path.iterdir())


EDGES = (
    "@RELATION 'go'\n@ATTRIBUTE f  numeric\n@ATTRIBUTE g {w,n}\n"
    "@ATTRIBUTE class  hierarchical root/a,root/b,a/c,b/c,c/d\n@DATA\n"
)


def test_edges_make_a_graph(tmp_path):
    data = read_hierarchical_arff(write(tmp_path / "t.arff", EDGES + "0.5,w,d\n?,n,a@b\n1,?,?\n"))
    assert list(data.label_names) == ["root", "a", "b", "c", "d"]
    assert data.taxonomy.parents == {"a": ("root",), "b": ("root",), "c": ("a", "b"), "d": ("c",)}
    expected = [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [np.nan] * 5]
    np.testing.assert_array_equal(data.Y.to_dense(), expected)
    np.testing.assert_array_equal(data.X, [[0.5, 1, 0], [np.nan, 0, 1], [1, 0, 0]])


def test_entries_of_two_parts_are_paths_where_rows_name_paths(tmp_path):
    head = HEAD.replace("1,2,1/2,1/2/3", "1/2,1/3")
    data = read_hierarchical_arff(write(tmp_path / "t.arff", head + "0.5,1/2\n1,1/3@1/2\n"))
    assert list(data.label_names) == ["1/2", "1/3", "1"]
    assert data.Y.to_dense().tolist() == [[1, 0, 1], [1, 1, 1]]


def test_repeated_edges_count_once(tmp_path):
    text = EDGES.replace("b/c,c/d", "b/c,c/d,a/c,b/c") + "0.5,w,c@c\n"
    with pytest.warns(UserWarning, match="2 of 7 listed values are duplicates"):
        data = read_hierarchical_arff(write(tmp_path / "t.arff", text))
    assert data.Y.to_dense().tolist() == [[1, 1, 1, 1, 0]]
