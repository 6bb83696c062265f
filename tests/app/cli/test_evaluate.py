"""``labelweave evaluate``, ``report``, ``cross-validate``, and ``fit --compare``."""

import csv
import sys
from types import SimpleNamespace

import pytest

import labelweave
from labelweave import MaxMarginClassifier, compare
from labelweave.app.cli import messages
from labelweave.app.cli.comparing import models_to_compare
from labelweave.datasets import read_any
from labelweave.metrics import score_table


@pytest.mark.parametrize("format", ["mulan", "xmc", "svmlight"])
def test_metrics_are_those_of_the_library(run, matrix_files, format):
    file = matrix_files[format]
    run("fit", file, "--model", "max-margin", "--out", "m.lw", "-q")
    found = run("evaluate m.lw", file, "--json").json
    data, model = read_any(file), labelweave.load("m.lw")
    expected = score_table(data.Y, data.X @ model.coef_.T + model.intercept_)
    assert found.pop("rows") == 60
    assert found.pop("labels") == 5
    found.pop("per_label")
    assert found == pytest.approx(expected)


def test_tables_need_no_flags_and_missing_labels_do_not_count(run, table_model):
    done = run("evaluate", table_model, "a.csv")
    assert "micro_f1" in done.out
    assert "1.0000" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_other_columns_of_labels(run, table_model, tmp_path):
    (tmp_path / "t.csv").write_text("description,section,kinds\na game of chess,games,game|x11\n")
    words = ("evaluate", table_model, "t.csv", "--json", "--labels", "kinds", "--label-separator", "|")
    assert run(*words).json["micro_f1"] == 1.0


def test_unknown_labels(run, table_model, matrix_files, tmp_path):
    text = (tmp_path / "a.csv").read_text()
    (tmp_path / "u.csv").write_text(text.replace("game,x11", "game,x11,toy"))
    ignored = run("evaluate", table_model, "u.csv", "--ignore-unknown-labels")
    assert ignored.out == run("evaluate", table_model, "a.csv").out
    named = "ignored 1 label that the model lacks, with 1 positive: 'toy' (1)."
    assert named in ignored.err
    run("fit d.arff --model max-margin --out d.lw -q")
    for name in ("d.arff", "d.xml"):
        (tmp_path / name).write_text((tmp_path / name).read_text().replace("l0", "new"))
    done = run("evaluate d.lw d.arff --unknown-labels raise", code=2)
    assert "The label 'new' is unknown to the model (1 of 5 are)" in done.err
    done = run("evaluate d.lw d.arff --json")
    assert "1 label unknown to the model count as missed, with their numbers of rows: 'new' (" in done.err
    assert "--ignore-unknown-labels ignores them" in done.err
    done = run("evaluate d.lw d.arff --ignore-unknown-labels --json")
    assert done.json["labels"] == 4
    assert "1 of the model's 5 labels are not in the data" in done.err
    assert "ignored 1 label that the model lacks" in done.err
    assert "'new' (" in done.err


def test_features_of_svmlight_files_count_as_in_the_training_file(run, matrix_files, tmp_path):
    run("fit d.svm --model max-margin --out d.lw -q")
    rows = [line for line in (tmp_path / "d.svm").read_text().splitlines() if " 0:" not in line]
    (tmp_path / "t.svm").write_text("\n".join(rows) + "\n")
    found = {words: run("evaluate d.lw t.svm --json", *words) for words in ((), ("--zero-based",))}
    assert found[()].out == found["--zero-based",].out
    assert run("evaluate d.lw t.svm --json --one-based").out != found[()].out
    model = labelweave.load("d.lw")
    del model.first_feature_  # as in earlier files
    model.save("d.lw")
    assert "--zero-based or --one-based" in run("evaluate d.lw t.svm").err


def test_labels_nobody_has_in_an_svmlight_file(run, matrix_files, tmp_path):
    run("fit d.svm --model max-margin --out d.lw -q")
    (tmp_path / "t.svm").write_text("0 0:1\n0 1:1\n")
    done = run("evaluate d.lw t.svm --zero-based --json")
    assert done.json["labels"] == 5
    (tmp_path / "t.svm").write_text("9 0:1\n")
    assert "'9' (1)" in run("evaluate d.lw t.svm --zero-based").err


def test_undefined_metrics(run, table_model, tmp_path):
    (tmp_path / "n.csv").write_text("description,section,tags\nchess,games,game\n")
    assert "undefined" in run("evaluate", table_model, "n.csv").out
    assert run("evaluate", table_model, "n.csv", "--json").json["auc_label"] is None


def test_numbers_of_every_label(run, fit_table, tmp_path):
    text = (tmp_path / "a.csv").read_text()
    (tmp_path / "a.csv").write_text(text.replace('daemon"', '=daemon()"'))
    fit_table("--quiet")
    rows = run("evaluate m.lw a.csv --json").json["per_label"]
    named = {row.pop("label"): row for row in rows}
    assert list(named) == ["=daemon()", "game", "net", "x11"]
    assert named["game"] == {
        "observed": 5,
        "positive": 3,
        "predicted": 3,
        "found": 3,
        **dict.fromkeys(["precision", "recall", "f1", "auc"], 1.0),
    }
    lines = list(csv.reader(run("evaluate m.lw a.csv --csv").out.splitlines()))
    assert lines[0] == ["label", *named["game"]]
    assert [line[0] for line in lines[1:]] == ["'=daemon()", "game", "net", "x11"]  # no formula
    (tmp_path / "n.csv").write_text("description,section,tags\nchess,games,game\n")
    assert run("evaluate m.lw n.csv --csv").out.splitlines()[1].endswith(",,,,")  # not defined


