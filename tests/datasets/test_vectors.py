"""Columns of vectors of any library become features; invalid vectors are refused with their row."""

import json
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from pyarrow import parquet
from safetensors.numpy import save_file

from labelweave import MaxMarginClassifier, TableModel
from labelweave.datasets import DataFileError, TableColumns, TableVectorizer, read_table
from labelweave.datasets.table_columns import columns_of_frame
from labelweave.datasets.vector_files import TableWithVectors, read_vectors
from labelweave.foundation.frames import with_vectors_as_rows

ROWS = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
TAGS = [["a"] if row[0] > 0 else ["b"] for row in ROWS]
FRAME = pd.DataFrame({"emb": list(ROWS), "text": ["red sea", "blue"] * 15, "size": np.arange(30) / 2})
LISTS, LARGE = pa.array(list(ROWS)), pa.large_list(pa.float32())
COLUMNS = {
    "arrays": pd.DataFrame({"emb": list(ROWS)}),
    "lists": pd.DataFrame({"emb": ROWS.tolist()}),
    "arrow in pandas": pd.DataFrame({"emb": pd.arrays.ArrowExtensionArray(LISTS)}),
    "pyarrow": pa.table({"emb": LISTS}),
    "pyarrow fixed": pa.table({"emb": pa.FixedSizeListArray.from_arrays(ROWS.ravel(), 3)}),
    "pyarrow large": pa.table({"emb": pa.chunked_array([LISTS[:9], LISTS[9:]]).cast(LARGE)}),
    "polars lists": pl.DataFrame({"emb": pl.Series(ROWS.tolist(), dtype=pl.List(pl.Float32))}),
    "pyarrow views": pa.table({"emb": pa.array(ROWS.tolist(), pa.list_view(pa.float32()))}),
    "Series": pd.DataFrame({"emb": [pd.Series(row) for row in ROWS]}),
    "polars arrays": pl.DataFrame({"emb": pl.Series(list(ROWS), dtype=pl.Array(pl.Float32, 3))}),
}  # fmt: skip


@pytest.mark.parametrize("name", COLUMNS)
def test_vectors_of_any_library_are_features(name):
    made = TableVectorizer(vectors="emb")
    X = made.fit_transform(COLUMNS[name])
    np.testing.assert_array_equal(X, ROWS)
    assert X.dtype == (np.float64 if name == "lists" else np.float32)
    assert made.get_feature_names_out().tolist() == ["emb[0]", "emb[1]", "emb[2]"]


@pytest.mark.parametrize(
    ("dtype", "others", "found"),
    [("f2", {}, "f4"), ("f4", {"numeric": "size"}, "f8"), ("f8", {}, "f8"), ("i4", {}, "f8")],
)
def test_dense_features_are_as_precise_as_their_columns(dtype, others, found):
    X = TableVectorizer(vectors="emb", **others).fit_transform(FRAME.assign(emb=list(ROWS.astype(dtype))))
    assert type(X) is np.ndarray
    assert X.dtype == found


@pytest.mark.parametrize(("values", "is_dense"), [("abc", True), ("abcd", False)])
def test_few_categories_leave_vectors_dense(values, is_dense):
    frame = FRAME.assign(kind=np.resize(list(values), 30))
    X = TableVectorizer(categorical="kind", vectors="emb").fit_transform(frame)
    assert (type(X) is np.ndarray, X.dtype) == (is_dense, np.float32 if is_dense else np.float64)
    expected = np.hstack([frame[["kind"]].to_numpy() == list(values), ROWS])
    np.testing.assert_array_equal(X if is_dense else X.toarray(), expected)


