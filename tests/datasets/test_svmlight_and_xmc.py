"""Sparse text files: svmlight's, and those of the Extreme Classification Repository."""

import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.datasets import DataFileError, LabeledData, read_svmlight, read_xmc, write_svmlight, write_xmc
from labelweave.datasets.data_file import read_blocks
from labelweave.datasets.xmc import parse_carefully, parse_quickly
from labelweave.labels import LabelMatrix

FILES = settings(max_examples=60)
_SHORT = st.integers(-(10**6), 10**6).map(lambda number: number / 64)  # scikit-learn writes 16 digits
_ANY = st.floats(allow_nan=False, allow_infinity=False)


def write(path, text):
    path.write_text(text, newline="")
    return path


@st.composite
def labeled_data(draw, numbers=_SHORT):
    n, d, n_labels = draw(st.tuples(*[st.integers(1, 5)] * 3))
    value = st.just(0.0) | numbers
    X = draw(st.lists(st.lists(value, min_size=d, max_size=d), min_size=n, max_size=n))
    bits = st.lists(st.integers(0, 1), min_size=n_labels, max_size=n_labels)
    Y = draw(st.lists(bits, min_size=n, max_size=n))
    return LabeledData(sp.csr_array(np.array(X)), LabelMatrix.from_any(Y))


@FILES
@given(data=labeled_data(), zipped=st.booleans())
def test_round_trip_keeps_empty_rows_and_width(tmp_path, data, zipped):
    path = tmp_path / ("t.svm.gz" if zipped else "t.svm")
    write_svmlight(data, path)
    again = read_svmlight(path, n_labels=data.Y.n_labels)
    np.testing.assert_array_equal(again.X.toarray(), data.X.toarray())
    assert (again.Y.positives != data.Y.positives).nnz == 0
    assert again.X.indices.dtype == np.int32


def test_one_based_and_comments(tmp_path):
    path = write(tmp_path / "t.svm", "# made by hand\n0,2 1:0.5 3:2 # row\n 2:1\n")
    data = read_svmlight(path)
    np.testing.assert_array_equal(data.X.toarray(), [[0.5, 0, 2], [0, 1, 0]])
    assert read_svmlight(path, zero_based=True).X.shape[1] == 4
    np.testing.assert_array_equal(data.Y.positives.toarray(), [[1, 1], [0, 0]])
    assert data.Y.words == ["0", "2"]
    all_numbers = read_svmlight(path, n_labels=4).Y
    np.testing.assert_array_equal(all_numbers.positives.toarray(), [[1, 0, 1, 0], [0, 0, 0, 0]])


def test_queries_of_rankings_are_told_and_faults_beside_them_found(tmp_path):
    path = tmp_path / "q.svm"
    path.write_text("1 qid:1 1:2 2:1\n0\tqid:2 1:1 # qid:5\n1 1:1 # qid:2 1:1\n")
    with pytest.warns(UserWarning, match=r"q.svm: the query of a row \(qid\) is ignored, in 2 rows"):
        assert read_svmlight(path).X.toarray().tolist() == [[2, 1], [1, 0], [1, 0]]
    path.write_text("1 qid:1 1:x\n")
    with pytest.raises(DataFileError, match=r"q.svm:1: found '1:x'"), pytest.warns(UserWarning, match="qid"):
        read_svmlight(path)


def test_a_file_that_may_count_from_zero_or_one_is_warned_of(tmp_path):
    path = write(tmp_path / "t.svm", "0 1:0.5 3:2\n")
    with pytest.warns(UserWarning, match="t.svm: features may count from 0 or 1, as neither 0 nor 4 occurs"):
        assert read_svmlight(path, n_features=4).first_feature == 1
    assert read_svmlight(path, n_features=3).first_feature == read_svmlight(path).first_feature == 1
    for zero_based in (True, False):
        data = read_svmlight(path, n_features=4, zero_based=zero_based)
        assert data.X.toarray()[0].tolist() == ([0, 0.5, 0, 2] if zero_based else [0.5, 0, 2, 0])
        assert data.first_feature == 1 - zero_based


@pytest.mark.parametrize("positive", ["1", "+1"])
def test_two_classes_by_their_signs(tmp_path, positive):
    data = read_svmlight(write(tmp_path / "t.svm", f"-1 1:2\n{positive} 2:1\n-1 1:1\n"))
    assert data.Y.names.tolist() == ["-1", "1"]
    np.testing.assert_array_equal(data.Y.positives.toarray(), [[1, 0], [0, 1], [1, 0]])


