from __future__ import annotations

import csv
import io
import json
import sys

import numpy as np
import pytest

import labelweave
from labelweave import KernelLogisticClassifier, MaxMarginClassifier, Taxonomy
from labelweave.app.cli import model_rows
from labelweave.app.cli.answer_files import Columns, write_answers
from labelweave.datasets import read_any
from labelweave.model_files import save_object


def test_labels_with_positive_scores_by_name(run, table_model):
    first, *others = run("predict", table_model, "a.csv").records
    assert first["id"] == "p0"
    assert [entry["label"] for entry in first["labels"]] == ["game", "x11"]
    assert first["labels"][0]["score"] > first["labels"][1]["score"] > 0
    assert len(others) == 5


def test_chunks_change_nothing(run, table_model, monkeypatch):
    whole = run("predict", table_model, "a.csv", "--top", 4).out
    monkeypatch.setattr(model_rows, "_MOST_ROWS_AT_ONCE", 2)
    assert run("predict", table_model, "a.csv", "--top", 4).out == whole


def test_json_lines_may_lack_columns_in_some_rows(run, tmp_path, monkeypatch):
    rows = [{"key": f"r{row}", "text": "sea" if row % 2 else "sky", "size": row % 3} for row in range(9)]
    for row in rows:
        row["tags"] = ["wet"] if row["text"] == "sea" else ["dry", "high"]
    del rows[0]["size"], rows[7]["size"], rows[8]["size"]

    def write(name, rows):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    write("t.jsonl", rows)
    flags = ["--labels", "tags", "--id", "key", "--text", "text", "--numeric", "size"]
    run("fit t.jsonl --model kernel-logistic", *flags, "--out", "j.lw", "-q")
    whole = run("predict j.lw t.jsonl").out
    monkeypatch.setattr(model_rows, "_MOST_ROWS_AT_ONCE", 2)
    assert run("predict j.lw t.jsonl").out == whole
    del rows[0]["tags"]
    write("t.jsonl", rows)
    asked = csv.DictReader(run("queries j.lw t.jsonl").out.splitlines())
    assert [line["id"] for line in asked] == ["r0"] * 3
    del rows[0]["key"]
    write("t.jsonl", rows)
    assert "t.jsonl:1: found nothing in column 'key' of row 0" in run("predict j.lw t.jsonl", code=2).err


def test_top_and_threshold(run, table_model):
    everything = run("predict", table_model, "a.csv", "--threshold", -100).records
    assert all(len(row["labels"]) == 4 for row in everything)
    best = run("predict", table_model, "a.csv", "--top", 99).records
    assert best == everything
    both = run("predict", table_model, "a.csv", "--top", 1, "--threshold", 100).records
    assert all(row["labels"] == [] for row in both)


def test_thresholds_that_part_nothing_are_refused(run, table_model, matrix_files):
    assert "--threshold is nan" in run("predict", table_model, "a.csv", "--threshold", "nan", code=2).err
    data = read_any(matrix_files["mulan"])
    KernelLogisticClassifier(hyperparameters="fixed").fit(data.X, data.Y).save("p.lw")
    for number in (-0.5, 1.5):
        refused = run("predict p.lw", matrix_files["mulan"], "--threshold", number, code=2).err
        assert f"--threshold is {number}, but it is compared with probabilities here" in refused
    assert run("predict p.lw", matrix_files["mulan"], "--threshold", 1).records[0]["labels"] == []


def test_tab_separated_and_a_file(run, table_model, tmp_path):
    words = ("predict", table_model, "a.csv", "--output-format", "tsv", "--threshold", 0.9)
    table = list(csv.reader(io.StringIO(run(*words).out), delimiter="\t"))
    assert table[0] == ["id", "label", "score"]
    assert table[1][:2] == ["p0", "game"]
    assert ["p5", "", ""] in table
    assert run(*words, "--out", "p.tsv").out == ""
    assert (tmp_path / "p.tsv").read_text() == run(*words).out


def test_rows_without_names_are_numbered(run, table_model, tmp_path):
    (tmp_path / "n.jsonl").write_text('{"description": "chess", "section": "games"}\n' * 3)
    assert [row["id"] for row in run("predict", table_model, "n.jsonl").records] == [0, 1, 2]
    (tmp_path / "n.csv").write_text("name,description,section\nx,chess,games\n")
    assert run("predict", table_model, "n.csv", "--id", "name").records[0]["id"] == "x"


@pytest.mark.parametrize("format", ["mulan", "xmc", "svmlight"])
def test_matrix_files(run, matrix_files, format):
    file = matrix_files[format]
    run("fit", file, "--model", "max-margin", "--out", "m.lw", "-q")
    found = run("predict m.lw", file, "--top", 2).records
    model = labelweave.load("m.lw")
    labels, _ = model.predict_top(np.asarray(read_any(file).X.todense()), 2) if format != "mulan" else (
        np.argsort(-(read_any(file).X @ model.coef_.T + model.intercept_), axis=1, kind="stable")[:, :2], None
    )  # fmt: skip
    expected = [[str(model.label_names_[label]) for label in row] for row in labels]
    assert [[entry["label"] for entry in row["labels"]] for row in found] == expected


