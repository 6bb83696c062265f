"""``labelweave fit``: tables and other files, labels in their cells, taxonomies, thresholds, interrupts."""

import json
import re
import signal

import numpy as np
import pytest

import labelweave
from labelweave.app.cli import fit_words as progress
from labelweave.datasets import read_any
from labelweave.estimators import TableModel

TREE = "parent,child\nfun,game\nsystem,net\nsystem,daemon\nlook,x11\n"


def test_a_table_gives_a_table_model(fit_table):
    done = fit_table("--numeric size --ngrams 2")
    assert done.out == ""
    assert "rows      6" in done.err
    assert "labels    4: " in done.err
    assert re.search(r"features +\d+, with names", done.err)
    model = labelweave.load("m.lw")
    assert isinstance(model, TableModel)
    assert list(model.label_names_) == ["daemon", "game", "net", "x11"]
    assert "description:game of" in set(model.feature_names_)
    assert model.columns_.id == "package"


@pytest.mark.parametrize(
    ("cells", "flags", "is_said", "labels"),
    [
        (["x|y", "y|z", "x|z", "x|y|z", "x"], [], True, ["x", "y", "z"]),
        (["x|y", "y|z", "x|z", "x|y|z", "x"], ["--label-separator", "|"], False, ["x", "y", "z"]),
        (["x|y", "y|z", "x|z", "x|y|z", "x"], ["--one-class"], False, ["x", "x|y", "x|y|z", "x|z", "y|z"]),
        (["['x', 'y']", "['y', 'z']", "['x']", "['z']", "['x', 'z']"], [], False, ["x", "y", "z"]),
        (["Roe, Jane", "Poe, Ann", "Doe, John", "Lee, Bo", "Roe, Jane"], [], False, None),
    ],
)
def test_cells_that_list_labels_are_cut(run, tmp_path, cells, flags, is_said, labels):
    lines = [f'w{row} w{row + 1},"{cell}"\n' for row, cell in enumerate(cells)]
    (tmp_path / "c.csv").write_text("text,kind\n" + "".join(lines))
    said = run("fit c.csv --model max-margin --text text --labels kind --out m.lw", *flags).err
    assert ("column 'kind' list labels, such as 'x|y', and are split at '|'; --one-class" in said) == is_said
    names = list(labelweave.load("m.lw").label_names_)
    assert names == (sorted(set(cells)) if labels is None else labels)


@pytest.mark.parametrize(("flags", "is_said"), [([], True), (["--tune-threshold", "micro_f1"], False)])
def test_rare_labels_are_said_to_need_thresholds(run, tmp_path, flags, is_said):
    lines = [f"word{row % 12} other,kind{row % 12}\n" for row in range(48)]
    (tmp_path / "c.csv").write_text("text,kind\n" + "".join(lines))
    said = run("fit c.csv --model max-margin --many-labels --text text --labels kind --out m.lw", *flags).err
    assert ("advice    100% of the labels that training rows have" in said) == is_said


def test_one_column_a_label(run, tmp_path):
    (tmp_path / "b.jsonl").write_text('{"t": "red", "r": 1, "s": 0}\n{"t": "sea", "r": 0, "s": null}\n')
    run("fit b.jsonl --model max-margin --text t --label-column r --label-column s --out m.lw")
    assert list(labelweave.load("m.lw").label_names_) == ["r", "s"]


@pytest.mark.parametrize("format", ["mulan", "xmc", "svmlight"])
def test_matrix_files_give_the_classifier_itself(run, matrix_files, format):
    run(f"fit {matrix_files[format]} --model max-margin --out m.lw --C 0.5 --jobs 2 --no-intercept -q")
    model = labelweave.load("m.lw")
    data = read_any(matrix_files[format])
    twin = labelweave.MaxMarginClassifier(C=0.5, fit_intercept=False).fit(data.X, data.Y)
    np.testing.assert_array_equal(model.coef_, twin.coef_)
    assert hasattr(model, "feature_names_in_") == (format == "mulan")


