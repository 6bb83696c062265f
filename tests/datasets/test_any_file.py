import pickle

import numpy as np

from labelweave.datasets import (
    DataFileError,
    detect_format,
    make_taxonomy,
    make_text_like,
    read_any,
    write_hierarchical_arff,
    write_mulan,
    write_svmlight,
    write_xmc,
)
from refused import refusals

DATA = make_text_like(20, 60, 6, words_per_row=10)

test_what_makes_no_sense_is_refused = refusals(__file__)


def test_formats_are_found_by_name_or_content(tmp_path):
    write_xmc(DATA, tmp_path / "a.txt.gz")
    write_svmlight(DATA, tmp_path / "b.txt")
    write_svmlight(DATA, tmp_path / "b.svm")
    write_mulan(DATA, tmp_path / "c-train.arff", tmp_path / "c.xml")
    write_hierarchical_arff(make_taxonomy(5, 2), tmp_path / "d.arff")
    (tmp_path / "e.csv").write_text("f,y\n1,x\n2,x\n")
    (tmp_path / "f.arff").write_text("@attribute\n")
    formats = {
        "a.txt.gz": "xmc",
        "b.txt": "svmlight",
        "b.svm": "svmlight",
        "c-train.arff": "mulan",
        "d.arff": "hierarchical_arff",
        "e.csv": "table",
        "f.arff": "mulan",
    }
    assert {name: detect_format(tmp_path / name) for name in formats} == formats
    for name in ("a.txt.gz", "b.txt", "c-train.arff"):
        np.testing.assert_allclose(read_any(tmp_path / name).X.toarray(), DATA.X.toarray())
    assert len(read_any(tmp_path / "d.arff")) == 5
    assert read_any(tmp_path / "e.csv", labels="y", numeric="f").Y.positives.nnz == 2
    assert len(read_any(tmp_path / "a.txt.gz", format="xmc")) == 20


def test_data_file_error_survives_pickling():
    error = pickle.loads(pickle.dumps(DataFileError("a.arff", 3, "x", "y")))
    assert str(error) == "a.arff:3: found x; expected y."
