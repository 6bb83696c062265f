"""`make help` lists every command, and CONTRIBUTING.md names existing targets and files."""

import fnmatch
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split())
FOLDERS = "attacks", "benchmarks", "docs", "examples", "scripts", "src", "tests"
CALLED_BY_OTHERS = {"attacks/peer_trials.py"}


@pytest.fixture(scope="module")
def listed():
    if shutil.which("make") is None:
        pytest.skip("no make here")
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def test_help_lists_every_target(listed):
    assert set(re.findall(r"^make (\w+)$", listed, re.MULTILINE)) == TARGETS


def test_help_lists_every_command_that_no_target_runs(listed):
    told = listed + MAKEFILE
    for path in (*ROOT.glob("attacks/*.py"), *ROOT.glob("scripts/*.py")):
        name = path.relative_to(ROOT).as_posix()
        is_command = re.search(r"^(@command\(|if __name__)", path.read_text(encoding="utf-8"), re.MULTILINE)
        if is_command and name not in CALLED_BY_OTHERS:
            names = name, name.removesuffix(".py").replace("/", ".")
            assert any(f"{called}\n" in told or f"{called} " in told for called in names), name


def test_targets_that_are_named_exist():
    assert set(re.findall(r"`make (\w+)", PAGE)) <= TARGETS


def test_files_that_are_named_exist():
    files = set(re.findall(r"[\w*/]+\.py\b", PAGE))
    folders = {name.rstrip("/") for name in re.findall(r"`(\w+/[\w/]*)`", PAGE)} - {"docs/_build"}
    modules = {
        name.replace(".", "/") + ".py" for name in re.findall(r"-m ((?:attacks|benchmarks)\.\w+)", PAGE)
    }
    assert len(files) > 20
    assert len(folders) > 5
    assert modules
    here = [path for folder in FOLDERS for path in (ROOT / folder, *(ROOT / folder).rglob("*"))]
    known = [f"/{path.relative_to(ROOT).as_posix()}" for path in here]
    assert [name for name in files | folders | modules if not fnmatch.filter(known, f"*/{name}")] == []