NUMBERED = {
    "from 1": ([[1], [2, 3], [3]], ["1", "2", "3"]),
    "large": ([[444_800], [444_802], [444_800, 444_801]], ["444800", "444801", "444802"]),
    "with gaps": ([[5], [10, 100], []], ["5", "10", "100"]),
    "by size": ([[9], [10], [11]], ["9", "10", "11"]),
    "one": ([[7], [7], []], ["7"]),
    "from 0": ([[0], [2, 1], [0]], ["0", "1", "2"]),
    "nine digits": ([[999_999_999], [0], [1]], ["0", "1", "999999999"]),
    "two": ([[3], [1], [1, 3]], ["1", "3"]),
    "none": ([[], [], []], []),
    "a row": ([[4, 2]], ["2", "4"]),
}


def rows_of(listed):
    return "".join(f"{','.join(map(str, row))} 1:{number}.5\n" for number, row in enumerate(listed))


@pytest.mark.parametrize("name", NUMBERED)
def test_labels_are_the_numbers_that_occur(tmp_path, name):
    listed, names = NUMBERED[name]
    data = read_svmlight(write(tmp_path / "t.svm", rows_of(listed)))
    expected = [[float(int(word) in row) for word in names] for row in listed]
    np.testing.assert_array_equal(data.Y.to_dense(), np.reshape(expected, (len(listed), len(names))))
    assert data.Y.words == names
    if names:
        write_svmlight(data, tmp_path / "again.svm")
        assert read_svmlight(tmp_path / "again.svm").Y.words == names
    if max(map(int, names), default=0) < 10**7:  # which a header may include in its counts
        header = f"{len(listed)} 3 {max(map(int, names), default=0) + 1}\n"
        xmc = read_xmc(write(tmp_path / "t.txt", header + rows_of(listed)))
        np.testing.assert_array_equal(xmc.Y.to_dense(), data.Y.to_dense())
        assert xmc.Y.words == names
        write_xmc(xmc, tmp_path / "u.txt")
        assert read_xmc(tmp_path / "u.txt").Y.words == names


@pytest.mark.parametrize("format", ["svmlight", "xmc"])
def test_later_files_have_the_labels_of_the_first_in_their_places(tmp_path, format):
    def read(listed, **options):
        header = "" if format == "svmlight" else f"{len(listed)} 3 10\n"
        path = write(tmp_path / ("t.svm" if format == "svmlight" else "t.txt"), header + rows_of(listed))
        return (read_svmlight if format == "svmlight" else read_xmc)(path, **options).Y

    later = read([[3], [9]], label_names=read([[1], [3, 2]]).names)
    assert later.words == ["1", "2", "3", "9"]
    np.testing.assert_array_equal(later.to_dense(), [[0, 0, 1, 0], [0, 0, 0, 1]])
    every = {"n_labels": 10} if format == "svmlight" else {"all_labels": True}
    assert read([[3], [9]], **every).words == [str(number) for number in range(10)]
    assert read([[3]], label_names=["x", 3]).words == ["x", "3"]


def test_names_that_are_no_numbers_are_written_as_places(tmp_path):
    for names in (["b", "a"], ["1", "01"], ["1", "2.0"], ["-1", "1"], ["1", "9999999999"]):
        Y = LabelMatrix(sp.csr_array([[1, 0], [1, 1]]), names=names)
        write_svmlight(LabeledData(np.eye(2), Y), tmp_path / "t.svm")
        assert (tmp_path / "t.svm").read_text().startswith("0 0:1")
    Y = LabelMatrix(sp.csr_array([[1, 0], [1, 1]]), names=["8", "3"])
    write_svmlight(LabeledData(np.eye(2), Y), tmp_path / "t.svm")
    assert [line.split()[0] for line in (tmp_path / "t.svm").read_text().splitlines()] == ["8", "3,8"]


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
@given(data=labeled_data(_ANY), zipped=st.booleans())
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


def test_faults_in_later_blocks_name_their_line(tmp_path, monkeypatch):
    monkeypatch.setattr("labelweave.datasets.data_file.read_blocks", lambda path, *_: read_blocks(path, 16))
    rows = ["0 0:1 1:2"] * 50
    data = read_xmc(write(tmp_path / "t.txt", "\n".join(["50 2 1", *rows]) + "\n"))
    np.testing.assert_array_equal(data.X.toarray(), [[1, 2]] * 50)
    rows[40] = "0 0:1 9:2"
    with pytest.raises(DataFileError, match=r":42: found the feature index '9'"):
        read_xmc(write(tmp_path / "t.txt", "\n".join(["50 2 1", *rows]) + "\n"))


def test_gzip_without_last_line_end_is_whole(tmp_path):
    (tmp_path / "t.txt.gz").write_bytes(gzip.compress(b"1 2 2\n0 0:1"))
    assert read_xmc(tmp_path / "t.txt.gz").X.nnz == 1