def test_a_taxonomy_and_the_same_as_a_matrix(fit_table, tmp_path):
    (tmp_path / "t.csv").write_text(TREE)
    (tmp_path / "c.csv").write_text(
        ",x11,game,net,daemon\nx11,2,0,0,0\ngame,0,2,0,0\nnet,0,0,2,1\ndaemon,0,0,1,2\n"
    )
    matrix = np.array([[2, 0, 1, 0], [0, 2, 0, 0], [1, 0, 2, 0], [0, 0, 0, 2]], float)
    np.save(tmp_path / "c.npy", matrix)
    models = []
    for flag, file in (("--taxonomy", "t.csv"), ("--covariance", "c.csv"), ("--covariance", "c.npy")):
        fit_table(flag, file, "-q", "--tol", 1e-6)
        models.append(labelweave.load("m.lw").classifier_)
    for model in models[1:]:
        np.testing.assert_allclose(model.coef_, models[0].coef_, atol=1e-2)


def test_the_tree_of_the_data(run, tmp_path):
    (tmp_path / "h.arff").write_text(
        "@relation h\n@attribute x numeric\n@attribute class hierarchical 1,1/1,2\n@data\n1,1/1\n2,2\n"
    )
    run("fit h.arff --model max-margin --data-taxonomy --out m.lw -q")
    covariance = labelweave.load("m.lw").estimator_.label_covariance.to_dense()
    np.testing.assert_array_equal(covariance, [[1, 1, 0], [1, 2, 0], [0, 0, 1]])


def test_one_row_one_label_and_a_label_nobody_has(run, tmp_path):
    (tmp_path / "one.csv").write_text("t,y\nred rose,flower\n")
    run("fit one.csv --model max-margin --text t --labels y --out m.lw")
    found = run("predict m.lw one.csv").json
    assert [entry["label"] for entry in found["labels"]] == ["flower"]
    (tmp_path / "nobody.csv").write_text("t,a,b\nred,1,0\nsea,0,0\n")
    run("fit nobody.csv --model max-margin --text t --label-column a --label-column b --out m.lw")
    lines = run("predict m.lw nobody.csv").out.splitlines()
    assert [[entry["label"] for entry in json.loads(line)["labels"]] for line in lines] == [["a"], []]


def test_too_few_rounds_are_one_plain_line(fit_table):
    done = fit_table("--max-iter 1 --tol 1e-9 --quiet")
    assert "raise --max-iter, scale the features, or regularize more. The gap is " in done.err
    assert done.err.endswith(" after 1 rounds.\n")
    assert done.err.count("\n") == 1


def test_an_interrupt_saves_the_best_model(fit_table, monkeypatch):
    monkeypatch.setattr(progress.GapLines, "show", lambda _: signal.raise_signal(signal.SIGINT))
    done = fit_table("--tol 1e-9", code=130)
    assert "labelweave: The fit was interrupted; the model is the best" in done.err
    assert done.err.endswith("The model so far is saved in m.lw.\n")
    assert not labelweave.load("m.lw").classifier_.converged_


def test_an_interrupt_before_the_fit_writes_nothing(run, monkeypatch, tmp_path):
    monkeypatch.setattr(
        "labelweave.app.cli.fitting.read_training_rows", lambda *_: signal.raise_signal(signal.SIGINT)
    )
    assert "interrupted; nothing was written" in run("fit a.csv --model max-margin --out m.lw", code=130).err
    assert not (tmp_path / "m.lw").exists()


