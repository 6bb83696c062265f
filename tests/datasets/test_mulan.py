from __future__ import annotations

import gzip
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.datasets import DataFileError, LabeledData, read_any, read_mulan, write_mulan
from labelweave.labels import LabelMatrix

FILES = settings(max_examples=40)

DENSE = """% a comment
@relation 'toy'

@attribute 'size in \\'cm\\'' numeric
@ATTRIBUTE "a ""b" REAL
@attribute color {red,'light blue',green}
@attribute flag {1,0}
@attribute tagA {0,1}
@attribute tagB {0, 1}
@DATA
1.5,-2e-1,'light blue',1,0,1

% between rows
 3 , 4 , red , 0 , ? , 0
"""

SPARSE = """@relation 'toy: -C 2'
@attribute L0 {0,1}
@attribute L1 {0,1}
@attribute word numeric
@attribute kind {a,'b c'}
@attribute other {0,1}
@data
{0 1,2 0.5, 4 1}
{}
{4 1,3 'b c',1 ?}
"""


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def same(left: LabeledData, right: LabeledData) -> bool:
    def dense(X):
        return X.toarray() if sp.issparse(X) else X

    return (
        np.array_equal(dense(left.X), dense(right.X))
        and np.array_equal(left.Y.to_dense(), right.Y.to_dense(), equal_nan=True)
        and list(left.label_names) == list(right.label_names)
        and list(left.feature_names) == list(right.feature_names)
        and left.parents == right.parents
    )


def test_dense_rows_with_quotes_nominals_comments_and_missing_labels(tmp_path):
    text = DENSE.replace('"a ""b"', '"a \\"b"')
    for ending in ("\n", "\r\n"):
        path = write(tmp_path / "toy.arff", text.replace("\n", ending))
        data = read_mulan(path, n_labels=2)
        assert list(data.feature_names) == [
            "size in 'cm'",
            'a "b',
            "color=red",
            "color=light blue",
            "color=green",
            "flag",
        ]
        np.testing.assert_array_equal(data.X, [[1.5, -0.2, 0, 1, 0, 1], [3, 4, 1, 0, 0, 0]])
        np.testing.assert_array_equal(data.Y.to_dense(), [[0, 1], [np.nan, 0]])
        assert list(data.label_names) == ["tagA", "tagB"]


def test_sparse_rows_take_omitted_cells_for_the_first_value(tmp_path):
    data = read_mulan(write(tmp_path / "toy.arff", SPARSE))
    assert sp.issparse(data.X)
    assert data.X.indices.dtype == np.int32
    assert list(data.feature_names) == ["word", "kind=a", "kind=b c", "other"]
    np.testing.assert_array_equal(data.X.toarray(), [[0.5, 1, 0, 1], [0, 1, 0, 0], [0, 0, 1, 1]])
    np.testing.assert_array_equal(data.Y.to_dense(), [[1, 0], [0, 0], [0, np.nan]])


def test_sparse_nominal_declared_one_first_means_one_where_omitted(tmp_path):
    text = "@relation r\n@attribute f numeric\n@attribute y {1,0}\n@data\n{0 2}\n{1 0}\n{1 1}\n{1 ?}\n"
    data = read_mulan(write(tmp_path / "t.arff", text), n_labels=1)
    np.testing.assert_array_equal(data.Y.to_dense().ravel(), [1, 0, 1, np.nan])


@pytest.mark.parametrize(("relation", "names"), [("'x: -C 1'", ["a"]), ("'x: -C -1'", ["c"]), ("x", None)])
def test_label_columns_from_the_relation(tmp_path, relation, names):
    attributes = "".join(f"@attribute {name} {{0,1}}\n" for name in "abc")
    text = f"@relation {relation}\n{attributes}@data\n0,1,1\n"
    path = write(tmp_path / "t.arff", text)
    if names is None:
        with pytest.raises(ValueError, match=r"The label columns of .* are unknown"):
            read_mulan(path)
        assert list(read_mulan(path, n_labels=2, labels="start").label_names) == ["a", "b"]
    else:
        assert list(read_mulan(path).label_names) == names


def test_xml_names_nest(tmp_path):
    arff = write(
        tmp_path / "t.arff",
        "@relation r\n@attribute up {0,1}\n@attribute f numeric\n@attribute 'do wn' {0,1}\n@data\n1,0.5,0\n",
    )
    xml = write(
        tmp_path / "t.xml",
        '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="up">\n<label name="do wn"/>'
        "</label></labels>",
    )
    data = read_mulan(arff, xml)
    assert list(data.label_names) == ["up", "do wn"]
    assert data.parents == (("up", "do wn"),)
    assert data.X.tolist() == [[0.5]]


