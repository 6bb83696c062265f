"""``labelweave predict``: labels, classes, probabilities and rejections, and its output files."""

import csv
import io
import json
import sys

import numpy as np
import pytest

import labelweave
from labelweave import KernelLogisticClassifier, MaxMarginClassifier, metrics
from labelweave.app.cli import model_rows
from labelweave.app.cli.answer_files import Columns, write_answers
from labelweave.datasets import LabeledData, make_taxonomy, read_any, read_table, write_svmlight
from labelweave.labels import LabelMatrix


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
    assert (tmp_path / "p.csv").read_text() == (tmp_path / "p.jsonl").read_text()  # the requested output
    assert run("predict", table_model, "a.csv", "--out", "-").out == run("predict", table_model, "a.csv").out
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


def _table(done):
    return list(csv.reader(io.StringIO(done.out), delimiter="\t"))


@pytest.fixture
def model(fit_things):
    """A model of five classes in a tree, ``m.lw``."""
    fit_things("--class-paths --hyperparameters fixed -q --scale 2")
    return labelweave.load("m.lw")


@pytest.fixture
def truth(run, tmp_path):
    data = read_table(tmp_path / "test.csv", labels="kind", text="text")
    return data.Y.names[data.Y.positives.indices]


def test_a_class_a_row_with_its_probability(run, model, tmp_path):
    found = run("predict m.lw test.csv").records
    pandas = pytest.importorskip("pandas")
    X = model.vectorizer_.transform(pandas.read_csv(tmp_path / "test.csv"))
    probabilities = model.classifier_.predict_proba(X)
    assert [row["id"] for row in found] == [f"r{k}" for k in range(30)]
    assert [row["class"] for row in found] == list(model.classifier_.predict(X))
    np.testing.assert_allclose([row["probability"] for row in found], probabilities.max(axis=1), rtol=1e-5)
    table = _table(run("predict m.lw test.csv --output-format tsv"))
    assert table[0] == ["id", "class", "probability"]
    assert table[1] == [str(value) for value in found[0].values()]


