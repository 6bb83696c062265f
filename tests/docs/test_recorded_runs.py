"""Benchmarks measure anew, go on, or show what is recorded and say so on every line."""

import json
import shlex

import pytest
from benchmarks.frame import flag, read_options, several
from benchmarks.recorded_runs import RecordedRuns

OLD = {"runs": [{"seed": 0, "error": 9.0}, {"seed": 5, "error": 7.0}], "processor": "old", "cores": 1}


def opened(path, *options):
    return RecordedRuns(read_options(None, options, records=path), paper={"error": 8.0})


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(OLD))
    return path


def test_everything_is_measured_by_default_and_replaces_what_is_recorded(path, capsys):
    record = opened(path)
    assert record.wants({"seed": 0})
    record.add({"seed": 0}, {"error": 8.5})
    assert not record.wants({"seed": 0})
    assert [run["error"] for run in record.runs] == [8.5]
    record.show("one\ntwo")
    assert capsys.readouterr().out == "one\ntwo\n"
    kept = json.loads(path.read_text())
    assert [(run["seed"], run["error"]) for run in kept["runs"]] == [(5, 7.0), (0, 8.5)]
    assert kept["paper"] == {"error": 8.0}
    assert kept["runs"][1]["measured"].keys() == {"date", "commit", "processor", "cores", "seconds"}


def test_going_on_measures_what_is_missing_and_says_what_is_recorded(path, capsys):
    record = opened(path, "--go-on")
    assert not record.wants({"seed": 0})
    assert record.find({"seed": 5})["error"] == 7.0
    assert record.wants({"seed": 1})
    record.add({"seed": 1}, {"error": 8.5})
    record.show("one\ntwo")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[1] for line in lines] == [
        "[partly recorded before 2026-11-24, old, 1 cores, commit not recorded]"
    ] * 2


def test_what_is_recorded_is_shown_with_date_machine_and_commit(path, capsys):
    opened(path).add({"seed": 0}, {"error": 8.5})
    record = opened(path, "--show-recorded")
    assert not record.wants({"seed": 1})
    assert not record.measures
    assert [run["seed"] for run in record.runs] == [5, 0]
    record.show("one")
    shown = capsys.readouterr().out
    measured = record.find({"seed": 0})["measured"]
    assert all(str(measured[name]) in shown for name in ("date", "commit", "processor", "cores"))
    with pytest.raises(SystemExit):
        opened(path, "--show-recorded", "--go-on")


def test_a_results_file_need_not_exist(tmp_path):
    record = opened(tmp_path / "new.json", "--go-on")
    record.add({"seed": 0}, {"error": 1.0})
    assert json.loads((tmp_path / "new.json").read_text())["runs"][0]["error"] == 1.0


def test_a_default_says_what_its_flag_takes(tmp_path, capsys):
    flags = {
        "rows": 200, "tol": flag(0.1, "to reach"), "sets": several(("a", "b")), "sizes": (1, 2),
        "n_jobs": flag(type=int), "quick": False, "out": tmp_path,
    }  # fmt: skip
    usual = read_options("About.", [], **flags)
    assert (usual.rows, usual.tol, usual.sets, usual.sizes) == (200, 0.1, ["a", "b"], [1, 2])
    assert (usual.n_jobs, usual.quick, usual.out) == (None, False, tmp_path)
    words = shlex.split("--rows 3 --tol 1 --sets b --sizes 4 5 --n-jobs 2 --quick --out x")
    given = read_options("About.", words, **flags)
    assert (given.rows, given.tol, given.sets, given.sizes) == (3, 1.0, ["b"], [4, 5])
    assert (given.n_jobs, given.quick, given.out) == (2, True, type(tmp_path)("x"))
    with pytest.raises(SystemExit):
        read_options("About.", ["--sets", "c"], **flags)
    assert "invalid choice: 'c'" in capsys.readouterr().err
