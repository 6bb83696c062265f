"""A type checker sees real types in users' code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"


@pytest.mark.slow
def test_mypy_finds_nothing_untyped_in_user_code(tmp_path):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--cache-dir", tmp_path]
    # as where the package is installed, mypy reads its source and reports nothing of it
    options = ["--follow-imports", "silent", HERE / "user_code.py"]
    found = subprocess.run(
        [*command, *options],
        env=os.environ | {"MYPYPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout


def test_kernels_are_a_module():
    lines = "import labelweave.kernels as k; from labelweave.kernels import RBFKernel; import labelweave; "
    check = "assert labelweave.kernels is k; assert k.RBFKernel is RBFKernel"
    subprocess.run([sys.executable, "-c", lines + check], check=True)
