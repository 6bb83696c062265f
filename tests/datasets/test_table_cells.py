"""How cells of tables are interpreted, as other programs write them, and lists in cells."""

import csv
import json
import re
import sys
import warnings
from decimal import Decimal
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.datasets import (
    DataFileError,
    TableColumns,
    csv_files,
    read_table,
    read_table_columns,
    table_files,
)
from labelweave.datasets.columns import as_array, number, numbers
from labelweave.datasets.data_file import read_blocks
from labelweave.datasets.table_files import raw_tables
from labelweave.labels.written_labels import written_list

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

cells = st.one_of(
    st.sampled_from(["", "?", "NA", "a", "1.5", " -3", "+1e3", '"', "'=1", "é\n", "a,b", "x|y", "\r\n"]),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=6),
)
tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(cells, min_size=width, max_size=width), min_size=1, max_size=8)
)


@settings(max_examples=100)
@given(rows=tables, quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), chunk=st.integers(1, 9))
@pytest.mark.filterwarnings("ignore:.*the last row has no line end")
def test_rows_that_were_written_are_read_with_their_lines(tmp_path, rows, quoting, chunk):
    rows = [[cell.replace("\r", "") or "a" for cell in row] for row in rows]
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, quoting=quoting, lineterminator="\n")
        writer.writerows([[f"c{place}" for place in range(len(rows[0]))], *rows])
    parts = [*raw_tables(path, chunk)]
    found = [list(row) for part in parts for row in zip(*part.columns.values(), strict=True)]
    assert found == [[cell[1:] if cell == "'=1" else cell for cell in row] for row in rows]
    heights = [1 + sum(cell.count("\n") for cell in row) for row in rows]
    assert [parts[0].line_of(row) for row in range(len(rows))] == [
        2 + sum(heights[:k]) for k in range(len(rows))
    ]


any_text = st.text(alphabet="a1é,;\"\n\r\t'=?x\x00", max_size=40)


