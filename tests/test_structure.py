"""The source stays small enough to read, and its imports go one way."""

import configparser
import json
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from files_entered import entered, fits
from import_graph import cycles, import_graph
from limits import measured
from source_size import measure

LONGEST_FUNCTION, LONGEST_FILE = 60, 500
ROOT = Path(__file__).parents[1]
LIMITS = json.loads((ROOT / "tests" / "limits.json").read_text())


@pytest.fixture(scope="module")
def size():
    return measure()


def test_no_function_and_no_file_is_too_long_to_read(size):
    assert {name: lines for name, lines in size.functions.items() if lines > LONGEST_FUNCTION} == {}
    assert {name: lines for name, lines in size.files.items() if lines > LONGEST_FILE} == {}


def test_nothing_grows():
    assert {name: number for name, number in measured().items() if number > LIMITS[name]} == {}


@pytest.mark.parametrize("name", fits())
def test_a_fit_enters_few_files(name):
    files, stack = entered(fits()[name])
    assert len(files) <= LIMITS[f"files that a fit enters: {name}"], "\n".join(files)
    assert len(stack) <= LIMITS["depth of calls in a fit"], "\n".join(stack)


def test_limits_fall():
    """Lowered by ``scripts/limits.py --lower``; raised only if an issue says so, in a separate commit."""
    command = ["git", "show", "HEAD~1:tests/limits.json"]
    try:
        before = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no earlier commit here has limits")
    raised = {name: (was, LIMITS.get(name)) for name, was in json.loads(before).items()}
    assert {name: pair for name, pair in raised.items() if pair[1] is None or pair[1] > pair[0]} == {}


@cache
def _graph(functions):
    return import_graph(functions=functions)


@pytest.mark.parametrize("functions", [False, True])
def test_no_modules_import_each_other(functions):
    assert cycles(_graph(functions)) == []


def _layers():
    """Yield the height of each module, by contract."""
    parser = configparser.ConfigParser()
    parser.read(Path(__file__).parents[1] / ".importlinter")
    for contract in parser.values():
        if contract.get("type") == "layers":
            inside = f"{contract['containers']}." if "containers" in contract else ""
            lines = [line for line in contract["layers"].split("\n") if line.strip()]
            names = {height: re.split("[|:]", line) for height, line in enumerate(reversed(lines))}
            yield {inside + name.strip(): height for height in names for name in names[height]}


@pytest.mark.parametrize("layers", list(_layers()), ids=lambda layers: next(iter(layers)))
def test_no_import_inside_a_function_goes_up(layers):
    def home(module):
        return next((name for name in layers if f"{module}.".startswith(f"{name}.")), None)

    up = [
        f"{name} -> {target}"
        for name, targets in _graph(True).items()
        for target in targets
        if (here := home(name)) and (there := home(target)) and here != there
        if layers[there] > layers[here]
    ]
    assert up == []


def test_cycles_are_found(tmp_path):
    modules = {
        "__init__": "",
        "a": "from house.b import g\n",
        "b": "def g():\n    from house.c import h\n",
        "c": "from importlib import import_module\ndef h():\n    import_module('house.a')\n",
        "d": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.e import z\n",
        "e": "from house.d import y\n",
    }
    (tmp_path / "house").mkdir()
    for name, text in modules.items():
        (tmp_path / "house" / f"{name}.py").write_text(text)
    assert cycles(import_graph(tmp_path / "house", functions=False)) == []
    assert cycles(import_graph(tmp_path / "house")) == [["house.a", "house.b", "house.c"]]


def test_the_slow_tests_that_are_listed_exist():
    root = Path(__file__).parents[1]
    listed = (root / "tests" / "slow_tests.txt").read_text().splitlines()
    assert listed == sorted(set(listed))
    for name in listed:
        file, *_, function = name.partition("[")[0].split("::")
        assert f"def {function}(" in (root / file).read_text(), name
