"""Classes and probabilities on the command line: predictions, rejections, metrics."""

import csv
import io

import numpy as np
import pytest

import labelweave
from labelweave import KernelLogisticClassifier, metrics
from labelweave.app.cli import model_rows
from labelweave.datasets import LabeledData, make_taxonomy, read_table, write_svmlight
from labelweave.labels import LabelMatrix


def _table(done):
    return list(csv.reader(io.StringIO(done.out), delimiter="\t"))


@pytest.fixture
def model(fit_things):
    """A model of five classes in a tree, ``m.lw``."""
    fit_things("--class-paths --hyperparameters fixed -q --scale 2")
    return labelweave.load("m.lw")


@pytest.fixture
def truth(run, tmp_path):
    """The classes of ``test.csv``."""
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
    done = run("predict d.lw d.txt --reject-below 0.5", code=2)
    assert "--reject-below is for one class per row" in done.err


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
    done = run("evaluate m.lw u.csv --unknown-labels raise", code=2)
    assert "The class 'cloud' of row 4 (counted from 0) is unknown to the model, as in 6 of 30" in done.err
    assert done.err.count("\n") == 1
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
    (tmp_path / "c.csv").write_text("id,text,rock,fruit/apple\n1,hard,1,1\n")
    done = run("evaluate m.lw c.csv", *words, code=2)
    assert "several" in done.err
    assert done.err.count("\n") == 1


def test_numbers_stand_for_places_where_classes_have_names(run, tmp_path):
    data = make_taxonomy(60, 4, depth=1, random_state=2)
    names = np.array(["ash", "elm", "oak"])
    numbers = data.Y.positives.indices
    KernelLogisticClassifier(hyperparameters="fixed").fit(data.X, names[numbers]).save(tmp_path / "t.lw")
    write_svmlight(LabeledData(data.X, LabelMatrix(data.Y.positives)), tmp_path / "d.svm")
    assert run("evaluate t.lw d.svm --json").json["accuracy"] > 0.6