def test_unsure_rows_are_rejected(run, model):
    found = run("predict m.lw test.csv").records
    different = np.unique([row["probability"] for row in found])
    middle = different[len(different) // 2 - 1 : len(different) // 2 + 1].mean()
    rejected = run("predict m.lw test.csv --reject-below", middle).records
    for row, other in zip(found, rejected, strict=True):
        assert other["class"] == (None if row["probability"] < middle else row["class"])
    assert 10 <= sum(row["class"] is None for row in rejected) <= 20
    words = ("predict", "m.lw", "test.csv", "--reject-below", 1, "--output-format", "tsv")
    assert {line[1] for line in _table(run(*words))[1:]} == {""}
    assert all(len(line) == 7 and line[1] == "" for line in _table(run(*words, "--probabilities"))[1:])


def test_all_probabilities(run, model):
    rows = run("predict m.lw test.csv --probabilities").records
    names = list(model.label_names_)
    assert all(list(row["probabilities"]) == names for row in rows)
    np.testing.assert_allclose([sum(row["probabilities"].values()) for row in rows], 1, atol=1e-5)
    table = _table(run("predict m.lw test.csv --probabilities --output-format tsv"))
    assert table[0] == ["id", "class", *names]
    assert [float(cell) for cell in table[1][2:]] == list(rows[0]["probabilities"].values())
    best = run("predict m.lw test.csv --probabilities --top 2").records
    assert [entry["probability"] for entry in best[0]["labels"]] == sorted(table_values(table[1]))[:-3:-1]
    sure = run("predict m.lw test.csv --probabilities --threshold 0.5").records
    assert {len(row["labels"]) for row in sure} <= {0, 1}


def table_values(line):
    return [float(cell) for cell in line[2:]]


def test_blocks_change_nothing(run, model, monkeypatch):
    ways = ([], ["--probabilities"], ["--reject-below", 0.7])
    whole = [run("predict m.lw test.csv", *words).out for words in ways]
    monkeypatch.setattr(model_rows, "_MOST_ROWS_AT_ONCE", 7)
    assert [run("predict m.lw test.csv", *words).out for words in ways] == whole


def test_probabilities_of_many_labels(run, matrix_files):
    words = ["--model", "kernel-logistic", "--hyperparameters", "fixed", "--out", "d.lw", "-q"]
    run("fit d.txt --model max-margin", *words)
    twin = labelweave.load("d.lw")
    probabilities = twin.predict_proba(labelweave.datasets.read_any("d.txt").X)
    rows = run("predict d.lw d.txt --probabilities").records
    assert set(rows[0]) == {"id", "probabilities"}
    np.testing.assert_allclose(
        [list(row["probabilities"].values()) for row in rows], probabilities, rtol=1e-4, atol=1e-6
    )
    listed = run("predict d.lw d.txt --probabilities --threshold 0.5").records
    assert [len(row["labels"]) for row in listed] == (probabilities > 0.5).sum(axis=1).tolist()


def test_decisions_that_are_not_the_most_probable(run, tmp_path):
    data = make_taxonomy(120, 4, depth=2, noise=1.5, random_state=3)
    twin = KernelLogisticClassifier(
        taxonomy=data.taxonomy, decision="best_parent", hyperparameters="fixed", scale=1.0
    ).fit(data.X, data.classes)
    twin.save(tmp_path / "b.lw")
    write_svmlight(data, tmp_path / "d.svm")
    assert (twin.predict(data.X) != twin.classes_[twin.predict_proba(data.X).argmax(axis=1)]).any()
    rows = run("predict b.lw d.svm").records
    assert [row["class"] for row in rows] == list(twin.predict(data.X))
    values = twin.predict_proba(data.X)[np.arange(120), [list(twin.classes_).index(r["class"]) for r in rows]]
    np.testing.assert_allclose([row["probability"] for row in rows], values, rtol=1e-4)


def test_metrics_of_classes_are_those_of_the_library(run, model, truth):
    found = run("evaluate m.lw test.csv --json").json
    rows = run("predict m.lw test.csv --probabilities").records
    probabilities = np.array([list(row["probabilities"].values()) for row in rows])
    expected = metrics.class_summary(
        truth, probabilities / probabilities.sum(axis=1, keepdims=True), list(model.label_names_),
        taxonomy=model.classifier_.taxonomy_,
    )  # fmt: skip
    assert (found.pop("rows"), found.pop("classes")) == (30, 5)
    assert len(found.pop("per_label")) == 5
    error = metrics.expected_calibration_error(
        truth[:, None] == np.array(model.label_names_), probabilities, least=0.05
    )
    assert found == pytest.approx(expected | {"calibration_error": error}, rel=1e-3)
    text = run("evaluate m.lw test.csv").out
    assert text.startswith("30 rows, 5 classes\n")
    assert "parent_accuracy" in text


def test_classes_that_are_unknown_or_known_in_part(run, model, tmp_path):
    text = (tmp_path / "test.csv").read_text()
    (tmp_path / "p.csv").write_text(text.replace(",fruit/apple", ",fruit").replace(",rock", ","))
    done = run("evaluate m.lw p.csv --json")
    assert done.json["rows"] == 24
    assert "6 of 30 rows have no known class and are not counted" in done.err
    (tmp_path / "u.csv").write_text(text.replace(",rock", ",cloud"))
    missed = run("evaluate m.lw u.csv --json")
    assert "1 class unknown to the model count as missed" in missed.err
    assert missed.json["rows"] == 30
    assert run("evaluate m.lw u.csv --json --ignore-unknown-labels").json["rows"] == 24
    (tmp_path / "n.csv").write_text("id,text,kind\nr,red,cloud\n")
    done = run("evaluate m.lw n.csv --ignore-unknown-labels", code=2)
    assert "No row of the data has a class of the model" in done.err


def test_one_zero_columns_and_lists_of_a_path_are_classes_too(run, model, tmp_path):
    (tmp_path / "l.jsonl").write_text('{"id": 1, "text": "red", "kind": ["fruit", "fruit/apple"]}\n')
    assert run("evaluate m.lw l.jsonl --json").json["classes"] == 5
    (tmp_path / "c.csv").write_text("id,text,rock,fruit/apple\n1,hard,1,0\n2,red,0,1\n3,red,,\n")
    words = ["--label-column", "rock", "--label-column", "fruit/apple", "--json"]
    assert run("evaluate m.lw c.csv", *words).json["rows"] == 2


def test_numbers_stand_for_places_where_classes_have_names(run, tmp_path):
    data = make_taxonomy(60, 4, depth=1, random_state=2)
    names = np.array(["ash", "elm", "oak"])
    numbers = data.Y.positives.indices
    KernelLogisticClassifier(hyperparameters="fixed").fit(data.X, names[numbers]).save(tmp_path / "t.lw")
    write_svmlight(LabeledData(data.X, LabelMatrix(data.Y.positives)), tmp_path / "d.svm")
    assert run("evaluate t.lw d.svm --json").json["accuracy"] > 0.6