def outcome(path):
    """Read a table; return its rows and their lines, or the message of the refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            (found,) = raw_tables(path)
        except DataFileError as error:
            return str(error)
    return dict(found.columns), [found.line_of(row) for row in range(len(found))]


@settings(max_examples=150)
@given(text=any_text, block_bytes=st.sampled_from([7, 30, 1 << 22]), suffix=st.sampled_from(["csv", "tsv"]))
def test_pyarrow_and_the_careful_reader_give_the_same(tmp_path, text, block_bytes, suffix):
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "read_blocks", partial(read_blocks, block_bytes=block_bytes))
        quick = outcome(path)
        patch.setattr(table_files.csv_files, "is_usual", lambda *_: False)
        assert quick == outcome(path)


def test_what_is_missing_without_pyarrow_is_said(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("f,y\n1,a\n2,b\n")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"need pandas and pyarrow: install labelweave\[app\]"):
        read_table(tmp_path / "t.csv", labels="y", numeric="f")


def test_decimal_commas_may_have_an_exponent(tmp_path):
    path, numbers = tmp_path / "d.csv", [3.574537965849708e-06, -1.5e20, 1e-05, 0.25]
    pd.DataFrame({"a": numbers, "y": ["p", "q"] * 2}).to_csv(path, sep=";", decimal=",", index=False)
    assert "3,574537965849708e-06" in path.read_text()
    assert read_table_columns(path, TableColumns(labels="y")).X["a"].tolist() == numbers


@pytest.mark.parametrize("missing", ["NULL", r"\N", "#N/A", "n/a", "<NA>", "NAN", "none", "NaT"])
@pytest.mark.parametrize("number", ["1.5", "$1,500.0", "1\u00a0500.0", "1'500.0"])
def test_missing_numbers_of_other_programs_are_missing(tmp_path, missing, number):
    path = tmp_path / "t.tsv"
    path.write_text(f"a\ty\n{number}\tp\n{missing}\tq\n")
    found = read_table_columns(path, TableColumns(labels="y")).X["a"]
    np.testing.assert_array_equal(found, [float(re.sub("[^0-9.]", "", number)), np.nan])


@pytest.mark.parametrize("strange", ["unbekannt", "-"])
def test_a_word_that_makes_a_column_of_numbers_text_is_told(tmp_path, strange):
    path = tmp_path / "t.csv"
    rows = [f"{k}.5,{k % 3}{'ab'[k % 2]},p\n" for k in range(60)]
    path.write_text("".join(["a,b,y\n", *rows, f"{strange},,q\n"]))
    with pytest.warns(UserWarning, match=f"t.csv:62: found '{strange}' in column 'a' of row 60") as said:
        columns = read_table_columns(path, TableColumns(labels="y")).X.columns
    assert len(said) == 1
    assert list(columns) == ["a", "b"]
    read_table_columns(path, TableColumns(labels="y", text="a"))


def test_numbers_and_texts_of_numbers_are_not_told_as_strange(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1, "y": "p"}\n{"a": "1,000", "y": "q"}\n' * 20)
    assert list(read_table_columns(path, TableColumns(labels="y")).X) == ["a"]


def test_names_of_rows_keep_their_digits(tmp_path):
    path, named = tmp_path / "t.jsonl", [90071992547409930, 90071992547409931, 2**63 + 1, 1.5, "x" * 1000]
    path.write_text("".join(json.dumps({"id": name, "f": 1, "y": "p"}) + "\n" for name in named))
    found = read_table_columns(path, TableColumns(labels="y", id="id")).row_ids
    assert found.tolist() == named
    assert found.nbytes == 8 * len(named)


def test_dates_and_decimals_are_names_of_rows_and_bytes_are_refused(tmp_path):
    path, days = tmp_path / "t.parquet", pd.date_range("2024-01-01", periods=2)
    frame = pd.DataFrame({"at": days, "day": days.date, "sum": [Decimal("1.10"), Decimal(2)], "f": [1, 2]})
    frame.assign(raw=[b"\xff", b"\xfe"], list=[[1], [2]]).to_parquet(path)

    def names(column):
        return read_table_columns(path, TableColumns(id=column, numeric="f")).row_ids.tolist()

    assert names("at") == ["2024-01-01 00:00:00", "2024-01-02 00:00:00"]
    assert names("day") == ["2024-01-01", "2024-01-02"]
    assert names("sum") == ["1.10", "2.00"]
    for column, kind in (("raw", "bytes"), ("list", "list")):
        with pytest.raises(DataFileError, match=f"found a {kind} in column '{column}' of row 0; exp"):
            names(column)


def test_truth_is_0_and_1_in_columns_of_numbers_of_every_format(tmp_path):
    frame = pd.DataFrame({"b": [True, False, True, False], "f": [1.5, 2.5, 3.5, 4.5], "y": ["p", "q"] * 2})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "R.csv").write_text("b,f,y\nTRUE,1.5,p\nFALSE,2.5,q\ntrue,3.5,p\nfalse,4.5,q\n")
    training = read_table(tmp_path / "t.parquet", labels="y")
    assert training.vectorizer.numeric == ("b", "f")
    for name in ("t.csv", "R.csv"):
        later = read_table(tmp_path / name, training.vectorizer, labels="y", label_names=["p", "q"])
        np.testing.assert_array_equal(later.X.toarray(), training.X.toarray())
    (tmp_path / "t.csv").write_text("b,f,y\nTrue,1,p\nyes,2,q\n")
    with pytest.raises(DataFileError, match=r"t.csv:3: found 'yes' in column 'b' of row 1"):
        read_table(tmp_path / "t.csv", training.vectorizer, labels="y")


@settings(max_examples=200)
@given(texts=st.lists(cells, min_size=1, max_size=5))
def test_numbers_all_at_once_are_those_of_one_by_one(texts):
    found = numbers(as_array(texts))
    if found is not None:
        np.testing.assert_array_equal(found, [number(text) for text in texts])


@pytest.mark.parametrize("column", [["1.5", "-2e3", ".5"], ["1", "?", "NA", "nan", ""], ["+1", "7."], ["?"]])
def test_usual_numbers_are_read_at_once(column):
    np.testing.assert_array_equal(numbers(as_array(column)), [number(text) for text in column])


@pytest.mark.parametrize("column", [["inf"], ["nan", "-nan"], ["1_0"], ["0x1"], ["a"], ["1e999"], ["٣"]])
def test_other_texts_are_no_numbers(column):
    assert numbers(as_array(column)) is None


def test_labels_are_the_same_however_a_file_holds_them(tmp_path):
    names = ["a|b", " b |a|b", "", "?", "|", " ? ", "c", "?|a"]
    frame = pd.DataFrame({"words": ["w"] * len(names), "tags": names})
    frame.to_csv(tmp_path / "t.csv", index=False)
    lists = [None if name.strip() == "?" else [part for part in name.split("|") if part] for name in names]
    frame.assign(tags=lists).to_parquet(tmp_path / "t.parquet")
    columns = TableColumns(labels="tags", label_separator="|", text="words")
    one, other = (read_table_columns(tmp_path / name, columns) for name in ("t.csv", "t.parquet"))
    assert list(one.label_names) == list(other.label_names) == ["?", "a", "b", "c"]
    np.testing.assert_array_equal(one.Y.to_dense(), other.Y.to_dense())
    np.testing.assert_array_equal(np.isnan(one.Y.to_dense()).all(axis=1), [k in (3, 5) for k in range(8)])


def test_columns_of_parquet_files_keep_types_and_gaps(tmp_path):
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3], "Int64"),
            "part": [0.5, np.nan, 2.0],
            "truth": [True, None, False],
            "kind": pd.Categorical(["a", None, "b"]),
            "tags": [["x", "y"], None, []],
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    columns = TableColumns(labels="tags", categorical=["kind", "whole"], numeric=["part", "truth"])
    data = read_table_columns(tmp_path / "t.parquet", columns)
    assert data.X["kind"].tolist() == ["a", "", "b"]
    assert data.X["whole"].tolist() == ["1", "", "3"]
    np.testing.assert_array_equal(data.X[["part", "truth"]], [[0.5, 1], [np.nan, np.nan], [2, 0]])
    np.testing.assert_array_equal(data.Y.to_dense(), [[1, 1], [np.nan, np.nan], [0, 0]])
    frame.assign(tags=[["x", " "], None, []]).to_parquet(tmp_path / "bad.parquet")
    with pytest.raises(DataFileError, match="the label ' ' in column 'tags' of row 0"):
        read_table_columns(tmp_path / "bad.parquet", columns)


@pytest.mark.parametrize("line", ['{"f": 1, "f": 2}', '{"f": "a:b", "f": ""}', '{"f": {"a": 1, "a": 1}}'])
def test_names_that_come_twice_are_found_whatever_colons_there_are(tmp_path, line):
    (tmp_path / "t.jsonl").write_text('{"f": "a:b"}\n' + line + "\n")
    with pytest.raises(DataFileError, match="twice in an object") as caught:
        read_table_columns(tmp_path / "t.jsonl", TableColumns(text="f"))
    assert caught.value.line == 2


NAMES = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5))


@given(names=NAMES)
def test_what_python_and_json_write_is_read_back(names):
    assert written_list(str(names)) == written_list(json.dumps(names)) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[]", []),
        ("[1, 2.0, -3.5]", ["1", "2", "-3.5"]),
        ("[ 'a' , 'b' ]", ["a", "b"]),
        ("[a, b]", None),
        ("[deprecated]", None),
        ("['a'] or ['b'", None),
        ("[None]", None),
    ],
)
def test_other_brackets_are_no_lists(text, names):
    assert written_list(text) == names


@pytest.mark.parametrize("block_rows", [None, 1])
@pytest.mark.parametrize("separator", [None, ","])
def test_label_cells_may_be_texts_of_lists(tmp_path, block_rows, separator):
    pd = pytest.importorskip("pandas")
    path, tags = tmp_path / "t.csv", [["red", "green, blue"], [], ["it's"], None]
    pd.DataFrame({"f": range(4), "tags": tags}).to_csv(path, index=False)
    path.write_text(path.read_text().replace("3,\n", "3,?\n"))
    roles = {"labels": "tags", "numeric": "f", "label_separator": separator, "empty_labels": "unknown"}
    Y = read_table(path, block_rows=block_rows, **roles).Y
    assert list(Y.names) == ["green, blue", "it's", "red"]
    np.testing.assert_array_equal(Y.to_dense(), [[1, 0, 1], [0, 0, 0], [0, 1, 0], [np.nan] * 3])
    path.write_text("f,tags\n1,x\n2,['a'; 'b']\n")
    with pytest.raises(DataFileError, match=r"t.csv:3: found \"\['a'; 'b'\]\" in column 'tags'"):
        read_table(path, block_rows=block_rows, **roles)


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("write", [", ".join, json.dumps], ids=["separated", "encoded twice"])
def test_one_string_of_a_list_may_hold_several_names(tmp_path, form, write):
    pd = pytest.importorskip("pandas")
    path, sets = tmp_path / f"t.{form}", [["a", "b"], ["b", "c"], ["c", "a"], ["b"]] * 4
    cells = [[write(names)] for names in sets]
    frame = pd.DataFrame({"f": range(16), "tags": [*map(json.dumps, cells)] if form == "csv" else cells})
    frame.to_parquet(path) if form == "parquet" else path.write_text(
        frame.to_csv(index=False) if form == "csv" else frame.to_json(orient="records", lines=True)
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        Y = read_table(path, labels="tags", numeric="f").Y
    assert [str(one.message).partition("such")[2] for one in said] == [
        """ as 'a, b', and are split at ',' inside '["' and '"]'; set label_separator to override this."""
    ] * (write is not json.dumps)
    assert list(Y.names) == ["a", "b", "c"]
    np.testing.assert_array_equal(Y.to_dense(), [[name in names for name in "abc"] for names in sets])
    kept = read_table(path, labels="tags", numeric="f", label_separator=",").Y
    assert list(kept.names) == (["a", "b", "c"] if write is json.dumps else ["a, b", "b", "b, c", "c, a"])
