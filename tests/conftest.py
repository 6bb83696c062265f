"""Make the slow twins of tests/reference and the scripts importable; leave to `make slow` what takes long."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1] / "scripts"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    listed = set((Path(__file__).parent / "slow_tests.txt").read_text().splitlines())
    for item in items:
        if not listed.isdisjoint((item.nodeid, item.nodeid.partition("[")[0])):
            item.add_marker("slow")
