"""What pyarrow takes apart is what Python's careful reader does, to the last cell, line and message."""

from __future__ import annotations

import csv
import io
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.datasets import DataFileError, TableColumns, read_table_columns, table, table_files
from labelweave.datasets import columns as labelweave_columns
from labelweave.datasets.columns import number, numbers
from labelweave.datasets.csv_tokens import tokenized
from labelweave.datasets.data_file import read_blocks

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
FILES = settings(max_examples=150)

any_text = st.text(alphabet="a1é,;\"\n\r\t'=?x\x00", max_size=40)
cells = st.one_of(
    st.sampled_from(["", "?", "NA", "a", "1.5", " -3", "+1e3", '"', "'=1", "é\n", "a,b", "x|y", "\r\n"]),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=6),
)
tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(cells, min_size=width, max_size=width), min_size=1, max_size=8)
)


def written(rows, quoting):
    stream = io.StringIO()
    writer = csv.writer(stream, quoting=quoting, lineterminator="\n")
    writer.writerow([f"c{place}" for place in range(len(rows[0]))])
    writer.writerows(rows)
    return stream.getvalue()


contents = st.one_of(
    any_text, st.builds(written, tables, st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
)


def outcome(path):
    """Read a table; give its rows and their lines, or what the refusal says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = list(table_files.raw_tables(path))
        except DataFileError as error:
            return str(error)
    assert len(found) == 1
    return found[0].columns, found[0].lines.tolist()


@FILES
@given(text=contents, block_bytes=st.sampled_from([7, 30, 1 << 22]), suffix=st.sampled_from(["csv", "tsv"]))
def test_both_ways_give_the_same(tmp_path, text, block_bytes, suffix):
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_files, "read_blocks", partial(read_blocks, block_bytes=block_bytes))
        quick = outcome(path)
        patch.setattr(table_files, "tokenized", lambda *_: None)
        assert quick == outcome(path)


@FILES
@given(rows=tables, quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_usual_files_need_no_careful_reader(rows, quoting):
    if len(rows[0]) == 1 and quoting == csv.QUOTE_MINIMAL:
        rows = [[cell or "a"] for (cell,) in rows]
    rows = [[cell.replace("\r", "") for cell in row] for row in rows]
    found = tokenized(written(rows, quoting).encode(), ",", None)
    cells = [column[1:].to_pylist() for column in found.columns]
    assert [list(row) for row in zip(*cells, strict=True)] == rows
    assert found.rest == b""


@settings(max_examples=200)
@given(texts=st.lists(cells, min_size=1, max_size=5))
def test_numbers_all_at_once_are_those_of_one_by_one(texts):
    found = numbers(texts)
    if found is not None:
        np.testing.assert_array_equal(found, [number(text) for text in texts])


@pytest.mark.parametrize("column", [["1.5", "-2e3", ".5"], ["1", "?", "NA", "nan", ""], ["+1", "7."], ["?"]])
def test_usual_numbers_are_read_at_once(column):
    np.testing.assert_array_equal(numbers(column), [number(text) for text in column])


@pytest.mark.parametrize("column", [["inf"], ["nan", "-nan"], ["1_0"], ["0x1"], ["a"], ["1e999"], ["٣"]])
def test_other_texts_are_no_numbers(column):
    assert numbers(column) is None


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


def test_without_pyarrow_tables_are_the_same(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text('f,words,tags\n1.5,"a ""b""",x|y\n?,c,y\n')
    columns = TableColumns(labels="tags", label_separator="|", text="words", numeric="f")
    whole = read_table_columns(path, columns)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    slow = read_table_columns(path, columns)
    pd.testing.assert_frame_equal(whole.X, slow.X)
    np.testing.assert_array_equal(whole.Y.to_dense(), slow.Y.to_dense())


@pytest.mark.parametrize(
    "text",
    [
        'price,tags\n"1,234.5",a|b\n"2,000",b\n12.5%,a\n$3,b\n"1,23",b\n',
        'price,tags\n"1,234.5",a|b\n"2,000",b\n12.5%,a\n -$3 ,b\n',
        "price;tags\n1.234,5;a|b\n2.000,25;b\n12,5%;a\n3,5;b\n",
        "price;tags\n1.5;a|b\n?;b\nNA;a\n3;b\n",
        "price;tags\n1.125;a|b\n1.5;b\n?;a\n3;b\n",
    ],
)
def test_without_pyarrow_formatted_numbers_are_the_same(tmp_path, monkeypatch, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    columns = TableColumns(labels="tags", label_separator="|")
    whole = read_table_columns(path, columns)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    slow = read_table_columns(path, columns)
    pd.testing.assert_frame_equal(whole.X, slow.X, check_dtype=False)


tags = st.sampled_from(["a", " a", "b|a", "", " ", "?", " ? ", "|", "a|?", "a|a", "é|b", "?|?", "\u00a0"])
codes = st.sampled_from(["", "1", "2.0", "x1", "x-2", "NA", " 3", "y"])


def described(path, columns):
    """Read columns and labels; give what they are, or what the refusal says."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            data = read_table_columns(path, columns)
        except DataFileError as error:
            return str(error)
    said = [str(warning.message) for warning in caught]
    Y = np.nan_to_num(data.Y.to_dense(), nan=-9).tolist()
    return data.X.to_dict("list").__repr__(), Y, list(data.label_names), said


@FILES
@given(
    rows=st.lists(st.tuples(cells, codes, tags), min_size=1, max_size=30),
    separator=st.sampled_from([None, "|", "?", " "]),
    blank=st.sampled_from(["none", "unknown"]),
    kinds=st.sampled_from([{}, {"text": "f"}, {"text": "f", "numeric": "g"}, {"categorical": ["f", "g"]}]),
)
def test_columns_read_at_once_are_those_read_cell_by_cell(tmp_path, rows, separator, blank, kinds):
    path = tmp_path / "t.csv"
    path.write_text(written([("f", "g", "tags"), *rows], csv.QUOTE_ALL).partition("\n")[2], newline="")
    columns = TableColumns(labels="tags", label_separator=separator, empty_labels=blank, **kinds)
    quick = described(path, columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_files, "tokenized", lambda *_: None)
        patch.setattr(table_files, "text_column", list)
        patch.setattr(labelweave_columns, "text_column", list)
        patch.setattr(table, "as_array", lambda column: column)
        assert quick == described(path, columns)


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
    with pytest.raises(DataFileError, match="twice in one object") as caught:
        read_table_columns(tmp_path / "t.jsonl", TableColumns(text="f"))
    assert caught.value.line == 2