@pytest.mark.parametrize("write", [list, json.dumps], ids=["lists", "texts"])
def test_lists_that_are_late_of_another_length_are_refused_and_may_be_text(write, tmp_path):
    rows = [{"ids": write([11, 12, 13][: 3 - (k == 130)]), "x": k / 2, "y": "ab"[k % 2]} for k in range(140)]
    (tmp_path / "t.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    said = r"t.jsonl:131: found a vector of length 2 in column 'ids' of row 130; .* name the column in text"
    with pytest.raises(DataFileError, match=said):
        read_table(tmp_path / "t.jsonl", labels="y", label_separator=",")
    data = read_table(tmp_path / "t.jsonl", labels="y", label_separator=",", text="ids")
    assert data.feature_names.tolist() == ["ids:11", "ids:12", "ids:13"]


def test_vectors_stand_beside_texts_categories_and_numbers():
    made = TableVectorizer("text", numeric="size", vectors="emb").fit(FRAME)
    X = made.transform(FRAME)
    apart = [TableVectorizer(**{kind: name}).fit_transform(FRAME) for kind, name in
             (("text", "text"), ("numeric", "size"), ("vectors", "emb"))]  # fmt: skip
    np.testing.assert_array_equal(X.toarray(), sp.hstack([*apart[:2], sp.csr_array(apart[2])]).toarray())
    assert made.get_feature_names_out()[-4:].tolist() == ["size", "emb[0]", "emb[1]", "emb[2]"]


BAD = {
    "length": ([[1.0, 2], [1.0]], "a vector of length 1.*one of length 2, as in the rows before"),
    "text": ([[1.0, 2], ["a", 2]], ".*'a', 2.*a vector, a list of numbers"),
    "object": ([[1.0, 2], [{}, 2]], ".* a vector, a list of numbers"),
    "number": ([[1.0, 2], 7], "'7'.*a vector, a list of numbers"),
    "nested": ([[1.0, 2], [[1], [2]]], ".* a vector, a list of numbers"),
    "inf": ([[1.0, 2], [1, float("inf")]], "a vector with inf at place 1.*one of finite numbers"),
    "huge": ([[1.0, 2], [10**400, 1]], ".* a vector, a list of numbers"),
    "sparse": ([[1.0, 2], sp.csr_array([[1.0, 2.0]])], ".* a vector, a list of numbers"),
    "cut": ([[1.0, 2], "[1.0 ... 2.0]"], ".* a vector, a list of numbers"),
    "missing": ([[1.0, 2], None], "no number"),
    "time": ([[1.0, 2], pd.NaT], "no number"),
    "NaN": ([[1.0, 2], np.float32(np.nan)], "no number"),
    "empty": ([[1.0, 2], []], "no number"),
    "gap": ([[1.0, 2], [1, None]], "no number"),
}


@pytest.mark.parametrize("y", [None, "text"])
def test_labels_that_are_no_rows_are_refused(y):
    with pytest.raises(ValueError, match=rf"such as frame\['tags'\]; it is {y!r}\."):
        TableModel(MaxMarginClassifier(), vectors="emb").fit(FRAME, y)


def test_frames_of_other_libraries_need_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="Data frames need pandas here: install pandas"):
        TableVectorizer(vectors="emb").fit(COLUMNS["polars lists"])


@pytest.mark.parametrize("fault", BAD)
def test_what_is_no_vector_is_refused_by_row(fault, tmp_path):
    cells, said = BAD[fault]
    frame = pd.DataFrame({"emb": pd.Series(cells, ["one", "two"], object)})
    with pytest.raises(ValueError, match=f"Row two, column 'emb' (is|has) {said}"):
        TableVectorizer(vectors="emb").fit(frame)
    if fault in ("sparse", "time", "NaN"):
        return  # which files do not hold
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f"{json.dumps({'emb': cell, 'y': 'a'})}\n" for cell in cells))
    with pytest.raises(DataFileError, match=r"t\.jsonl:2: found (?s:.*)in column 'emb' of row 1; expected"):
        read_table(path, TableVectorizer(vectors="emb"), labels="y", label_separator=",")


def test_other_lengths_than_those_of_the_training_rows_are_refused():
    made = TableVectorizer(vectors="emb").fit(FRAME)
    with pytest.raises(ValueError, match="of length 2; it must be one of length 3, as in the training rows"):
        made.transform(FRAME.assign(emb=list(ROWS[:, :2])))
    blocks = [FRAME, FRAME.assign(emb=list(ROWS[:, :2]))]
    with pytest.raises(ValueError, match="'emb' has vectors of 3 numbers in some rows and of 2 in others"):
        TableVectorizer(vectors="emb").fit_blocks(blocks)


@pytest.mark.parametrize("n_blocks", [1, 3])
def test_means_stand_for_what_is_missing(n_blocks):
    rows = ROWS.copy()
    rows[4, 1] = rows[29] = np.nan
    frame = FRAME.assign(emb=[*rows[:29], None])
    made = TableVectorizer(vectors="emb", missing_numeric="mean")
    made.fit_blocks([frame] if n_blocks == 1 else [frame[:9], frame[9:29], frame[29:]])
    expected = np.where(np.isnan(rows), np.nanmean(rows, axis=0, dtype=float), rows)
    np.testing.assert_allclose(made.transform(frame), expected, rtol=1e-6)
    np.testing.assert_allclose(made.transform(frame[29:]), expected[29:], rtol=1e-6)
    again = TableVectorizer.from_state(made.to_state())
    np.testing.assert_array_equal(again.transform(frame), made.transform(frame))
    for nothing, said in (
        ([None] * 30, "no vector in any"),
        (list(rows * [1, np.nan, 1]), "at position 1 in any"),
    ):
        with pytest.raises(ValueError, match=said):
            made.fit(FRAME.assign(emb=nothing))


