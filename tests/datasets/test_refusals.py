"""Messages of readers about files and arguments without labeled rows."""

import decimal
import json

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave import datasets
from labelweave.datasets.data_file import DataFileError
from labelweave.datasets.table_columns import columns_of_frame
from labelweave.labels import LabelMatrix

HEAD = "@relation r\n@attribute x numeric\n@attribute 'a b' {0,1}\n"


def test_label_names_of_xml_files(tmp_path):
    (tmp_path / "r.arff").write_text(HEAD + "@data\n1,?\n")
    (tmp_path / "r.xml").write_text('<?xml version="1.0" encoding="none-such"?><labels/>')
    with pytest.raises(DataFileError, match=r"unreadable encoding|broken XML"):
        datasets.read_mulan(tmp_path / "r.arff", xml=tmp_path / "r.xml")
    (tmp_path / "r.xml").write_text('<labels><label name="a b"/></labels>')
    assert np.isnan(datasets.read_mulan(tmp_path / "r.arff", xml=tmp_path / "r.xml").Y.to_dense()).all()


def test_data_hold_together():
    Y = LabelMatrix.from_any(np.eye(2))
    assert datasets.LabeledData(sp.lil_array(np.eye(2)), Y).X.format == "csr"
    assert "2 rows, 2 features, 2 labels" in repr(datasets.LabeledData(np.eye(2), Y))
    assert datasets.LabeledData(np.eye(2), Y).taxonomy is None
    named = datasets.LabeledData(
        np.eye(2), LabelMatrix.from_any(np.eye(2), ["b", "c"]), parents=(("a", "b"), ("a", "c"))
    )
    assert list(named.classes) == ["b", "c"]


@pytest.mark.parametrize(
    ("row", "words"), [({"x": 1, "y": ["a", ""]}, "the label ''"), ({"x": 1, "y": ["a", [1]]}, "the label")]
)
def test_label_cells_of_json_lines(tmp_path, row, words):
    (tmp_path / "t.jsonl").write_text(json.dumps({"x": 0, "y": ["a"]}) + "\n" + json.dumps(row) + "\n")
    with pytest.raises(DataFileError, match=f"t.jsonl:2: .*{words}"):
        datasets.read_table(tmp_path / "t.jsonl", labels="y")


def test_label_cells_in_all_forms(tmp_path):
    cells = [["a", " b "], "a", 5, None, "?", "", []]
    rows = [json.dumps({"x": number, "y": cell}) for number, cell in enumerate(cells)]
    (tmp_path / "t.jsonl").write_text("\n\n".join(rows) + "\n")
    data = datasets.read_table(tmp_path / "t.jsonl", labels="y")
    assert list(data.Y.names) == ["5", "a", "b"]
    expected = [[0, 1, 1], [0, 1, 0], [1, 0, 0], None, None, [0, 0, 0], [0, 0, 0]]
    for found, asked in zip(data.Y.to_dense(), expected, strict=True):
        assert np.isnan(found).all() if asked is None else found.tolist() == asked
    unknown = datasets.read_table(tmp_path / "t.jsonl", labels="y", empty_labels="unknown")
    assert np.isnan(unknown.Y.to_dense()[5]).all()


@pytest.mark.parametrize("cell", ["2", "red"])
def test_label_columns_are_of_ones_and_zeros(tmp_path, cell):
    (tmp_path / "t.csv").write_text(f"a,y\n1,{cell}\n")
    with pytest.raises(DataFileError, match=f"t.csv:2: found '{cell}' in column 'y' .* expected 0, 1, -1"):
        datasets.read_table(tmp_path / "t.csv", labels=["y"])
    (tmp_path / "t.csv").write_text("a,y\n1,true\n2,-1\n3,\n")
    found = datasets.read_table(tmp_path / "t.csv", labels=["y"]).Y.to_signs()
    assert found.ravel().tolist() == [1, -1, 0]


def test_words_of_tables(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,b\n")
    with pytest.raises(ValueError, match="unknown_labels is 'keep'"):
        datasets.read_table(tmp_path / "t.csv", labels="y", label_names=["b"], unknown_labels="keep")
    (tmp_path / "t.csv").write_text("id,a,y\n,1,b\n")
    with pytest.raises(DataFileError, match=r"t\.csv:2: found nothing in column 'id'"):
        datasets.read_table(tmp_path / "t.csv", labels="y", id="id")


def test_columns_have_one_role_each():
    for roles, words in (
        ({"labels": "y", "id": "y"}, "The column 'y' is given as labels and as id"),
        ({"label_separator": ""}, "label_separator is empty"),
        ({"empty_labels": "some"}, "empty_labels is 'some'"),
    ):
        with pytest.raises(ValueError, match=words):
            datasets.TableColumns(**roles)


def test_columns_of_frames_are_told_by_their_cells():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "words": [f"{k} red roses by the sea" for k in range(40)],
            "kind": pd.Categorical(list("xy" * 20)),
            "size": np.arange(40) / 2,
            "blank": [None] * 40,
            "key": [f"A-{k}" for k in range(40)],
        }
    )
    with pytest.warns(UserWarning, match="'key' look like identifiers"):
        found = columns_of_frame(frame, datasets.TableColumns())
    assert (found.text, found.categorical, found.numeric) == (("words",), ("kind",), ("size",))
    assert set(found.drop) == {"key", "blank"}
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(ValueError, match="X has two columns named 'a'; rename one"):
        columns_of_frame(twice, datasets.TableColumns())
    codes = frame.assign(kind=pd.Categorical([10, 20] * 20))[["kind", "size"]]
    assert columns_of_frame(codes, datasets.TableColumns()).categorical == ("kind",)
    prices = pd.DataFrame({"price": [decimal.Decimal(k) / 4 for k in range(40)]})
    assert columns_of_frame(prices, datasets.TableColumns()).numeric == ("price",)
    with pytest.raises(ValueError, match="X has a column 5 whose name is not text"):
        columns_of_frame(frame.rename(columns={"size": 5}), datasets.TableColumns())
    times = frame.assign(size=pd.to_timedelta(["1 day"] * 40))
    with pytest.raises(ValueError, match="Row 0, column 'size' is a Timedelta; it must be text or a number"):
        columns_of_frame(times, datasets.TableColumns())
    with pytest.raises(DataFileError, match="no column besides labels and identifiers"):
        columns_of_frame(frame[["key"]], datasets.TableColumns())
    with pytest.raises(DataFileError, match="no column 'sise'"):
        columns_of_frame(frame, datasets.TableColumns(numeric="sise"))
