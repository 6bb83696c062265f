"""The program as a whole: help, exit codes, pipes and signals, some of it in real processes."""

from __future__ import annotations

import io
import subprocess
import sys
import time

import numpy as np
import pytest
from rich.console import Console

import labelweave
from labelweave import KernelLogisticClassifier, MaxMarginClassifier
from labelweave.app.cli import program
from labelweave.app.cli.messages import print_json, size_of
from labelweave.app.cli.progress import GapBar, GapLines
from labelweave.datasets.table_files import raw_tables
from labelweave.estimators import progress_lines

PYTHON = [sys.executable, "-c", "from labelweave.app.cli import main; main()"]
BARE_HELP = """
import sys, types
package = types.ModuleType("labelweave")
package.__path__ = [{folder!r}]
sys.modules["labelweave"] = package
from labelweave.app.cli import main
try:
    main(["--help"])
except SystemExit:
    print("numpy" in sys.modules, "rich" in sys.modules)
"""
INTERRUPTED = """
import os, signal
from labelweave.estimators import progress_lines
from labelweave.app.cli import main, progress
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


def test_help_imports_nothing_heavy():
    script = BARE_HELP.format(folder=labelweave.__path__[0])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False False"


@pytest.mark.parametrize(
    "words", [["frobnicate"], ["--frobnicate"], ["fit"], ["predict", "x"], ["inspect", "x", "y"]]
)
def test_bad_words(run, words):
    done = run(*words, code=2)
    assert done.err.startswith("labelweave: ")
    assert done.err.count("\n") == 1


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
    assert (
        run("fit", "a.csv", "--model", "max-margin", "--out", "m.lw", code=2).err == f"labelweave: {line}\n"
    )


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
        run("fit", "a.csv", "--model", "max-margin", "--out", "m.lw")


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
    run(
        "fit", "d.txt", "--model", "max-margin", "--tol", 0.1, "--out", "m.lw"
    )  # compiles, which is not to be interrupted
    words = ["fit", "d.txt", "--tol", "1e-9", "--out", "m.lw"]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert "interrupted; the model so far is saved in m.lw" in done.stderr.splitlines()[-1]
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
    return KernelLogisticClassifier(tol=1e-2, max_learning_iter=20), X, (X[:, 0] > 0).astype(int)


def test_learning_is_told_from_the_gap():
    states = []
    lines = GapLines(seconds=1e6)  # only callbacks show it
    lines.show = lambda: states.append(lines.state)
    model, X, y = _learning_model()
    model.set_callbacks(lines).fit(X, y)
    evaluations = len(model.learning_trace_)
    assert 3 < evaluations < 20
    told = [f"learning {k} of at most 20" for k in range(1, 20)]
    assert states[:20] == [*told, "at the end of learning"]
    gaps = [state.removeprefix("gap about ") for state in states[20:]]
    assert gaps[0] == f"{next(record.gap for record in model.trace_ if record.gap < 1):.1e}"
    assert gaps[-1] == f"{model.duality_gap_:.1e}"
    flat = MaxMarginClassifier().set_callbacks(lines).fit(X, np.eye(2)[y])
    assert states[-1] == f"gap about {flat.duality_gap_:.1e}"  # nothing is left of the learning


def test_the_bar_shows_learning():
    terminal = io.StringIO()
    bar = GapBar(Console(file=terminal, force_terminal=True, width=80))
    model, X, y = _learning_model()
    model.set_callbacks(bar).fit(X, y)
    assert bar.done == bar.steps == 40
    assert f"gap about {model.duality_gap_:.1e}" in terminal.getvalue()


def test_lines_come_only_after_a_while(capsys):
    MaxMarginClassifier().set_callbacks(GapLines("fitting")).fit(np.eye(4), np.eye(4))
    assert capsys.readouterr().err == ""
    MaxMarginClassifier().set_callbacks(GapLines("fitting", seconds=0)).fit(np.eye(4), np.eye(4))
    assert "labelweave: fitting, 0 s: gap about " in capsys.readouterr().err


def test_lines_come_also_while_the_gap_stays(capsys):
    lines = GapLines("fitting", seconds=0.05)
    lines.setup(None, None)
    time.sleep(0.5)
    lines.teardown(None, None)
    time.sleep(0.2)  # for a line that was being written
    assert set(capsys.readouterr().err.splitlines()) <= {
        "labelweave: fitting, 0 s",
        "labelweave: fitting, 1 s",
    }
    time.sleep(0.3)
    assert capsys.readouterr().err == ""


def test_json_and_sizes(capsys, tmp_path):
    print_json({"a": [float("nan"), 1.5], "b": "ö"})
    assert capsys.readouterr().out == '{\n  "a": [\n    null,\n    1.5\n  ],\n  "b": "ö"\n}\n'
    for size, text in ((12, "12 bytes"), (1500, "1.5 kB"), (2_500_000, "2.5 MB")):
        (tmp_path / "f").write_bytes(bytes(size))
        assert size_of(tmp_path / "f") == text


def test_demo_on_few_rows(run, monkeypatch):
    monkeypatch.setattr(progress_lines, "_QUIET_SECONDS", 1e6)  # a busy machine is slow enough for a line
    done = run("demo", "--rows", 300)
    for words in ("taxonomy", "independent", "frequent tags", "micro-F1", "duality gap", "borgbackup"):
        assert words in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert done.err == ""


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["evalute"], "Did you mean 'evaluate'?"),
        (["fit", "a.csv", "--out", "m.lw", "--model", "lowrank"], "Did you mean 'low-rank'?"),
        (["fit", "a.csv", "--out", "m.lw", "--kernel", "rfb"], "Did you mean 'rbf'?"),
        (["fit", "a.csv", "--out", "m.lw", "--kernal", "rbf"], "Did you mean one of: '--kernel'"),
    ],
)
def test_what_is_nearly_right_is_asked_for(run, words, asked):
    error = run(*words, code=2).err
    assert asked in error
    assert error.count("\n") == 1


def test_no_spreadsheet_runs_what_is_predicted(run, table_model, tmp_path):
    rows = (tmp_path / "a.csv").read_text().replace("p0,", "=HYPERLINK(1),").replace("p1,", "-7,")
    (tmp_path / "b.csv").write_text(rows)
    lines = run("predict", table_model, "b.csv", "--top", 1, "--output-format", "tsv").out.splitlines()
    assert lines[1].startswith("'=HYPERLINK(1)\t")
    assert lines[2].startswith("-7\t")
    (tmp_path / "p.tsv").write_text("\n".join(lines) + "\n")
    assert next(raw_tables(tmp_path / "p.tsv")).columns["id"][:2] == ["=HYPERLINK(1)", "-7"]


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "a.csv", "--labels", "tags", "--out", "a.csv"),
        ("fit", "a.csv", "--labels", "tags", "--taxonomy", "t.csv", "--out", "./t.csv"),
        ("predict", "m.lw", "a.csv", "--out", "a.csv"),
        ("predict", "m.lw", "a.csv", "--out", "again.lw"),
        ("queries", "m.lw", "a.csv", "--answers", "t.csv", "--out", "t.csv"),
        ("report", "m.lw", "a.csv", "--out", "m.lw"),
        ("decide", "m.lw", "a.csv", "--tune-threshold", "macro_f1", "--out", "a.csv"),
        ("audit", "a.csv", "--labels", "tags", "--out", "a.csv"),
        ("label", "a.csv", "--new-label", "x", "--answers", "a.csv"),
        ("fit", "a.csv", "--labels", "tags", "--key", "key", "--out", "key"),
        ("predict", "m.lw", "a.csv", "--key", "key", "--out", "./key"),
    ],
)
def test_files_that_are_read_are_not_written_over(run, tmp_path, words):
    (tmp_path / "t.csv").write_text("id,label,answer\n")
    (tmp_path / "m.lw").write_text("a model")
    (tmp_path / "key").write_bytes(bytes(range(32)))
    (tmp_path / "again.lw").symlink_to("m.lw")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    said = run(*words, code=2).err
    assert " is a file to read; give another name to write to." in said
    assert said.count("\n") == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