HEAD = "@relation r\n@attribute f numeric\n@attribute g numeric\n@attribute y {0,1}\n@data\n"


def test_numbers_that_are_missing_are_nan_in_every_kind_of_file(tmp_path):
    for row, there in (("1,?,0", 1.0), ("{1 ?}", 0.0)):
        data = read_mulan(write(tmp_path / "t.arff", f"{HEAD}{row}\n"), n_labels=1)
        X = data.X.toarray() if sp.issparse(data.X) else data.X
        np.testing.assert_array_equal(X, [[there, np.nan]])
        write_mulan(data, tmp_path / "again.arff", tmp_path / "again.xml")
        again = read_mulan(tmp_path / "again.arff", tmp_path / "again.xml").X
        np.testing.assert_array_equal(again.toarray() if sp.issparse(again) else again, X)


def test_yes_and_no_are_one_column_and_may_be_labels(tmp_path):
    kinds = ("motif {YES,NO}", "hue {red,blue}", "y {false,true}")
    head = "".join(["@relation r\n", *(f"@attribute {kind}\n" for kind in kinds), "@data\n"])
    for rows in ("YES,red,true\nNO,?,false\n?,blue,?\n", "{2 true}\n{0 NO,1 ?}\n{0 ?,1 blue,2 ?}\n"):
        data = read_mulan(write(tmp_path / "t.arff", head + rows), n_labels=1)
        assert list(data.feature_names) == ["motif", "hue=red", "hue=blue"]
        X = data.X.toarray() if sp.issparse(data.X) else data.X
        np.testing.assert_array_equal(X, [[1, 1, 0], [0, 0, 0], [np.nan, 0, 1]])
        np.testing.assert_array_equal(data.Y.to_dense().ravel(), [1, 0, np.nan])
    before = ["motif=YES", "motif=NO", "hue=red", "hue=blue"]  # as a model of other rows may know them
    again = read_mulan(tmp_path / "t.arff", n_labels=1, feature_names=before)
    assert list(again.feature_names) == before
    assert again.X.toarray()[1].tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("template", ["{},{},{},{}\n", "{{0 {},1 {},2 {},3 {}}}\n"])
def test_known_features_are_taken_by_name_in_their_order(tmp_path, template):
    kinds = ("hue {violet,blue,red}", "motif {no,yes}", "more numeric", "f numeric")
    head = "".join(["@relation r\n", *(f"@attribute {kind}\n" for kind in kinds), "@data\n"])
    rows = template.format("red", "yes", 3, 5) + template.format("violet", "no", 3, 6)
    path, known = write(tmp_path / "t.arff", head + rows), ["f", "hue=red", "hue=green", "motif"]
    data = read_mulan(path, labels="none", feature_names=known)
    assert data.feature_names.tolist() == known
    X = data.X.toarray() if sp.issparse(data.X) else data.X
    np.testing.assert_array_equal(X, [[5, 1, 0, 1], [6, 0, 0, 0]])
    assert data.Y.n_labels == 0
    assert read_mulan(path, labels="none").X.shape == (2, 6)
    for name in ("g", "more=1", "hues=red"):
        with pytest.raises(DataFileError, match=f"found no feature '{name}'; expected all 2"):
            read_mulan(path, labels="none", feature_names=["f", name])
    with pytest.raises(ValueError, match="labels='none' cannot be combined with xml or n_labels"):
        read_mulan(path, labels="none", n_labels=1)


def test_a_value_of_its_own_in_every_row_is_an_identifier(tmp_path):
    names = [f"P{row}" for row in range(12)]
    head = HEAD.replace("f numeric", f"protein {{{','.join(names)}}}").replace("g numeric", "f numeric")
    for template in ("{0},{1},0\n", "{{0 {0},1 {1}}}\n"):
        rows = [template.format(name, row + 1) for row, name in enumerate(names)]
        path = write(tmp_path / "t.arff", head + "".join(rows))
        with pytest.warns(UserWarning, match="'protein' has a different value in every row, and is ignored"):
            data = read_mulan(path, n_labels=1)
        assert list(data.feature_names) == ["f"]
        few = read_mulan(write(path, head + rows[3]), n_labels=1, feature_names=data.feature_names)
        assert list(few.feature_names) == ["f"]
        twice = read_mulan(write(path, head + "".join([*rows, rows[0]])), n_labels=1)
        assert twice.X.shape[1] == 13  # the last value is not another one