@pytest.fixture
def table(tmp_path):
    def write(kind):
        path, frame = tmp_path / f"t.{kind}", FRAME.assign(tags=TAGS)
        if kind == "jsonl":
            frame.assign(emb=ROWS.tolist()).to_json(path, orient="records", lines=True)
        elif kind == "parquet":
            frame.to_parquet(path)
        else:
            frame.drop(columns="emb").assign(tags=[tag for [tag] in TAGS]).to_csv(path, index_label="key")
        return path

    return write


@pytest.mark.parametrize("block_rows", [None, 8])
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_files_with_vectors_are_read(table, kind, block_rows):
    data = read_table(table(kind), labels="tags", block_rows=block_rows)
    assert data.vectorizer.vectors == ("emb",)
    np.testing.assert_allclose(data.X[:, -3:], ROWS, rtol=1e-6)
    data = read_table(table(kind), labels="tags", vectors="emb", block_rows=block_rows)
    assert data.X.dtype == (np.float32 if kind == "parquet" else np.float64)


@pytest.mark.parametrize(("cells", "found"), [
    (ROWS.tolist(), "vectors"), (list(ROWS), "vectors"), ([None, *ROWS.tolist()[1:]], "vectors"),
    ([[1.0]] * 30, "a list"), ([["a", "b"]] * 30, "a list"), ([[True, False]] * 30, "a list"),
    (list(ROWS > 0), "a list"), (list(ROWS[:, None]), "a list"),
])  # fmt: skip
def test_lists_of_several_numbers_are_vectors_by_themselves(cells, found):
    frame = pd.DataFrame({"emb": pd.Series(cells, dtype=object), "size": FRAME["size"] + 0.5})
    if found == "vectors":
        assert columns_of_frame(frame, TableColumns()).vectors == ("emb",)
        return
    with pytest.raises(ValueError, match=f"Row 0, column 'emb' is {found}; it must be text or a number"):
        columns_of_frame(frame, TableColumns())


