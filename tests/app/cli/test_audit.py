"""Labels of a data file that are probably wrong, from the command line."""

import csv
import json

import numpy as np
import pytest

from labelweave import AutoLabelClassifier
from labelweave.app.cli import audit
from labelweave.datasets import read_any


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(
        audit, "AutoLabelClassifier", lambda **given: AutoLabelClassifier(members=["rbf"], **given)
    )


def test_a_table_is_shown(run, matrix_files):
    shown = run("audit", matrix_files["mulan"], "--top", 3, "-q")
    assert "60 rows, 5 labels" in shown.out
    assert shown.err == ""


def test_files_are_written(run, matrix_files, tmp_path):
    run("audit", matrix_files["mulan"], "--top", 3, "--out", "w.csv")
    with open(tmp_path / "w.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 3
    printed = run("audit", matrix_files["mulan"], "--top", 3, "--output-format", "jsonl", "-q").out
    records = [json.loads(line) for line in printed.splitlines()]
    assert [one["label"] for one in records] == [line["label"] for line in lines]
    truth = read_any(matrix_files["mulan"]).Y
    for one in records:
        assert truth.to_dense()[one["id"], truth.names.tolist().index(one["label"])] == one["recorded"]
        assert 0 <= one["probability"] <= 1
    assert np.isfinite([one["alone"] for one in records]).all()


def test_relations_of_labels_are_read(run, matrix_files, tmp_path):
    names = [str(name) for name in read_any(matrix_files["mulan"]).Y.names]
    (tmp_path / "tree.json").write_text(json.dumps({"one": names[:2], "two": names[2:]}))
    lines = [",".join(["", *names]), *(",".join([name, *"11111"]) for name in names)]
    (tmp_path / "r.csv").write_text("\n".join(lines))
    for words in (("--taxonomy", "tree.json"), ("--covariance", "r.csv")):
        shown = run("audit", matrix_files["mulan"], "--top", 3, "-q", *words)
        assert "60 rows, 5 labels" in shown.out


def test_tables_and_forgotten_labels(run):
    table = ("--text", "description", "--labels", "tags", "--label-separator", ",", "--id", "package")
    words = ("audit", "a.csv", *table, "--forgotten", "--top", 4, "--output-format", "jsonl", "-q")
    records = run(*words).records
    assert not any(one["recorded"] for one in records)
    assert all(one["id"].startswith("p") for one in records)
    assert "p5" not in {one["id"] for one in records}  # whose tags are unknown