def test_repeated_entries_of_the_header(tmp_path):
    text = HEAD.replace("g numeric", "f numeric").replace("y {0,1}", "f {a,b,a}\n@attribute y {0,1}")
    with pytest.warns(UserWarning, match="t.arff") as caught:
        data = read_mulan(write(tmp_path / "t.arff", text + "1,2,b,0\n"), n_labels=1)
    assert [str(one.message).split(": ")[1] for one in caught] == [
        "1 of 3 listed values are duplicates, and count once",
        "2 attributes repeat names of others; the last is 'f (3)' here",
    ]
    assert list(data.feature_names) == ["f", "f (2)", "f (3)=a", "f (3)=b"]
    assert data.X.tolist() == [[1, 2, 0, 1]]


def test_a_missing_last_line_end_is_warned_of_where_the_last_cell_may_be_cut(tmp_path):
    assert read_mulan(write(tmp_path / "t.arff", HEAD + "1,2,0"), n_labels=1).X.tolist() == [[1, 2]]
    with pytest.warns(UserWarning, match="t.arff:6: the last row has no line end"):
        read_mulan(write(tmp_path / "t.arff", HEAD.replace("{0,1}", "numeric") + "1,2,0"), n_labels=1)


def test_nominal_features_of_many_values_are_held_sparse(tmp_path):
    values = ",".join(f"v{k}" for k in range(1000))
    head = HEAD.replace("f numeric", f"f {{{values}}}")
    data = read_mulan(write(tmp_path / "t.arff", head + "v3,5,0\n" * 20), n_labels=1)
    assert sp.issparse(data.X)
    assert data.X.shape == (20, 1001)
    assert data.X.nnz == 40


def test_damaged_archive(tmp_path):
    whole = gzip.compress((HEAD + "1,2,0\n").encode())
    (tmp_path / "ok.arff.gz").write_bytes(whole)
    assert read_mulan(tmp_path / "ok.arff.gz", n_labels=1).X.tolist() == [[1, 2]]
    for cut in range(len(whole)):
        (tmp_path / "cut.arff.gz").write_bytes(whole[:cut])
        with pytest.raises(DataFileError):
            read_mulan(tmp_path / "cut.arff.gz", n_labels=1)


names = st.text(
    st.characters(exclude_categories=("C", "Zl", "Zp", "Zs"), include_characters=" '\"\\,{}%?@\t\n"),
    min_size=1,
    max_size=6,
).filter(lambda name: name == name.strip())
values = st.floats(allow_nan=False, allow_infinity=False) | st.just(0.0)


@st.composite
def labeled_data(draw):
    n, d, n_labels = draw(st.tuples(*[st.integers(1, 4)] * 3))
    found = draw(st.lists(names, min_size=d + n_labels, max_size=d + n_labels, unique=True))
    X = np.array(draw(st.lists(st.lists(values, min_size=d, max_size=d), min_size=n, max_size=n)))
    cell = st.sampled_from([0.0, 1.0, np.nan])
    Y = np.array(draw(st.lists(st.lists(cell, min_size=n_labels, max_size=n_labels), min_size=n, max_size=n)))
    parents = ((found[d], found[d + 1]),) if n_labels > 1 and draw(st.booleans()) else None
    X = sp.csr_array(X) if draw(st.booleans()) else X
    return LabeledData(X, LabelMatrix.from_any(Y, found[d:]), np.array(found[:d]), parents=parents)


@FILES
@given(data=labeled_data())
def test_round_trip(tmp_path, data):
    write_mulan(data, tmp_path / "t.arff", tmp_path / "t.xml")
    again = read_mulan(tmp_path / "t.arff", tmp_path / "t.xml")
    assert sp.issparse(again.X) == sp.issparse(data.X)
    assert same(data, again)


@pytest.mark.parametrize("name", ["", "y", "tab\x00", " x"])
def test_names_that_cannot_be_written(tmp_path, name):
    data = LabeledData(np.ones((1, 1)), LabelMatrix.from_any([[1]], ["y"]), np.array([name], dtype=object))
    with pytest.raises(ValueError, match="name"):
        write_mulan(data, tmp_path / "t.arff", tmp_path / "t.xml")
    assert not list(tmp_path.iterdir())


def test_the_xml_file_of_a_sparse_file_is_found(tmp_path):
    arff = "@relation r\n@attribute f numeric\n@attribute y {0,1}\n@attribute z {0,1}\n@data\n1,1,0\n3,0,1\n"
    (tmp_path / "r.xml").write_text('<labels><label name="y"/><label name="z"/></labels>')
    for name in ("r-sparse.arff", "r-sparse-train.arff", "r-test-sparse.arff"):
        (tmp_path / name).write_text(arff)
        assert list(read_any(tmp_path / name).label_names) == ["y", "z"]


