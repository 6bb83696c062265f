"""The readers on real files with known counts."""

import pathlib
import time

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.datasets import read_any, read_hierarchical_arff, read_mulan, read_xmc, write_xmc

DATA = pathlib.Path(__file__).parents[2].parent / "shared" / "data"
pytestmark = [
    pytest.mark.shared_data,
    pytest.mark.skipif(not DATA.is_dir(), reason="the real data sets are absent"),
]

MULAN = [
    ("bibtex", "bibtex", 4880, 2515, 1836, 159, 2.40),
    ("delicious", "delicious", 12920, 3185, 500, 983, 19.0),
    ("scene", "scene", 1211, 1196, 294, 6, 1.07),
    ("yeast", "yeast", 1500, 917, 103, 14, 4.24),
    ("emotions", "emotions", 391, 202, 72, 6, 1.87),
    ("tmc2007", "tmc2007-500", 21519, 7077, 500, 22, 2.16),
]


@pytest.mark.parametrize(("folder", "stem", "n_train", "n_test", "d", "n_labels", "mean"), MULAN)
def test_mulan_files(folder, stem, n_train, n_test, d, n_labels, mean):
    parts = [
        read_mulan(DATA / "mulan" / folder / f"{stem}-{part}.arff", DATA / "mulan" / folder / f"{stem}.xml")
        for part in ("train", "test")
    ]
    assert [len(part) for part in parts] == [n_train, n_test]
    for part in parts:
        assert part.X.shape[1] == d
        assert part.Y.n_labels == n_labels
        assert not part.Y.has_missing
        assert sp.issparse(part.X) == (folder in ("bibtex", "delicious", "tmc2007"))
    assert sum(part.Y.positives.nnz for part in parts) / (n_train + n_test) == pytest.approx(mean, abs=0.02)
    assert list(parts[0].label_names) == list(parts[1].label_names)


def test_the_xml_file_beside_is_found():
    data = read_any(DATA / "mulan" / "scene" / "scene-test.arff")
    assert list(data.label_names)[:2] == ["Beach", "Sunset"]


def test_hierarchical_files():
    train, test = (
        read_hierarchical_arff(DATA / "imclef07a" / f"ImCLEF07A_{part}.arff") for part in ("Train", "Test")
    )
    assert (len(train), len(test), train.X.shape[1], train.Y.n_labels) == (10000, 1006, 80, 96)
    inner = {parent for parent, _ in train.parents}
    assert len(set(train.label_names) - inner) == 63
    np.testing.assert_array_equal(np.diff(train.Y.positives.indptr), 3)
    assert train.parents == test.parents


def test_sparse_files_are_read_quickly(tmp_path):
    path, start = DATA / "mulan" / "delicious" / "delicious-train.arff", time.process_time()
    data = read_any(path)
    write_xmc(data, tmp_path / "t.txt")
    again = read_xmc(tmp_path / "t.txt")
    read = time.process_time()
    for line in path.read_text().splitlines():
        for cell in line.split(","):
            cell.split()
    assert read - start < 60 * (time.process_time() - read)  # about 13
    assert (again.X != data.X).nnz == 0
    assert (again.Y.positives != data.Y.positives).nnz == 0
