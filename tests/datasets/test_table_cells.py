"""What cells of tables are taken for, as other programs write them."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pytest

from labelweave.datasets import DataFileError, TableColumns, read_table, read_table_columns

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


def test_decimal_commas_may_have_an_exponent(tmp_path):
    path, numbers = tmp_path / "d.csv", [3.574537965849708e-06, -1.5e20, 1e-05, 0.25]
    pd.DataFrame({"a": numbers, "y": ["p", "q"] * 2}).to_csv(path, sep=";", decimal=",", index=False)
    assert "3,574537965849708e-06" in path.read_text()
    assert read_table_columns(path, TableColumns(labels="y")).X["a"].tolist() == numbers


@pytest.mark.parametrize("missing", ["NULL", r"\N", "#N/A", "n/a", "<NA>", "NAN", "none"])
@pytest.mark.parametrize("number", ["1.5", "$1,500.0"])
def test_missing_numbers_of_other_programs_are_missing(tmp_path, missing, number):
    path = tmp_path / "t.tsv"
    path.write_text(f"a\ty\n{number}\tp\n{missing}\tq\n")
    found = read_table_columns(path, TableColumns(labels="y")).X["a"]
    np.testing.assert_array_equal(found, [float(number.strip("$").replace(",", "")), np.nan])


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