DIALECT = "@relation 'x: -C 1'\n@attribute l {0,1} % of {what}\n@attribute f "


@pytest.mark.parametrize(
    "kind",
    [
        "INTEGER [0,9]", "integer[0,9]", "real [0.0, 5.5]", "REAL(0,1)", "real\t[0,1]", "numeric {2.0}",
        "Numeric % a comment", "real [0,1] % c", "Continuous", "double", "int", "float [0,1]",
    ],
)  # fmt: skip
def test_bounds_weights_and_comments_of_numeric_types_are_passed_over(tmp_path, kind):
    (tmp_path / "t.arff").write_text(DIALECT + f"{kind}\n@data\n0,1\n1,2.5\n")
    data = read_mulan(tmp_path / "t.arff")
    np.testing.assert_array_equal(data.X, [[1], [2.5]])
    np.testing.assert_array_equal(data.Y.to_dense(), [[0], [1]])


@pytest.mark.parametrize("kind", ["string", "STRING % text", "date", "date 'yyyy-MM-dd'", 'DATE "yyyy MM"'])
def test_strings_and_dates_are_omitted_with_a_warning(tmp_path, kind):
    (tmp_path / "t.arff").write_text(DIALECT + f"{kind}\n@attribute g real\n@data\n0,'a, b',3\n1,?,4\n")
    with pytest.warns(UserWarning, match="1 attributes are strings or dates, such as 'f'"):
        data = read_mulan(tmp_path / "t.arff")
    np.testing.assert_array_equal(data.X, [[3], [4]])
    again = read_mulan(tmp_path / "t.arff", feature_names=data.feature_names)
    np.testing.assert_array_equal(again.X, data.X)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("0,1,a % c\n1,2,'b c' %d\n", [[1, 1, 0, 0], [2, 0, 1, 0]]),
        ("0,1,50%\n1,2,50% % x\n", [[1, 0, 0, 1], [2, 0, 0, 1]]),
        ("0,1,a,{1}\n1,2,a {1.0}\n", [[1, 1, 0, 0], [2, 1, 0, 0]]),
        ("0\t1\ta\n1\t2\t'b c'\n", [[1, 1, 0, 0], [2, 0, 1, 0]]),
        ("0 1 a\n1, 2\ta\n", [[1, 1, 0, 0], [2, 1, 0, 0]]),
        ("{1 1} % c\n{0 1,1 3, 2 50%}\t%c\n", [[1, 1, 0, 0], [3, 0, 0, 1]]),
        ("{1 1},{1}\n{0 1,1 3, 2 50%} {1}\n", [[1, 1, 0, 0], [3, 0, 0, 1]]),
        ("0,1,a\n%\n  % all of it\n1,2,a\n", [[1, 1, 0, 0], [2, 1, 0, 0]]),
    ],
)
def test_rows_with_comments_weights_and_tabs(tmp_path, rows, expected):
    (tmp_path / "t.arff").write_text(DIALECT + "real\n@attribute g {a,'b c',50%}\n@data\n" + rows)
    data = read_mulan(tmp_path / "t.arff")
    X = data.X.toarray() if sp.issparse(data.X) else data.X
    np.testing.assert_array_equal(X, expected)
    np.testing.assert_array_equal(data.Y.to_dense().ravel(), [0, 1])


@pytest.mark.parametrize(
    ("rows", "weights"),
    [
        ("0,1,{5}\n1,2 { .5 }\n1,3\n", [5, 0.5, 1]),
        ("{1 1} , {2}\n{0 1,1 2},{0}\n{}{1e1}\n", [2, 0, 10]),
        ("0,1,{1}\n1,2\n", None),
    ],
)
def test_weights_of_rows_are_kept_and_written(tmp_path, rows, weights):
    (tmp_path / "t.arff").write_text(DIALECT + "real\n@data\n" + rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if weights else "error")
        data = read_mulan(tmp_path / "t.arff")
        write_mulan(data, tmp_path / "again.arff", tmp_path / "again.xml")
        for one in (data, read_any(tmp_path / "again.arff")):
            assert (one.weights if weights is None else one.weights.tolist()) == weights


def test_outputs_of_keel_are_the_labels(tmp_path):
    header = "@relation x\n@attribute f real[0,2]\n@attribute l{0,1}\n@inputs f\n@outputs l\n@data\n"
    (tmp_path / "t.dat").write_text(header + "0.5, 1\n1.5, 0\n")
    data = read_any(tmp_path / "t.dat")
    np.testing.assert_array_equal(data.X, [[0.5], [1.5]])
    assert data.Y.words == ["l"]
