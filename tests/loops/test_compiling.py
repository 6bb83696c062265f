"""Loops compile, and are cached where possible, whichever folders are writable."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import labelweave
from labelweave.foundation import loops

PROGRAM = """
import json, numpy as np
from labelweave.foundation.loops.coordinate_ascent import in_runs
found = in_runs(np.array([3, 1, 2]), np.array([1, 0]), 2).tolist()
stats = getattr(in_runs, "stats", None)
print(json.dumps([found, str(stats and stats.cache_path), stats and len(stats.cache_hits)]))
"""


@pytest.fixture
def locked(tmp_path):
    """A copy of the package next to which nothing can be cached, since a file is in the way."""
    source = Path(labelweave.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__", "*.json", "*.gz", "estimators", "app")
    copy = shutil.copytree(source, tmp_path / "locked" / "labelweave", ignore=ignored)
    here = copy / "foundation" / "loops"
    for folder in [here, *(path for path in here.iterdir() if path.is_dir())]:
        (folder / "__pycache__").touch()
    (tmp_path / "temporary").mkdir()

    def run(program=PROGRAM, **variables):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        places = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null", "TMPDIR": str(tmp_path / "temporary")}
        environment = kept | places | {"PYTHONPATH": str(copy.parent)} | variables
        done = subprocess.run(
            [sys.executable, "-c", program], check=False, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def private(tmp_path):
    return tmp_path / "temporary" / f"labelweave-loops-{os.getuid()}"


pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners of files")


@pytest.mark.slow
def test_where_numba_finds_no_folder_loops_go_to_a_private_one(locked, private):
    found, folder, hits = locked()
    assert Path(folder).parent == private
    assert private.stat().st_mode & 0o777 == 0o700
    assert hits == 0
    assert locked() == [found, folder, 1]


@pytest.mark.slow
def test_a_folder_that_others_can_write_is_not_read(locked, private):
    private.mkdir()
    private.chmod(0o777)
    found, folder, _ = locked()
    assert folder == "None"
    assert list(private.iterdir()) == []
    private.rmdir()
    private.symlink_to(private.parent)
    assert locked()[:2] == [found, "None"]


def test_the_folder_that_the_user_names_comes_first(locked, private, tmp_path):
    _, folder, _ = locked(NUMBA_CACHE_DIR=str(tmp_path / "named"))
    assert Path(folder).parent == tmp_path / "named"
    assert not private.exists()


@pytest.mark.slow
def test_numbas_other_switches_work(locked, tmp_path):
    found, _, _ = locked()
    assert found == [2, 3, 1]
    assert locked(NUMBA_DISABLE_JIT="1") == [found, "None", None]
    too_many = (
        PROGRAM.replace("[1, 0]", "[0, 0]")
        .replace("found =", "try:")
        .replace(
            "stats =",
            """\
except IndexError as error: found = str(error)
stats =""",
        )
    )
    # in a separate cache: Numba's does not distinguish checked loops from others
    checks = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "checked")}
    assert "out of bounds" in locked(too_many, **checks)[0]


def test_all_loops_are_compiled_in_this_way():
    sources = {path.name: path.read_text() for path in Path(loops.__file__).parent.rglob("*.py")}
    del sources["compiling.py"]
    assert [
        name for name, text in sources.items() if "numba import njit" in text or "numba.njit" in text
    ] == []
