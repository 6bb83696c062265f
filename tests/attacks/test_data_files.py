"""Broken data files are read completely or refused in one line; thousands by ``python -m
attacks.data_files``.
"""

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("resource")
data_files = pytest.importorskip("attacks.data_files")


@pytest.mark.filterwarnings(
    "ignore:.*look like identifiers",
    "ignore:.*different value in every row",
    "ignore:.*hold 1 and missing cells only",
)
def test_the_files_that_are_broken_are_whole_before(tmp_path):
    found = data_files.read_whole(tmp_path)
    assert [len(data) for data in found] == [24, 24, 12, 12, 12, 24, 24, 18, 12]
    assert all(data.Y.n_labels > 1 for data in found)


def test_no_broken_file_does_harm():
    assert list(data_files.attack(range(450))) == []


def test_harm_is_seen(tmp_path, monkeypatch):
    def harmful(path, **options):
        raise IndexError("list index out of range")

    monkeypatch.setattr(data_files, "read_any", harmful)
    assert data_files.violation(len(data_files.KINDS) * data_files._CONVERTED + 9, tmp_path).startswith(
        "a bare IndexError"
    )
    monkeypatch.setattr(data_files, "read_any", lambda path, **options: np.array(["x"]).astype(float))
    assert data_files.violation(len(data_files.KINDS) * data_files._CONVERTED + 9, tmp_path).startswith(
        "a bare ValueError"
    )
