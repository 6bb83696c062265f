"""Small data files, and a way to run the command line in this process."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from labelweave.app.cli.program import main
from labelweave.datasets import LabeledData, make_text_like, write_mulan, write_svmlight, write_xmc
from labelweave.labels import LabelMatrix

TABLE = """package,description,section,size,tags
p0,a game of chess,games,3,"game,x11"
p1,a game of cards,games,4,game
p2,a web server,net,10,"net,daemon"
p3,a mail server,net,12,"net,daemon"
p4,chess for the web,games,5,"game,net"
p5,a daemon,net,2,?
"""
TABLE_FLAGS = {
    "--text": "description",
    "--categorical": "section",
    "--labels": "tags",
    "--label-separator": ",",
    "--id": "package",
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in an empty folder that holds ``a.csv``; give code, out and err."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(TABLE)

    def call(*words, code=0):
        result = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
        assert result.exit_code == code, result.output
        return SimpleNamespace(out=result.stdout, err=result.stderr)

    return call


@pytest.fixture
def fit_table(run):
    """Fit a model to ``a.csv``, with more flags; it goes to ``m.lw``."""
    flags = [word for pair in TABLE_FLAGS.items() for word in pair]

    def call(*words, code=0):
        return run("fit", "a.csv", "--model", "max-margin", *flags, "--out", "m.lw", *words, code=code)

    return call


@pytest.fixture
def table_model(fit_table):
    fit_table("--quiet")
    return "m.lw"


@pytest.fixture(scope="session")
def rows():
    data = make_text_like(60, 40, 5, labels_per_row=1.5, words_per_row=8)
    return LabeledData(data.X, data.Y)


@pytest.fixture
def matrix_files(rows, run, tmp_path):
    """The same rows in three formats."""
    Y = LabelMatrix(rows.Y.positives, None, [f"l{k}" for k in range(rows.Y.n_labels)])
    named = LabeledData(rows.X, Y, np.array([f"f{j}" for j in range(rows.X.shape[1])]))
    write_mulan(named, tmp_path / "d.arff", tmp_path / "d.xml")
    write_xmc(rows, tmp_path / "d.txt")
    write_svmlight(rows, tmp_path / "d.svm")
    return {"mulan": "d.arff", "xmc": "d.txt", "svmlight": "d.svm"}


THINGS = {
    "fruit/apple": "red sweet tree crunchy",
    "fruit/pear": "green sweet tree soft",
    "animal/dog": "bark fur tail loyal",
    "animal/cat": "purr fur tail sleepy",
    "rock": "hard grey heavy",
}


def things(n_rows, seed=0, *, paths=True, partial=0):
    """Write a table of things with one class a row; of the first ``partial`` ones less is known."""
    rng, lines = np.random.default_rng(seed), ["id,text,kind"]
    for row in range(n_rows):
        kind = list(THINGS)[row % len(THINGS)]
        words = " ".join(rng.choice(THINGS[kind].split(), 3))
        known = ["", "?", kind.split("/")[0]][row % 3] if row < partial else kind
        lines.append(f"r{row},a {words} thing,{known if paths else known.split('/')[-1]}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def fit_things(run, tmp_path):
    """Fit classes to ``things.csv``, with more flags; the model goes to ``m.lw``, ``test.csv`` is there."""
    (tmp_path / "things.csv").write_text(things(60, partial=6))
    (tmp_path / "test.csv").write_text(things(30, 1))
    flags = [
        "--model",
        "kernel-logistic",
        "--text",
        "text",
        "--labels",
        "kind",
        "--id",
        "id",
        "--out",
        "m.lw",
    ]

    def call(*words, code=0):
        return run("fit", "things.csv", *flags, *words, code=code)

    return call
