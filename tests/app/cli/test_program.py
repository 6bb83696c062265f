"""The program as a whole: help, exit codes, pipes and signals, some of it in real processes."""

import io
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

import labelweave
from labelweave import HyperparameterSearch, KernelLogisticClassifier, MaxMarginClassifier
from labelweave.app.cli import program
from labelweave.app.cli.fit_words import GapBar
from labelweave.app.cli.messages import print_json, size_of
from labelweave.datasets.table_files import raw_tables
from labelweave.estimators import progress_lines

PYTHON = [sys.executable, "-c", "from labelweave.app.cli.program import main; main()"]
INTERRUPTED = """
import os, signal
from labelweave.estimators import progress_lines
from labelweave.app.cli import fit_words as progress, main
progress.GapLines.show = lambda self: self.state and os.kill(os.getpid(), signal.SIGINT)
main()
"""


def test_help_and_version(run):
    assert run("--help").out == run().out
    assert "labelweave demo" in run("--help").out
    assert run("--version").out == f"labelweave {labelweave.__version__}\n"


def test_help_of_commands_is_that_of_the_list(run):
    listed = " ".join(run("--help").out.partition("Commands:\n")[2].split())
    for name in program._COMMANDS:
        line = program.main.get_command(None, name).get_short_help_str(100)
        assert f"{name} {line}" in listed
        assert line in run(name, "--help").out


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(28, "No space left on device", "m.lw"), "m.lw: No space left on device."),
        (MemoryError("Unable to allocate 3 TiB"), "there is too little memory (Unable to allocate 3 TiB)."),
        (MemoryError(), "there is too little memory."),
        (ImportError("Tables need pandas."), "Tables need pandas."),
        (ValueError("two\nlines"), "two lines"),
    ],
)
def test_errors_are_one_line(run, monkeypatch, error, line):
    def fail(*_):
        raise error

    monkeypatch.setattr("labelweave.app.cli.fitting.read_training_rows", fail)
    assert run("fit a.csv --model max-margin --out m.lw", code=2).err == f"labelweave: {line}\n"


@pytest.mark.parametrize(
    "words", [("predict", "m.lw", "a.csv"), ("evaluate", "m.lw", "a.csv"), ("inspect", "m.lw", "--json")]
)
def test_closed_streams_are_told(table_model, monkeypatch, capsys, words):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as end:
        program.main([*words])
    assert end.value.code == 2
    assert "Standard output is closed" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SystemExit) as end:
        program.main(["predict", "m.lw", "-", "--out", "p.csv"])
    assert end.value.code == 2
    assert "Standard input is closed" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stderr", None)
    progress_lines._to_stderr("a line")
    with pytest.raises(SystemExit) as end:
        program.main(["predict", "m.lw", "a.csv", "--out", "p.csv"])
    assert end.value.code == 0


def test_unexpected_errors_are_not_hidden(run, monkeypatch):
    monkeypatch.setattr("labelweave.app.cli.fitting.read_training_rows", lambda *_: {}["x"])
    with pytest.raises(KeyError):
        run("fit a.csv --model max-margin --out m.lw")


@pytest.mark.slow
def test_real_process_and_closed_pipe(run, table_model, tmp_path):
    head, *rows = (tmp_path / "a.csv").read_text().splitlines()
    (tmp_path / "big.csv").write_text("\n".join([head, *rows * 3000]) + "\n")
    process = subprocess.Popen(
        [*PYTHON, "predict", table_model, "big.csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline().startswith(b'{"id": "p0"')
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 1
    done = subprocess.run(
        [*PYTHON, "predict", "none.lw", "a.csv"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "labelweave: none.lw: No such file or directory.\n"


@pytest.mark.slow
def test_a_signal_during_the_fit_saves_and_ends_with_130(run, matrix_files):
    run("fit d.txt --model max-margin --tol 0.1 --out m.lw")  # compiles, which is not to be interrupted
    words = ["fit", "d.txt", "--tol", "1e-9", "--out", "m.lw"]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert "The model so far is saved in m.lw." in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert 0 < labelweave.load("m.lw").duality_gap_ < 1


def test_the_bar_shows_the_gap_and_goes_away():
    terminal = io.StringIO()
    bar = GapBar(Console(file=terminal, force_terminal=True, width=80))
    model = MaxMarginClassifier(tol=1e-2).set_callbacks(bar).fit(np.eye(4), np.eye(4))
    assert bar.done == bar.steps == 20
    assert model.duality_gap_ <= 10 ** (-bar.done / 10)
    assert f"gap about {model.duality_gap_:.1e}" in terminal.getvalue()


def _learning_model():
    X = np.random.default_rng(0).normal(size=(40, 3))
    return (
        KernelLogisticClassifier(tol=1e-2, hyperparameters=HyperparameterSearch(max_learning_iter=20)),
        X,
        (X[:, 0] > 0).astype(int),
    )


def test_the_bar_shows_learning():
    terminal = io.StringIO()
    bar = GapBar(Console(file=terminal, force_terminal=True, width=80))
    model, X, y = _learning_model()
    model.set_callbacks(bar).fit(X, y)
    assert bar.done == bar.steps == 40
    assert f"gap about {model.duality_gap_:.1e}" in terminal.getvalue()


def test_json_and_sizes(capsys, tmp_path):
    print_json({"a": [float("nan"), 1.5], "b": "ö"})
    assert capsys.readouterr().out == '{\n  "a": [\n    null,\n    1.5\n  ],\n  "b": "ö"\n}\n'
    for size, text in ((12, "12 bytes"), (1500, "1.5 kB"), (2_500_000, "2.5 MB")):
        (tmp_path / "f").write_bytes(bytes(size))
        assert size_of(tmp_path / "f") == text


def test_demo_on_few_rows(run, monkeypatch):
    monkeypatch.setattr(progress_lines, "_QUIET_SECONDS", 1e6)  # a busy machine is slow enough for a line
    done = run("demo --rows 300")
    for words in ("taxonomy", "independent", "frequent tags", "micro-F1", "duality gap", "borgbackup"):
        assert words in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert done.err == ""


def test_no_spreadsheet_runs_what_is_predicted(run, table_model, tmp_path):
    rows = (tmp_path / "a.csv").read_text().replace("p0,", "=HYPERLINK(1),").replace("p1,", "-7,")
    (tmp_path / "b.csv").write_text(rows)
    lines = run("predict", table_model, "b.csv", "--top", 1, "--output-format", "tsv").out.splitlines()
    assert lines[1].startswith("'=HYPERLINK(1)\t")
    assert lines[2].startswith("-7\t")
    (tmp_path / "p.tsv").write_text("\n".join(lines) + "\n")
    assert next(raw_tables(tmp_path / "p.tsv")).columns["id"][:2] == ["=HYPERLINK(1)", "-7"]
