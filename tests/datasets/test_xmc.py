from __future__ import annotations

import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.datasets import DataFileError, LabeledData, read_xmc, write_xmc
from labelweave.datasets.data_file import read_blocks
from labelweave.datasets.xmc import parse_carefully, parse_quickly
from labelweave.labels import LabelMatrix

FILES = settings(max_examples=60)


def write(path, text):
    path.write_text(text, newline="")
    return path


@st.composite
def labeled_data(draw):
    n, d, n_labels = draw(st.tuples(*[st.integers(1, 5)] * 3))
    value = st.just(0.0) | st.floats(allow_nan=False, allow_infinity=False)
    X = draw(st.lists(st.lists(value, min_size=d, max_size=d), min_size=n, max_size=n))
    bits = st.lists(st.integers(0, 1), min_size=n_labels, max_size=n_labels)
    Y = draw(st.lists(bits, min_size=n, max_size=n))
    return LabeledData(sp.csr_array(np.array(X)), LabelMatrix.from_any(Y))


def test_a_small_file(tmp_path):
    text = "5 3 2\n1,0 0:0.5 2:1e1\n 1:-2\n1:-2 0:3\n0\n\n"
    for ending in ("\n", "\r\n"):
        data = read_xmc(write(tmp_path / "t.txt", text.replace("\n", ending)))
        np.testing.assert_array_equal(
            data.X.toarray(), [[0.5, 0, 10], [0, -2, 0], [3, -2, 0], [0, 0, 0], [0, 0, 0]]
        )
        np.testing.assert_array_equal(data.Y.positives.toarray(), [[1, 1], [0, 0], [0, 0], [1, 0], [0, 0]])
        assert data.X.indices.dtype == np.int32
    assert read_xmc(tmp_path / "t.txt", dtype=np.float32).X.dtype == np.float32


@FILES
@given(data=labeled_data(), zipped=st.booleans())
def test_round_trip(tmp_path, data, zipped):
    path = tmp_path / ("t.txt.gz" if zipped else "t.txt")
    write_xmc(data, path)
    again = read_xmc(path, all_labels=True)
    np.testing.assert_array_equal(again.X.toarray(), data.X.toarray())
    assert (again.Y.positives != data.Y.positives).nnz == 0
    assert again.X.shape == data.X.shape
    assert again.Y.shape == data.Y.shape


@settings(max_examples=300)
@given(text=st.text(alphabet="01279:,. \n-e", max_size=30))
def test_the_quick_parser_agrees_with_the_careful_one(text):
    block = (text + "\n").encode()
    quick = parse_quickly(block, (8, 8))
    if quick is None:
        return
    careful = parse_carefully("name", 1, block, (8, 8))
    for field in ("feature_counts", "features", "values", "label_counts", "labels"):
        np.testing.assert_array_equal(getattr(quick, field), getattr(careful, field))


def test_the_quick_parser_takes_ordinary_lines():
    assert parse_quickly(b"1,0 0:0.5 2:1e-3\n 1:2\n0\n1 3:-1\n", (8, 8)) is not None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", None, "an empty file"),
        ("\ufeff", None, "an empty file"),
        ("1 2\n0 0:1\n", 1, "'1 2'"),
        ("a b c\n", 1, "three integers"),
        ("1 2 2", None, "0 rows"),
        ("2 2 2\n0 0:1\n", None, "1 rows; expected 2"),
        ("1 2 2\n0 0:1\n0 0:1\n", 3, "another row"),
        ("1 2 2\n2 0:1\n", 2, "the label index '2'"),
        ("1 2 2\n-1 0:1\n", 2, "the label index '-1'"),
        ("1 2 2\n0 2:1\n", 2, "the feature index '2'"),
        ("1 2 2\n0 0.0:1\n", 2, "the feature index '0.0'"),
        ("1 2 2\n0 0:x\n", 2, "'0:x'"),
        ("1 2 2\n0 0:nan\n", 2, "a finite number"),
        ("1 2 2\n0 0:inf\n", 2, "a finite number"),
        ("1 2 2\n0 0:1e999\n", 2, "a finite number"),
        ("1 2 2\n0 0:\n", 2, "'0:'"),
        ("1 2 2\n0 1 0:1\n", 2, "'1'"),
        ("1 2 2\n0, 0:1\n", 2, "the label index ''"),
        ("1 2 2\n0 0:1 0:2\n", 2, "the feature 0 more than once"),
        ("1 2 2\n1,1 0:1\n", 2, "the label 1 more than once"),
        ("2 2 2\n0 0:1\n0 0:12", 3, "without a line end"),
        ("2 2 2\n0 0:1\n0 0:1\n\n \n0\n", 4, "another row"),
    ],
)
def test_malformed_files_name_the_line(tmp_path, text, line, words):
    with pytest.raises(DataFileError, match=words) as caught:
        read_xmc(write(tmp_path / "t.txt", text))
    assert caught.value.line == line


def test_a_byte_that_is_not_utf8(tmp_path):
    (tmp_path / "t.txt").write_bytes(b"2 2 2\n0 0:1\n0 \xff:1\n")
    with pytest.raises(DataFileError, match=r"t.txt:3: found the byte 0xff at position 3"):
        read_xmc(tmp_path / "t.txt")


def test_faults_in_later_blocks_name_their_line(tmp_path, monkeypatch):
    monkeypatch.setattr("labelweave.datasets.xmc.read_blocks", lambda path: read_blocks(path, 16))
    rows = ["0 0:1 1:2"] * 50
    data = read_xmc(write(tmp_path / "t.txt", "\n".join(["50 2 1", *rows]) + "\n"))
    np.testing.assert_array_equal(data.X.toarray(), [[1, 2]] * 50)
    rows[40] = "0 0:1 9:2"
    with pytest.raises(DataFileError, match=r":42: found the feature index '9'"):
        read_xmc(write(tmp_path / "t.txt", "\n".join(["50 2 1", *rows]) + "\n"))


def test_unobserved_labels_cannot_be_written(tmp_path):
    with pytest.raises(ValueError, match="unobserved"):
        write_xmc(LabeledData(np.ones((1, 1)), LabelMatrix.from_any([[np.nan]])), tmp_path / "t.txt")


def test_gzip_without_last_line_end_is_whole(tmp_path):
    (tmp_path / "t.txt.gz").write_bytes(gzip.compress(b"1 2 2\n0 0:1"))
    assert read_xmc(tmp_path / "t.txt.gz").X.nnz == 1