def test_a_table_with_texts(run, table_model, tmp_path):
    done = run("report", table_model, "a.csv", "--id", "package", "--out", "r.html")
    assert "the report is in r.html" in done.err
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<title>m.lw on a.csv</title>" in html
    assert "Row p" in html
    assert "chess" in html
    assert "duality gap" in html
    assert "labelweave" in html


def test_matrix_files_with_names(run, matrix_files, tmp_path):
    run("fit d.arff --model max-margin --out m.lw -q")
    done = run("report m.lw d.arff --out r.html --title 'Mine & yours' --weakest 2 -q")
    assert done.err == ""
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<h1>Mine &amp; yours</h1>" in html
    assert html.count('<details class="weak"') == 2
    assert ">f" in html


def test_words_that_are_no_text(run, table_model, tmp_path):
    run("report", table_model, "a.csv", "--title", "t\udce9", "--out", "r.html")
    assert "<title>t\\udce9</title>" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_one_class_a_row(run, fit_things, tmp_path):
    fit_things("--class-paths --quiet")
    run("report m.lw test.csv --out r.html")
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "The tree" in html
    assert "Weak classes" in html


def test_unknown_labels_can_be_ignored_in_a_report(run, table_model, tmp_path):
    text = (tmp_path / "a.csv").read_text()
    (tmp_path / "u.csv").write_text(text.replace("game,x11", "game,x11,toy"))
    run("report", table_model, "u.csv", "--out", "r.html", "--ignore-unknown-labels")


def test_progress_is_told_after_two_seconds(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 2.5, 3.0])
    # instead of the module: threads of other tests, such as the loop of a Dask cluster, read its clock too
    monkeypatch.setattr(messages, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    tell = messages.Waiting()
    for words in ("one", "two", "three"):
        tell(words)
    assert capsys.readouterr().err == "labelweave: two, 2 s\n"


def test_metrics_are_those_of_the_comparison(run, matrix_files, tmp_path):
    file = matrix_files["mulan"]
    words = ("cross-validate", file, "--folds", 3, "--seed", 4, "--C", 0.5, "--scaling", "none", "-q")
    found = run(*words, "--json").json
    data = read_any(file)
    model = MaxMarginClassifier(C=0.5, random_state=4)
    expected = compare([model], data.X, data.Y, 3, random_state=4)
    assert (found["model"], found["rows"], found["folds"]) == ("max-margin", 60, 3)
    one = found["metrics"]["micro_f1"]
    assert one["folds"] == pytest.approx(expected.values["MaxMarginClassifier"]["micro_f1"])
    interval = expected.interval("MaxMarginClassifier", "micro_f1")
    assert (one["mean"], one["low"], one["high"]) == pytest.approx(
        (interval.mean, interval.low, interval.high)
    )
    shown = run(*words).out
    assert "max-margin, 60 rows, 3 folds" in shown
    assert f"{interval.low:.4g} to {interval.high:.4g}" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert not (tmp_path / "m.lw").exists()


def test_tables_wrappers_and_classes(run, tmp_path):
    table = ("--text", "description", "--labels", "tags", "--label-separator", ",", "--id", "package")
    done = run("cross-validate a.csv", *table, "--folds", 2, "--calibrate", "sigmoid,cv=2", "-q")
    assert "max-margin, calibrated, 6 rows, 2 folds" in done.out
    kinds = [("blue", "b") if k % 2 else ("red", "r") for k in range(26)]
    lines = ["red thing,?"] * 4 + [f"{color} thing,{kind}" for color, kind in kinds]
    (tmp_path / "k.csv").write_text("\n".join(["text,kind", *lines, ""]))
    words = ("--text", "text", "--labels", "kind", "--one-class", "--folds", 3, "--json", "-q")
    found = run("cross-validate k.csv", *words, "--model", "kernel-logistic").json
    assert found["metrics"]["accuracy"]["mean"] == 1.0
    assert "log_loss" in found["metrics"]
    assert found["rows"] == 30


def test_models_are_compared_before_the_fit(run, matrix_files, tmp_path):
    words = ["--compare", "low-rank, binary-relevance", "--compare-folds", 2, "--out", "m.lw"]
    done = run("fit", matrix_files["mulan"], "--model", "max-margin", "--tol", 1e-2, *words)
    for word in ("max-margin", "low-rank", "binary-relevance", "micro_f1", "mean over 2 folds"):
        assert word in done.out
    assert (tmp_path / "m.lw").exists()


def test_says_what_clusters_need(run, table_model, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    said = run("evaluate", table_model, "a.csv", "--dask", "local:2", code=2).err
    assert said == "labelweave: labelweave.dask needs Dask: install labelweave[dask].\n"


def test_models_of_label_sets_are_refused_for_classes():
    with pytest.raises(Exception, match="many labels per row"):
        models_to_compare("binary-relevance", "max-margin", are_classes=True)
