from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelweave.datasets import DataFileError, read_table
from labelweave.labels.written_labels import written_list

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
