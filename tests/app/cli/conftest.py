"""Small data files, and a way to run the command line in this process."""

import pytest

from commands import TABLE, TABLE_FLAGS, invoke, split, things, write_matrix_files
from labelweave.datasets import LabeledData, make_text_like


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in an empty folder that holds ``a.csv``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(TABLE)
    return lambda *words, code=0: invoke(words, code)


@pytest.fixture
def fit_table(run):
    """Fit a model to ``a.csv``, with more flags; it goes to ``m.lw``."""
    flags = [word for pair in TABLE_FLAGS.items() for word in pair]

    def call(*words, code=0):
        return run("fit a.csv --model max-margin --out m.lw", *flags, *split(words), code=code)

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
    return write_matrix_files(rows, tmp_path)


@pytest.fixture
def fit_things(run, tmp_path):
    """Fit classes to ``things.csv``, with more flags; the model goes to ``m.lw``, ``test.csv`` is there."""
    (tmp_path / "things.csv").write_text(things(60, partial=6))
    (tmp_path / "test.csv").write_text(things(30, 1))
    fit = "fit things.csv --model kernel-logistic --text text --labels kind --id id --out m.lw"
    return lambda *words, code=0: run(fit, *split(words), code=code)
