import pickle

import numpy as np
import pytest

from labelweave.datasets import (
    DataFileError,
    LabeledData,
    detect_format,
    make_taxonomy,
    make_text_like,
    read_any,
    write_hierarchical_arff,
    write_mulan,
    write_svmlight,
    write_xmc,
)
from labelweave.labels import LabelMatrix

DATA = make_text_like(20, 60, 6, words_per_row=10)


def test_formats_are_found_by_name_or_content(tmp_path):
    write_xmc(DATA, tmp_path / "a.txt.gz")
    write_svmlight(DATA, tmp_path / "b.txt")
    write_svmlight(DATA, tmp_path / "b.svm")
    write_mulan(DATA, tmp_path / "c-train.arff", tmp_path / "c.xml")
    write_hierarchical_arff(make_taxonomy(5, 2), tmp_path / "d.arff")
    (tmp_path / "e.csv").write_text("f,y\n1,x\n2,x\n")
    formats = {
        "a.txt.gz": "xmc",
        "b.txt": "svmlight",
        "b.svm": "svmlight",
        "c-train.arff": "mulan",
        "d.arff": "hierarchical_arff",
        "e.csv": "table",
    }
    assert {name: detect_format(tmp_path / name) for name in formats} == formats
    for name in ("a.txt.gz", "b.txt", "c-train.arff"):
        np.testing.assert_allclose(read_any(tmp_path / name).X.toarray(), DATA.X.toarray())
    assert len(read_any(tmp_path / "d.arff")) == 5
    assert read_any(tmp_path / "e.csv", labels="y", numeric="f").Y.positives.nnz == 2
    assert len(read_any(tmp_path / "a.txt.gz", format="xmc")) == 20


def test_unknown_formats_and_options(tmp_path):
    (tmp_path / "t.txt").write_text("hello world\n")
    with pytest.raises(DataFileError, match="a format that neither name nor first line reveals"):
        detect_format(tmp_path / "t.txt")
    with pytest.raises(DataFileError, match="found a spreadsheet; expected one sheet, saved as CSV"):
        detect_format(tmp_path / "t.xlsx")
    with pytest.raises(ValueError, match="format is 'weka'"):
        read_any(tmp_path / "t.txt", format="weka")
    with pytest.raises(ValueError, match="'xml' is not an option of xmc files"):
        read_any(tmp_path / "t.txt", format="xmc", xml="t.xml")
    with pytest.raises(DataFileError, match="no such file"):
        read_any(tmp_path / "none")


def test_data_file_error_survives_pickling():
    error = pickle.loads(pickle.dumps(DataFileError("a.arff", 3, "x", "y")))
    assert str(error) == "a.arff:3: found x; expected y."


def test_labeled_data_checks_its_parts():
    Y = LabelMatrix.from_any([[1], [0]])
    with pytest.raises(ValueError, match="X has 1 rows but Y has 2"):
        LabeledData(np.ones((1, 1)), Y)
    with pytest.raises(ValueError, match="feature_names has 2 entries"):
        LabeledData(np.ones((2, 1)), Y, np.array(["a", "b"]))
    assert "2 rows, 1 features, 1 labels" in repr(LabeledData(np.ones((2, 1)), Y))