@pytest.mark.parametrize("write", [json.dumps, str, np.array_str, lambda row: str([*np.float64(row)])])
def test_vectors_may_be_written_as_text(write, tmp_path):
    rows = ROWS.astype(float).round(4).tolist()
    cells = [write(np.array(row) if write is np.array_str else row) for row in rows]
    frame = pd.DataFrame({"emb": cells, "size": FRAME["size"] + 0.5, "tags": [tag for [tag] in TAGS]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert columns_of_frame(frame.drop(columns="tags"), TableColumns()).vectors == ("emb",)
    found = read_table(tmp_path / "t.csv", labels="tags", label_separator=",").X[:, -3:]
    np.testing.assert_array_equal([found, with_vectors_as_rows(frame["emb"])], [rows, rows])
    others = {"emb": ["[1, 2]", "[a]"] * 15, "ids": ["[1, 2]", "[1, 2, 3]"] * 15}
    assert columns_of_frame(frame.assign(**others), TableColumns()).vectors == ()


@pytest.mark.parametrize("kind", ["text", "categorical"])
def test_vectors_are_neither_text_nor_categories_nor_labels(kind, table):
    with pytest.raises(ValueError, match="'emb' is a vector; it must be text; name the column in vectors"):
        TableVectorizer(**{kind: "emb"}).fit(FRAME)
    with pytest.raises(DataFileError, match="a vector in column 'emb' of row 0; expected text; name the col"):
        read_table(table("parquet"), labels="tags", **{kind: "emb"})
    with pytest.raises(DataFileError, match="column 'emb' of row 0; expected names or whole numbers"):
        read_table(table("parquet"), labels="emb", **{kind: "text"})


def test_numbers_of_bfloat16_are_read(tmp_path):
    halves = (ROWS.view(np.uint32) >> 16).astype("<u2")
    header = json.dumps({"v": {"dtype": "BF16", "shape": [30, 3], "data_offsets": [0, 180]}}).encode()
    (tmp_path / "v.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + halves.tobytes())
    np.testing.assert_allclose(read_vectors(tmp_path / "v.safetensors")[0], ROWS, rtol=2**-7)


def test_ids_are_text_also_as_bytes_but_no_objects(tmp_path):
    np.savez(tmp_path / "v.npz", vectors=ROWS, ids=NAMES.astype("S"))
    np.testing.assert_array_equal(read_vectors(tmp_path / "v.npz")[1], NAMES)
    np.savez(tmp_path / "v.npz", vectors=ROWS, ids=NAMES.astype(object))
    with pytest.raises(DataFileError, match=r"Python objects\); expected .*ids from ids.astype\(str\)"):
        read_vectors(tmp_path / "v.npz")


def test_lists_of_numbers_are_labels_where_they_are_said_to_be(tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"y": [[0, 1], [1, 1], [1, 0]], "x": [1.0, 2.5, 4.0]}), path)
    with pytest.warns(UserWarning, match="0 or 1"):
        assert read_table(path, labels="y").Y.n_labels == 2


NAMES = np.array([f"r{row}" for row in range(30)])


def _write(path, what):
    if path.suffix == ".safetensors":
        save_file(dict.fromkeys(what.split(), ROWS), path)
    elif path.suffix == ".npz":
        arrays = {"one": [ROWS], "two": [ROWS, ROWS], "lengths": [ROWS, NAMES[1:]]}.get(
            what, [ROWS[::-1], NAMES[::-1]]
        )
        names = ["ids", "vectors"][-len(arrays) :] if what != "two" else ["a", "b"]
        np.savez(path, **dict(zip(names, arrays[::-1], strict=True)))
    else:
        np.save(
            path, {"one": ROWS, "swapped": ROWS.astype(">f8"), "flat": ROWS[0], "text": NAMES[:, None]}[what]
        )


@pytest.mark.parametrize("file", ["a.npy", "swapped.npy", "a.npz", "ids.npz", "sparse.npz", "a.safetensors"])
@pytest.mark.parametrize("block_rows", [None, 7])
def test_files_of_vectors_stand_beside_tables(table, tmp_path, file, block_rows):
    path, rows = tmp_path / file, np.where(ROWS > 0, ROWS, 0) if file == "sparse.npz" else ROWS
    if file == "sparse.npz":
        sp.save_npz(path, sp.csr_array(rows))
    else:
        _write(path, {"a": "one"}.get(path.stem, path.stem))
    place = table("csv")
    place.write_text(place.read_text().replace("\n", "\nr").removesuffix("r"))
    beside = TableWithVectors(place, path, "key")
    data = read_table(beside, labels="tags", vectors="vectors", label_separator=",", block_rows=block_rows)
    np.testing.assert_array_equal(data.X, rows)


@pytest.mark.parametrize(("file", "what", "said"), [
    ("v.npy", "flat", r"arrays of float32\(3,\); expected one array \(rows, numbers\)"),
    ("v.npy", "text", "arrays of <U3"),
    ("v.npz", "two", "arrays of float32.*, float32"),
    ("v.npz", "lengths", r"30 vectors and ids of shape \(29,\)"),
    ("v.safetensors", "a b", "arrays of float32"),
])  # fmt: skip
def test_other_arrays_are_refused(tmp_path, file, what, said):
    _write(tmp_path / file, what)
    with pytest.raises(DataFileError, match=f"{file}: found {said}"):
        read_vectors(tmp_path / file)


@pytest.mark.parametrize("file", ["v.npy", "v.npz", "sparse.npz", "v.safetensors"])
def test_damaged_files_are_refused(tmp_path, file):
    path = tmp_path / file
    sp.save_npz(path, sp.csr_array(ROWS)) if file == "sparse.npz" else _write(path, "one")
    whole = path.read_bytes()
    for n_bytes in range(0, len(whole), 37):
        path.write_bytes(whole[:n_bytes])
        with pytest.raises(DataFileError, match="found an unreadable file"):
            read_vectors(path)


@pytest.mark.parametrize("block_rows", [None, 7])
@pytest.mark.parametrize(("vectors", "ids", "id", "said"), [
    (ROWS[:20], None, None, "found 20 vectors for the 30 rows of .*expected one per row"),
    (ROWS[[*range(30), 0]], None, None, "found 31 vectors for the 30 rows"),
    (ROWS[2:], range(2, 30), "key", "found no vector for 2 rows of .*t.csv, the first of id '0'"),
    (ROWS, range(30), None, "found ids of vectors; expected .* as id"),
    (ROWS, [0] * 30, "key", "found the id '0' more than once; expected distinct"),
])  # fmt: skip
def test_vectors_that_do_not_fit_the_rows_are_refused(table, tmp_path, vectors, ids, id, said, block_rows):
    path = tmp_path / "v.npz"
    np.savez(path, vectors=vectors, **({} if ids is None else {"ids": np.array(ids)}))
    beside = TableWithVectors(table("csv"), path, id)
    with pytest.raises(DataFileError, match=said):
        read_table(beside, labels="tags", vectors="vectors", label_separator=",", block_rows=block_rows)
