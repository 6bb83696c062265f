"""The program as a whole: help, exit status, pipes, signals and Ctrl-C, partly in separate processes."""

import csv
import ctypes
import io
import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from rich.console import Console

import labelweave
from commands import TABLE
from labelweave import HyperparameterSearch, KernelLogisticClassifier, MaxMarginClassifier
from labelweave.app.cli import demo, program
from labelweave.app.cli.fit_words import GapBar
from labelweave.app.cli.flags import DataFlags
from labelweave.app.cli.messages import print_json, print_lines, size_of
from labelweave.datasets.table_files import raw_tables
from labelweave.estimators import progress_lines
from labelweave.estimators.binary_relevance import fit as binary_relevance
from labelweave.estimators.low_rank import fit as low_rank_fit
from labelweave.model_files import safe_file

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


def test_the_main_path_in_fresh_processes(tmp_path):
    """Each command alone, in a folder of its own, where standard output takes ASCII only."""
    table = TABLE.replace("game", "Spiel für 2").replace("p5,", '"p\n5",').replace(",?", ",net")
    (tmp_path / "a.csv").write_bytes(("\ufeff" + table).replace("\n", "\r\n").encode())
    flags, env = ["--labels", "tags", "--label-separator", ","], os.environ | {"PYTHONIOENCODING": "ascii"}
    said = []
    for words in ("fit a.csv --model max-margin -o m.lw", "predict m.lw a.csv --output-format csv",
                  "evaluate m.lw a.csv --json", "inspect m.lw", "report m.lw a.csv -o r.html"):  # fmt: skip
        call = [sys.executable, "-m", "labelweave", *words.split(), *(flags if "fit" in words else ())]
        done = subprocess.run(call, cwd=tmp_path, env=env, capture_output=True, check=False)
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr.decode()
        said.append(done.stdout.decode())
    printed = {(int(row["id"]), row["label"]) for row in csv.DictReader(said[1].splitlines())}
    expected = labelweave.load(tmp_path / "m.lw").predict(pd.read_csv(tmp_path / "a.csv"))
    assert printed == {(row, name) for row, names in enumerate(expected) for name in names}
    assert json.loads(said[2])["rows"] == 6
    assert "Spiel für 2" in said[3]
    assert "Spiel für 2" in (tmp_path / "r.html").read_text("utf-8")


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
    run("fit d.txt --model max-margin --tol 0.1 --out m.lw")  # compiles, which must not be interrupted
    words = ["fit", "d.txt", "--tol", "1e-9", "--out", "m.lw"]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert "The model so far is saved in m.lw." in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert 0 < labelweave.load("m.lw").duality_gap_ < 1


@pytest.mark.parametrize("learns", [False, True])
def test_the_bar_shows_learning_and_the_gap_and_goes_away(learns):
    terminal = io.StringIO()
    bar = GapBar(Console(file=terminal, force_terminal=True, width=80))
    model, X, y = _learning_model() if learns else (MaxMarginClassifier(tol=1e-2), np.eye(4), np.eye(4))
    model.set_callbacks(bar).fit(X, y)
    assert bar.done == bar.steps == (40 if learns else 20)
    assert learns or model.duality_gap_ <= 10 ** (-bar.done / 10)
    assert f"gap about {model.duality_gap_:.1e}" in terminal.getvalue()


def _learning_model():
    X = np.random.default_rng(0).normal(size=(40, 3))
    return (
        KernelLogisticClassifier(tol=1e-2, hyperparameters=HyperparameterSearch(max_learning_iter=20)),
        X,
        (X[:, 0] > 0).astype(int),
    )


def test_json_and_sizes(capsys, tmp_path):
    print_json({"a": [float("nan"), 1.5], "b": "ö"})
    assert capsys.readouterr().out == '{\n  "a": [\n    null,\n    1.5\n  ],\n  "b": "ö"\n}\n'
    for size, text in ((12, "12 bytes"), (1500, "1.5 kB"), (2_500_000, "2.5 MB")):
        (tmp_path / "f").write_bytes(bytes(size))
        assert size_of(tmp_path / "f") == text
    print_lines({"label": "w" * 10**6}, 14)  # in full it takes seconds, and hides what is around it
    assert capsys.readouterr().out.replace("\n", "").replace(" ", "") == f"label{'w' * 4000}..."


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


def _interrupt(monkeypatch, place, name, call=1):
    original, calls = getattr(place, name), []

    def interrupted(*arguments, **options):
        calls.append(name)
        if len(calls) == call:
            signal.raise_signal(signal.SIGINT)
        return original(*arguments, **options)

    monkeypatch.setattr(place, name, interrupted)