def test_models_of_classes(run, tmp_path, rows):
    classes = np.array(["a", "b", "c"])[np.arange(len(rows)) % 3]
    MaxMarginClassifier().fit(rows.X, classes).save(tmp_path / "three.lw")
    MaxMarginClassifier().fit(rows.X, classes == "a").save(tmp_path / "two.lw")
    labelweave.datasets.write_svmlight(rows, tmp_path / "d.svm")
    for file, names in (("three.lw", {"a", "b", "c"}), ("two.lw", {"True", "False"})):
        found = run("predict", file, "d.svm").records
        predicted = labelweave.load(file).predict(rows.X)
        assert [row["class"] for row in found] == [str(label) for label in predicted]
        assert {row["class"] for row in found} <= names
        assert set(found[0]) == {"id", "class", "score"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("description\nchess\n", "no column 'section'"),
        ("", "empty file"),
        ("description,section\na\n", "n.csv:2"),
    ],
)
def test_tables_that_do_not_fit(run, table_model, tmp_path, text, message):
    (tmp_path / "n.csv").write_text(text)
    done = run("predict", table_model, "n.csv", "--out", "p.jsonl", code=2)
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "p.jsonl").exists()


def test_data_of_another_kind(run, table_model, matrix_files, tmp_path):
    assert "was fitted to a table" in run("predict", table_model, "d.svm", code=2).err
    run("fit d.arff --model max-margin --out d.lw -q")
    assert "is a table" in run("predict d.lw a.csv", code=2).err
    (tmp_path / "w.txt").write_text("1 3 5\n0 0:1\n")
    assert "found 3 features; expected the 40" in run("predict d.lw w.txt", code=2).err
    other = (tmp_path / "d.arff").read_text().replace("f0 ", "g0 ")
    (tmp_path / "d.arff").write_text(other)
    assert (
        "found no feature 'f0'; expected all 40 training features" in run("predict d.lw d.arff", code=2).err
    )


def test_files_that_hold_no_classifier(run, tmp_path):
    save_object(tmp_path / "t.lw", Taxonomy([("a", "b")]))
    assert "holds a Taxonomy" in run("predict t.lw a.csv", code=2).err
    assert "not a labelweave model" in run("predict a.csv a.csv", code=2).err
    assert "No such file" in run("predict none.lw a.csv", code=2).err


def test_files_by_their_suffix(run, table_model, tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    for words in (["--top", "2"], ["--threshold", "0.9"], []):
        lines = run("predict", table_model, "a.csv", *words).records
        pairs = [(row["id"], entry["label"]) for row in lines for entry in row["labels"]]
        for name, mark in {"p.csv": ",", "p.tsv": "\t", "p.CSV": ","}.items():
            run("predict", table_model, "a.csv", "--out", name, *words)
            header, *cells = csv.reader((tmp_path / name).read_text().splitlines(), delimiter=mark)
            assert header == ["id", "label", "score"]
            assert [(row, label) for row, label, _ in cells if label] == pairs
        run("predict", table_model, "a.csv", "--out", "p.parquet", *words)
        table = pyarrow.read_table(tmp_path / "p.parquet")
        assert [str(kind) for kind in table.schema.types] == ["string", "string", "double"]
        found = [(row["id"], row["label"]) for row in table.to_pylist() if row["label"] is not None]
        assert found == pairs
        assert set(table["id"].to_pylist()) == {f"p{k}" for k in range(6)}
    run("predict", table_model, "a.csv", "--out", "p.jsonl", "--top", "1")
    assert json.loads((tmp_path / "p.jsonl").read_text().splitlines()[0])["id"] == "p0"
    run("predict", table_model, "a.csv", "--out", "p.csv", "--top", "1", "--output-format", "jsonl")
    assert (tmp_path / "p.csv").read_text() == (tmp_path / "p.jsonl").read_text()  # what is asked for
    assert run("predict", table_model, "a.csv", "--out", "-").out == run("predict", table_model, "a.csv").out
    done = run("predict", table_model, "a.csv", "--out", "p.xlsx", code=2)
    assert "p.xlsx has the unknown suffix .xlsx; use .csv" in done.err
    done = run("predict", table_model, "a.csv", "--output-format", "parquet", code=2)
    assert "add --out FILE.parquet" in done.err
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = run("predict", table_model, "a.csv", "--out", "q.parquet", code=2)
    assert "q.parquet needs pyarrow, which is not installed; install labelweave[app]" in done.err
    assert not (tmp_path / "q.parquet").exists()


@pytest.mark.parametrize(("flag", "name"), [("--one-class", "class"), ("--many-labels", "id")])
def test_labels_called_as_columns_of_the_table_are_refused(run, tmp_path, flag, name):
    rows = [f"{text},{label}" for text, label in (("red sea", name), ("blue sky", "other"))]
    (tmp_path / "c.csv").write_text("\n".join(["text,tags", *rows * 5, ""]))
    columns = ["--text", "text", "--labels", "tags"]
    run("fit c.csv --model kernel-logistic", *columns, flag, "--out", "c.lw", "-q")
    for format in ("csv", "tsv"):
        words = ["predict", "c.lw", "c.csv", "--probabilities", "--output-format", format]
        told = run(*words, code=2).err
        assert f"a label '{name}', which would be a second column of this name" in told
    assert name in run(*words[:4]).records[0]["probabilities"]


def test_empty_files_of_answers_have_columns(run, tmp_path):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    write_answers(iter([]), Columns(["id", "class"], ["=a", "b"]), tmp_path / "e.parquet", "parquet")
    assert pyarrow.read_table(tmp_path / "e.parquet").column_names == ["id", "class", "=a", "b"]
    write_answers(iter([]), Columns(["id", "class"], ["=a", "b"]), tmp_path / "e.csv", "csv")
    assert (tmp_path / "e.csv").read_text() == "id,class,'=a,b\n"
