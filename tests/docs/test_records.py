"""Records of benchmarks state their origin, and are shown with it on every line."""

import json
import shlex
from pathlib import Path

import pytest
from benchmarks import ranking_peers
from benchmarks.__main__ import main, recorded_lines
from benchmarks.frame import RecordedRuns, flag, read_options, several

ROOT = Path(__file__).resolve().parents[2] / "benchmarks"
RECORDS = sorted((ROOT / "results").rglob("*.json"))
NEW = {"date": "2026-12-01", "processor": "some", "cores": 3, "commit": "0a1b2c3d"}
UNKNOWN = "[recorded before 2026-11-24, machine not recorded, commit not recorded]"
KNOWN = "[recorded 2026-12-01, some, 3 cores, 0a1b2c3d]"


def test_every_line_of_every_record_ends_with_its_origin():
    for path in RECORDS:
        lines = recorded_lines(json.loads(path.read_text("utf-8")), path.stem)
        assert lines, path
        for line in lines:
            _, _, ending = line.rpartition("  [recorded ")
            assert ending.endswith("]"), line
            assert ending.count(", ") >= 2, line


def test_parts_have_the_origin_of_their_own():
    record = {"a": {"measured": NEW, "F1": 0.51234567, "runs": [{"seconds": 2}]}, "b": {"F1": 0.25}}
    assert recorded_lines(record, "x") == [
        f"x, a: F1 0.512346  {KNOWN}",
        f"x, a, runs, 0: seconds 2  {KNOWN}",
        f"x, b: F1 0.25  {UNKNOWN}",
    ]


def test_runs_without_a_date_have_not_that_of_the_file():
    record = NEW | {"goal": 1, "runs": [{"seed": 0}, {"seed": 1, "measured": NEW}]}
    old = "[recorded before 2026-11-24, some, 3 cores, commit not recorded]"
    assert recorded_lines(record, "x") == [
        f"x: goal 1  {KNOWN}",
        f"x, runs, 0: seed 0  {old}",
        f"x, runs, 1: seed 1  {KNOWN}",
    ]


def test_a_table_is_shown_as_it_was_printed():
    assert recorded_lines(NEW | {"table": ["| a |", "| 1 |"], "runs": []}, "x") == [
        f"| a |  {KNOWN}",
        f"| 1 |  {KNOWN}",
    ]


def test_records_are_listed_and_shown(capsys):
    assert main([]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == len(RECORDS)
    assert all("  [recorded " in line for line in listed)
    name = "large_texts_cluster"
    assert main(["--show-recorded", name]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert all(line.startswith(name) and line.endswith("2 cores, 5f9b7592]") for line in shown)
    with pytest.raises(SystemExit) as ended:
        main(["--show-recorded", "nothing"])
    assert ended.value.code == 2


def test_recorded_trees_say_so_on_every_line(capsys, monkeypatch):
    monkeypatch.setattr(ranking_peers, "_draw", lambda *_: None)
    monkeypatch.setattr("sys.argv", ["ranking_peers", "--show-recorded"])
    ranking_peers.main()
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert any("napkinXC" in line for line in lines)
    assert all("  [recorded " in line for line in lines)


def test_commands_that_write_a_record_describe_the_machine():
    for path in ROOT.rglob("*.py"):
        text = path.read_text("utf-8")
        if "write_json(" in text and path.name != "frame.py":
            assert "describe_machine()" in text, path
        if path.parent.name != "peers" and path.name != "frame.py":
            assert "write_text(json" not in text, f"{path}: use write_json"


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
