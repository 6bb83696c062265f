"""What is recorded of benchmarks says where it comes from, and is shown with it on every line."""

import json
from pathlib import Path

import pytest
from benchmarks import tree_peers
from benchmarks.__main__ import main, recorded_lines

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
    assert main(["--show-recorded", "dask_auto"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert all(line.startswith("dask_auto") and line.endswith("2 cores, 5f9b7592]") for line in shown)
    with pytest.raises(SystemExit) as ended:
        main(["--show-recorded", "nothing"])
    assert ended.value.code == 2


def test_recorded_trees_say_so_on_every_line(capsys, monkeypatch):
    monkeypatch.setattr(tree_peers, "_draw", lambda *_: None)
    monkeypatch.setattr("sys.argv", ["tree_peers", "--show-recorded"])
    tree_peers.main()
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
