"""The source stays small enough to read, and its imports go one way."""

import configparser
import re
from functools import cache
from pathlib import Path

import pytest
from files_entered import entered, fits
from import_graph import cycles, import_graph
from source_size import measure

LONGEST_FUNCTION, LONGEST_FILE = 60, 500
# of these, 11,000 are fits on Dask, trees over labels, label texts, wrong labels, probabilities, queries
LINES = 83_013
CODE = 45_837
FILES_ENTERED = {
    "max-margin, RBF": 25,
    "kernel logistic, learned": 35,
    "kernel logistic, learned, tree": 36,
    "low rank": 29,
    "label graph, learned": 29,
}
# imports inside functions that go back; none in the end
GOING_BACK: set[tuple[str, str]] = set()


@pytest.fixture(scope="module")
def size():
    return measure()


def test_no_function_and_no_file_is_too_long_to_read(size):
    assert {name: lines for name, lines in size.functions.items() if lines > LONGEST_FUNCTION} == {}
    assert {name: lines for name, lines in size.files.items() if lines > LONGEST_FILE} == {}


def test_the_source_does_not_grow(size):
    assert size.total <= LINES
    assert size.code <= CODE


@pytest.mark.parametrize("name", FILES_ENTERED)
def test_a_fit_enters_few_files(name):
    files, _ = entered(fits()[name])
    assert len(files) <= FILES_ENTERED[name], "\n".join(files)


@cache
def _graph(functions):
    graph = import_graph(functions=functions)
    return {name: {to for to in found if (name, to) not in GOING_BACK} for name, found in graph.items()}


@pytest.mark.parametrize("functions", [False, True])
def test_no_modules_import_each_other(functions):
    assert cycles(_graph(functions)) == []


def _floors():
    """Say how high each module stands, contract by contract."""
    parser = configparser.ConfigParser()
    parser.read(Path(__file__).parents[1] / ".importlinter")
    for contract in parser.values():
        if contract.get("type") == "layers":
            inside = f"{contract['containers']}." if "containers" in contract else ""
            lines = [line for line in contract["layers"].split("\n") if line.strip()]
            names = {height: re.split("[|:]", line) for height, line in enumerate(reversed(lines))}
            yield {inside + name.strip(): height for height in names for name in names[height]}


@pytest.mark.parametrize("floors", list(_floors()), ids=lambda floors: next(iter(floors)))
def test_no_import_inside_a_function_goes_up(floors):
    def home(module):
        return next((name for name in floors if f"{module}.".startswith(f"{name}.")), None)

    up = [
        f"{name} -> {target}"
        for name, targets in _graph(True).items()
        for target in targets
        if (here := home(name)) and (there := home(target)) and here != there
        if floors[there] > floors[here]
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