@pytest.mark.parametrize(
    ("words", "place", "name"),
    [
        (["low-rank", "--penalty", "ridge"], low_rank_fit.ReducedRankRidge, "fit"),
        (["binary-relevance"], binary_relevance, "make_ridge"),
    ],
)
def test_what_has_no_model_so_far_ends_without_a_file(
    run, matrix_files, tmp_path, monkeypatch, words, place, name
):
    _interrupt(monkeypatch, place, name)
    before = sorted(path.name for path in tmp_path.iterdir())
    done = run("fit d.txt --out m.lw --model", *words, code=130)
    assert done.err.split("\n", 1)[-1] == "labelweave: interrupted; nothing was written.\n"
    assert done.out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_labels_that_were_fitted_are_kept(run, matrix_files, monkeypatch):
    _interrupt(monkeypatch, binary_relevance, "_fit_label", 4)
    done = run("fit d.arff --out m.lw --model binary-relevance --loss log_loss", code=130)
    assert done.err.splitlines()[-1] == (
        "labelweave: The fit was interrupted after 3 of 5 labels; the weights of the others are 0. The model "
        "so far is saved in m.lw."
    )
    assert np.flatnonzero(labelweave.load("m.lw").coef_.any(axis=1)).tolist() == [0, 1, 2]
    assert ", interrupted" in run("inspect m.lw").out


def test_sigterm_removes_what_is_being_written(run, matrix_files, tmp_path, monkeypatch):
    monkeypatch.setattr(safe_file, "_unnamed", lambda *_: None)
    before, handler = sorted(tmp_path.iterdir()), signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(os, "fsync", lambda _: signal.raise_signal(signal.SIGTERM))
    done = run("convert d.txt e.svm --lossy", code=143)
    assert done.err == "labelweave: terminated; no file is incomplete.\n"
    assert sorted(tmp_path.iterdir()) == before
    assert signal.getsignal(signal.SIGTERM) is handler


NAMES = np.array(["game::cards", "game::chess", "net::chat", "net::mail", "net::web", "role::program"])


budgets = []


class OneCall(MaxMarginClassifier):
    def __init__(self, time_budget=1.0, n_jobs=1):
        super().__init__(n_jobs=n_jobs)
        self.time_budget = time_budget
        budgets.append(time_budget)
        self.oof_score_, self.oof_standard_error_ = 0.5, 0.25
        self.members_ = [{"name": "margins", "weight": 1.0}, {"name": "trees", "weight": 0.0}]

    def fit(self, X, y, *, groups):
        np.testing.assert_array_equal(groups, _packages().source_ids)
        return super().fit(X, y)


def _packages():
    random = np.random.default_rng(0)
    X = sp.csr_array(random.random((40, 8)) * (random.random((40, 8)) < 0.6))
    Y = sp.csr_array((X.toarray()[:, :6] > 0.4).astype(np.int8))
    names = np.array(sorted(demo._PACKAGES))
    return SimpleNamespace(
        X=X, Y=Y, X_test=X[:10], Y_test=Y[:10], label_names=NAMES, source_ids=np.arange(40) // 3,
        parents=[(name.split("::")[0], name) for name in NAMES],
        names_untagged=names, descriptions_untagged=np.full(len(names), "a package of " + "words " * 20),
        X_untagged=sp.csr_array(np.vstack([np.zeros((1, 8)), random.random((len(names) - 1, 8))])),
    )  # fmt: skip


def test_models_are_compared_and_tags_proposed(monkeypatch, capsys):
    monkeypatch.setattr(demo, "load_debtags", _packages)
    monkeypatch.setattr(demo, "AutoLabelClassifier", OneCall)
    budgets.clear()
    demo.run(DataFlags(jobs=1, quiet=True))
    assert max(budgets) <= 10  # the slowest part of the demo
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Debian packages: 40 for training, 10 for testing."
    assert lines[1] == "8 features; 6 tags in 3 facets."
    assert [line.split()[0] for line in lines[3:6]] == ["one", "taxonomy", "independent"]
    assert lines[3].endswith("margins; expected micro-F1 0.5000 +- 0.2500")
    assert "duality gap" in lines[4]
    proposed = lines[lines.index("Proposed for packages without tags: at most five, with their scores.") :]
    assert sum(" - a package of" in line for line in proposed) == 10
    assert max(map(len, lines)) <= 80


def test_rows_are_taken_at_even_steps_and_tags_scored_by_frequency():
    bunch = _packages()
    X, Y, places = demo._chosen(bunch.X, bunch.Y, 4, bunch)
    assert list(places) == [0, 13, 26, 39]
    np.testing.assert_array_equal(X.toarray(), bunch.X.toarray()[[0, 13, 26, 39]])
    assert list(Y.names) == list(NAMES)
    scores = demo._frequency_scores(demo._chosen(bunch.X, bunch.Y, None, bunch)[1])
    frequencies = bunch.Y.toarray().mean(axis=0)
    assert (scores > 0).sum() == round(frequencies.sum())
    assert list(np.argsort(scores)) == list(np.argsort(frequencies))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_a_callback_of_compiled_code_is_not_lost(number):
    send = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), number))
    with program._unwound_at_sigterm(), pytest.raises((program._Terminated, KeyboardInterrupt)):
        [send(), time.sleep(9)]
