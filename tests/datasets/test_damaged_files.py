"""Any damage to a file gives the library's own error, or a file that is complete in another way."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave import datasets

DATA = datasets.make_text_like(4, 20, 6, words_per_row=4, labels_per_row=2)
FORMATS = ("mulan", "label xml", "hierarchical", "xmc", "xmc.gz", "svmlight", "csv", "json")


def written(folder, kind):
    """Write a file; return its path and what reads it."""
    endings = {"csv": "csv", "json": "jsonl", "parquet": "parquet", "xmc.gz": "txt.gz"}
    path = folder / f"t.{endings.get(kind, 'txt')}"
    if kind in ("mulan", "label xml"):
        other = folder / "other"
        datasets.write_mulan(DATA, path if kind == "mulan" else other, other if kind == "mulan" else path)
        return (
            path,
            lambda: datasets.read_mulan(path, other) if kind == "mulan" else datasets.read_mulan(other, path),
        )
    if kind == "hierarchical":
        datasets.write_hierarchical_arff(datasets.make_taxonomy(4, 3, depth=2, branching=2), path)
        return path, lambda: datasets.read_hierarchical_arff(path)
    if kind in ("xmc", "xmc.gz"):
        datasets.write_xmc(DATA, path)
        return path, lambda: datasets.read_xmc(path)
    if kind == "svmlight":
        datasets.write_svmlight(DATA, path)
        return path, lambda: datasets.read_svmlight(path, n_features=20, n_labels=6, zero_based=True)
    pandas = pytest.importorskip("pandas")
    rows = [{"tags": "a|b", "text": f"word {row}", "size": row / 8} for row in range(4)]
    lines = [json.dumps(row) for row in rows]
    if kind == "csv":
        lines = ["tags,text,size", *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("".join(line + "\n" for line in lines))
    if kind == "parquet":
        pandas.DataFrame(rows).to_parquet(path)
    return path, lambda: datasets.read_table(
        path, labels="tags", label_separator="|", text="text", numeric="size"
    )


@pytest.mark.parametrize("kind", [*FORMATS, "parquet"])
def test_cuts_at_every_byte(tmp_path, kind):
    path, read = written(tmp_path, kind)
    whole = read()
    content = path.read_bytes()
    for cut in range(0, len(content), 7 if kind == "parquet" else 1):
        path.write_bytes(content[:cut])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                part = read()
            except datasets.DataFileError:
                continue
        sure = len(part) - any("no line end" in str(one.message) for one in caught)
        full = len(part) == len(whole)
        # a format without a count of rows cannot detect missing rows
        at_row_end = content[cut - 1 : cut] == b"\n" or content[cut : cut + 1] == b"\n"
        assert full or at_row_end or sure < len(part), cut
        np.testing.assert_array_equal(part.Y.to_dense()[:sure], whole.Y.to_dense()[:sure])
        if kind not in ("csv", "json", "parquet"):
            dense = [np.asarray(X.todense() if hasattr(X, "todense") else X) for X in (part.X, whole.X)]
            np.testing.assert_array_equal(dense[0], dense[1][: len(part)])


@settings(max_examples=150)
@given(kind=st.sampled_from(FORMATS), where=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255))
@pytest.mark.filterwarnings("ignore:.*the last row has no line end", "ignore:.*listed values are duplicates")
@pytest.mark.filterwarnings("ignore:.*attributes repeat names")
def test_a_changed_byte_gives_no_other_error(tmp_path, kind, where, byte):
    path, read = written(tmp_path, kind)
    content = bytearray(path.read_bytes())
    content[int(where * len(content))] = byte
    path.write_bytes(content)
    try:
        data = read()
    except datasets.DataFileError:
        return
    assert np.isfinite(data.X.data if hasattr(data.X, "nnz") else data.X).all()