@pytest.mark.parametrize("flags", [[], ["--one-class"]])
def test_labels_that_read_like_missing_ones_are_told(run, tmp_path, flags):
    lines = [f"{row}.5,{('high', 'low', 'NA')[row % 3]}\n" for row in range(12)]
    (tmp_path / "t.csv").write_text("x,level\n" + "".join(lines))
    fit = ["fit", "t.csv", "--labels", "level", "--model", "max-margin", "--out", "m.lw", "-q"]
    told = run(*fit, *flags).err
    assert "'level' has labels that look like missing values but are read as names: 'NA' (4 of 12 row" in told
    assert list(labelweave.load("m.lw").label_names_) == ["NA", "high", "low"]
    (tmp_path / "t.csv").write_text("x,level\n" + "".join(lines).replace("NA", "?"))
    assert run(*fit, *flags).err == ""
    assert list(labelweave.load("m.lw").label_names_) == ["high", "low"]


def test_blank_cells_of_labels_are_counted(run, matrix_files, tmp_path):
    text = (tmp_path / "a.csv").read_text()
    (tmp_path / "a.csv").write_text(text + "p6,a mail daemon,net,2, \np7,chess,games,2,\n")
    flags = ["--text", "description", "--labels", "tags", "--label-separator", ","]
    words = ["fit", "a.csv", "--model", "max-margin", *flags, "--out", "m.lw", "-q"]
    warned = run(*words).err
    assert "warning: 2 of 8 cells of column 'tags' are blank and count as rows without labels" in warned
    assert "--empty-labels unknown" in warned
    weights = labelweave.load("m.lw").classifier_.coef_
    assert run(*words, "--empty-labels", "none").err == ""
    np.testing.assert_array_equal(labelweave.load("m.lw").classifier_.coef_, weights)
    assert run(*words, "--empty-labels", "unknown").err == ""
    model = labelweave.load("m.lw")
    assert model.columns_.empty_labels == "unknown"
    assert not np.array_equal(model.classifier_.coef_, weights)
    assert "8 rows" in run("evaluate m.lw a.csv").out
    rows = [
        {"text": text, "tags": tags} for text in ("red sea", "blue sky") for tags in ([], ["a", "b"], ["a"])
    ]
    (tmp_path / "l.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["fit", "l.jsonl", "--model", "max-margin", "--labels", "tags", "--out", "m.lw", "-q"]
    assert run(*words).err == ""  # an empty list is complete


MODELS = pytest.mark.parametrize(
    "words", [["max-margin"], ["max-margin", "--kernel", "rbf"], ["kernel-logistic"]]
)
WITHOUT_LEARNING = ["--hyperparameters", "fixed"]


def _fit_threshold(run, words, *more, code=0):
    fixed = WITHOUT_LEARNING if "kernel-logistic" in words else []
    return run("fit d.txt --out m.lw --model", *words, *fixed, *more, code=code)


@MODELS
def test_thresholds_are_chosen_and_told(run, matrix_files, words):
    summary = _fit_threshold(run, words, "--tune-threshold", "macro_f1,validation_fraction=0.4").err
    model, rows = labelweave.load("m.lw"), read_any("d.txt")
    assert len(set(model.thresholds_)) > 1
    assert model.validation_fraction == 0.4
    told = run("inspect m.lw").out
    for text in (summary, told):
        assert "one threshold per label, from " in text
        assert "best for macro_f1" in text
    found = run("predict m.lw d.txt --top 3").records
    best = model.predict_top(rows.X, 3)[0]
    assert [[int(entry["label"]) for entry in row["labels"]] for row in found] == best.tolist()


@MODELS
def test_nothing_is_told_of_the_usual_threshold(run, matrix_files, words):
    assert "threshold" not in _fit_threshold(run, words).err
    assert "threshold  " not in run("inspect m.lw").out
    usual = 0.5 if "kernel-logistic" in words else 0.0
    np.testing.assert_array_equal(labelweave.load("m.lw").thresholds_, usual)


def test_a_probability_is_a_threshold(run, matrix_files):
    summary = _fit_threshold(run, ["kernel-logistic"], "--threshold", 0.3).err
    assert "threshold probability 0.3" in summary
    np.testing.assert_allclose(labelweave.load("m.lw").thresholds_, 0.3)
