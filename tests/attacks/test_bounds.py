"""Loops run with bounds checks, and an index out of range is detected."""

import os
import subprocess
import sys

import pytest

_OUTSIDE = """
import numpy as np
from labelweave.foundation.loops.sparse_products import cut_rows
starts, columns = np.array([0, 2]), np.array([0, 5], np.int32)
cut_rows(starts, columns, 1, np.empty((2, 1), np.int64))
"""


def _run(folder, *command):
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(folder)}
    return subprocess.run(
        [sys.executable, *command], check=False, capture_output=True, text=True, env=environment, timeout=900
    )


@pytest.mark.slow
def test_an_index_out_of_range_is_seen(tmp_path):
    done = _run(tmp_path, "-c", _OUTSIDE)
    assert "IndexError" in done.stderr, done.stderr


@pytest.mark.slow
def test_the_command_asks_for_its_settings():
    done = subprocess.run(
        [sys.executable, "-m", "attacks.bounds"], check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 1
    assert "make boundscheck does" in done.stderr
