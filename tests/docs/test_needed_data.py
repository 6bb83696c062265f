"""Benchmarks name missing data and programs, describe them and where they belong."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.needed_data import first_file, needs_data

from labelweave.datasets import read_mulan

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = {
    "margin_speed": "multilabel.html",
    "auto_peers": "mulan.sourceforge.net",
    "auto_quality": "Bogatinovski",
    "model_choices": "mulan.sourceforge.net",
    "ranking_peers": "make_environment.py",
    "papers.usps": "multiclass.html",
}
RUN = """
import runpy, sys
for name in sys.argv[1:]:
    sys.argv = [name]
    try:
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")
    except SystemExit as ended:
        print(f"code {ended.code}", file=sys.stderr)
"""


def test_missing_data_are_named_with_what_they_are(tmp_path, capsys):
    for read, words in (
        (lambda: np.load(tmp_path / "usps" / "usps.npz"), "handwritten digits of USPS"),
        (lambda: read_mulan(tmp_path / "mulan" / "a.arff", tmp_path / "mulan" / "a.xml"), "Mulan's format"),
        (lambda: first_file(tmp_path / "mulan" / "a", "*-train.arff"), "Mulan's format"),
        ((tmp_path / "data.noun").read_text, "WordNet 3.0"),
    ):
        with pytest.raises(SystemExit) as ended:
            needs_data(read)()
        assert ended.value.code == 2
        said = capsys.readouterr().err
        assert said.startswith(f"These data are not at hand: {tmp_path}")
        assert words in said
        assert "put them there" in said


def test_other_errors_are_left_alone(tmp_path):
    with pytest.raises(FileNotFoundError):
        needs_data((tmp_path / "other").read_text)()

    def fails():
        raise ValueError("usps/ is odd")

    with pytest.raises(ValueError, match="odd"):
        needs_data(fails)()
    with pytest.raises(subprocess.CalledProcessError):
        needs_data(lambda: subprocess.run([sys.executable, "-c", "exit(1)"], check=True))()


def test_a_command_that_another_one_runs_has_said_what_is_missing():
    with pytest.raises(SystemExit) as ended:
        needs_data(lambda: subprocess.run([sys.executable, "-c", "exit(2)"], check=True))()
    assert ended.value.code == 2


def test_commands_without_data_or_programs_end_with_a_sentence(tmp_path):
    shutil.copytree(
        ROOT / "benchmarks", tmp_path / "here" / "benchmarks", ignore=shutil.ignore_patterns("results")
    )
    path = os.pathsep.join([str(tmp_path / "here"), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-c", RUN, *COMMANDS],
        cwd=tmp_path / "here",
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    said = done.stderr.split("code 2\n")
    assert len(said) == len(COMMANDS) + 1, done.stderr
    for name, words in zip(COMMANDS, said, strict=False):
        assert COMMANDS[name] in words, name
        assert "not at hand" in words
