"""The examples of docs/data_formats.md are read as the page says."""

import re
from pathlib import Path

import numpy as np
import pytest

from labelweave import datasets

PAGE = Path(__file__).parents[2] / "docs" / "data_formats.md"


def examples(heading):
    """Return the code blocks of a section."""
    text = PAGE.read_text(encoding="utf-8")
    section = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return re.findall(r"^```\n(.*?)^```$", section[1], re.MULTILINE | re.DOTALL)


def written(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_mulan(tmp_path):
    arff, xml = examples("Mulan and MEKA")
    data = datasets.read_mulan(written(tmp_path, "a.arff", arff), written(tmp_path, "a.xml", xml))
    assert list(data.label_names) == ["beach", "sea"]
    np.testing.assert_array_equal(data.Y.to_signs(), [[1, -1], [-1, 0]])


def test_hierarchical(tmp_path):
    arff, graph = examples("Hierarchical ARFF")
    data = datasets.read_hierarchical_arff(written(tmp_path, "a.arff", arff))
    assert data.parents == (("1", "1/2"), ("1", "1/3"))
    np.testing.assert_array_equal(data.Y.to_signs(), [[1, 1, -1], [0, 0, 0]])
    data = datasets.read_hierarchical_arff(written(tmp_path, "b.arff", graph))
    assert data.taxonomy.parents["GO3"] == ("GO1", "GO2")
    np.testing.assert_array_equal(data.Y.to_signs(), [[1, 1, 1, 1], [1, 1, -1, -1]])


def test_xmc(tmp_path):
    (text,) = examples("Extreme Classification Repository")
    data = datasets.read_xmc(written(tmp_path, "a.txt", text))
    np.testing.assert_array_equal(data.Y.to_signs(), [[1, 1], [-1, -1]])
    assert list(data.label_names) == ["0", "2"]
    np.testing.assert_array_equal(data.X.toarray(), [[0.5, 0, 0, 1.25], [0, 0.75, 0, 0]])


def test_svmlight(tmp_path):
    (text,) = examples("svmlight")
    data = datasets.read_svmlight(written(tmp_path, "a.svm", text))
    np.testing.assert_array_equal(data.Y.to_signs(), [[1, -1, 1], [-1, 1, -1], [-1, -1, -1]])
    assert data.X.shape == (3, 4)


def test_table(tmp_path):
    pytest.importorskip("pandas")
    (text,) = examples("Tables")
    path = written(tmp_path, "a.csv", text)
    data = datasets.read_table(path, labels="tags", label_separator="|", text="title", numeric="price")
    assert list(data.label_names) == ["fast", "numeric"]
    np.testing.assert_array_equal(data.Y.to_signs(), [[1, 1], [0, 0]])
