"""Benchmarks say which data they lack, what these are and where they go."""

import numpy as np
import pytest
from benchmarks.needed_data import needs_data

from labelweave.datasets import read_mulan


def test_missing_data_are_named_with_what_they_are(tmp_path):
    for read, words in (
        (lambda: np.load(tmp_path / "usps" / "usps.npz"), "handwritten digits of USPS"),
        (lambda: read_mulan(tmp_path / "mulan" / "a.arff", tmp_path / "mulan" / "a.xml"), "Mulan's format"),
    ):
        with pytest.raises(SystemExit, match=f"not at hand: .*{tmp_path}.*{words}.*put them there"):
            needs_data(read)()


def test_other_errors_are_left_alone(tmp_path):
    with pytest.raises(FileNotFoundError):
        needs_data((tmp_path / "other").read_text)()

    def fails():
        raise ValueError("usps/ is odd")

    with pytest.raises(ValueError, match="odd"):
        needs_data(fails)()
