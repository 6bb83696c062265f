"""``labelweave fit`` without ``--model``: several models combined, unless flags or data need max-margin."""

from __future__ import annotations

import json

import numpy as np
import pytest

import labelweave
from labelweave.app.cli import fitting, progress
from labelweave.datasets import read_any
from labelweave.decisions.automatic.members import Members

QUICK = ("--time-budget", 0.001)


def _classifier(path="m.lw"):
    model = labelweave.load(path)
    return getattr(model, "classifier_", model)


@pytest.mark.parametrize("format", ["mulan", "xmc", "svmlight"])
def test_it_is_the_usual_model(run, matrix_files, format):
    told = run("fit", matrix_files[format], *QUICK, "--metric", "hamming_loss", "--seed", 3, "--out", "m.lw")
    model, data = labelweave.load("m.lw"), read_any(matrix_files[format])
    twin = labelweave.AutoLabelClassifier("hamming_loss", time_budget=0.001, random_state=3)
    np.testing.assert_array_equal(model.thresholds_, twin.fit(data.X, data.Y).thresholds_)
    assert "weight  left-out loss  seconds  member" in told.err
    assert "1 of 1 members in" in told.err
    assert "left out" in told.err
    assert "so the model is" not in told.err


def test_every_command_takes_its_file(run, matrix_files, tmp_path):
    run("fit", "d.arff", *QUICK, "--members", "rbf, linear", "--out", "m.lw", "-q")
    assert [member["name"] for member in _classifier().members_] == ["rbf", "linear"]
    lines = [json.loads(line) for line in run("predict", "m.lw", "d.arff").out.splitlines()]
    assert len(lines) == 60
    assert json.loads(run("evaluate", "m.lw", "d.arff", "--json").out)["micro_f1"] > 0.3
    assert len(json.loads(run("inspect", "m.lw", "--json").out)["combination"]["members"]) == 2
    table = run("inspect", "m.lw").out.splitlines()[-3:]
    assert table[0] == "weight  left-out loss  seconds  member"
    assert [line.split()[3] for line in table[1:]] == ["rbf", "linear"]
    assert "probability is above" in run("inspect", "m.lw", "--thresholds").out
    assert (
        "combines several models, with which features" in run("inspect", "m.lw", "--label", "l0", code=2).err
    )
    assert "an AutoLabelClassifier, which has no graph" in run("inspect", "m.lw", "--graph", code=2).err
    run("report", "m.lw", "d.arff", "--out", "r.html")
    assert "rbf" in (tmp_path / "r.html").read_text()
    run("decide", "m.lw", "d.arff", "--conformal", "false_negatives,level=0.3", "--out", "c.lw")
    assert run("predict", "c.lw", "d.arff").out


def test_tables_with_text_and_missing_labels(run):
    flags = [
        "--text",
        "description",
        "--categorical",
        "section",
        "--labels",
        "tags",
        "--label-separator",
        ",",
    ]
    run("fit", "a.csv", *flags, *QUICK, "--out", "m.lw")
    assert isinstance(_classifier(), labelweave.AutoLabelClassifier)
    assert len(run("predict", "m.lw", "a.csv", "--top", 2).out.splitlines()) == 6
    assert "micro_f1" in run("evaluate", "m.lw", "a.csv").out


def test_one_class_a_row(run, tmp_path):
    rows = "".join(f"w{row % 3} v{row},k{row % 3}\n" for row in range(30)) + "w0 v0,?\n"
    (tmp_path / "c.csv").write_text("t,kind\n" + rows)
    run("fit", "c.csv", "--text", "t", "--labels", "kind", "--one-class", *QUICK, "--out", "m.lw")
    found = [json.loads(line) for line in run("predict", "m.lw", "c.csv").out.splitlines()]
    assert sum(one["class"] == f"k{row % 3}" for row, one in enumerate(found[:30])) >= 28
    assert "accuracy" in run("evaluate", "m.lw", "c.csv").out


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--C", 0.5], "--C is a flag of max-margin"),
        (["--kernel", "rbf"], "--kernel is a flag of max-margin"),
        (["--data-taxonomy"], "--data-taxonomy is a flag of max-margin"),
        (["--calibrate", "sigmoid,cv=2"], "--calibrate fits a model several times"),
    ],
)
def test_flags_of_max_margin_ask_for_it(run, tmp_path, flags, reason):
    (tmp_path / "h.arff").write_text(
        "@relation h\n@attribute x numeric\n@attribute class hierarchical 1,1/1,2\n@data\n"
        + "1,1/1\n2,2\n1.1,1/1\n2.2,2\n0.9,1/1\n2.1,2\n"
    )
    told = run("fit", "h.arff", *flags, "--out", "m.lw").err
    said = f"labelweave: {reason}, so the model is max-margin; --model max-margin silences this."
    assert told.splitlines()[0] == said
    quiet = run("fit", "h.arff", *flags, "--out", "m.lw", "--model", "max-margin").err
    assert "so the model is" not in quiet


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--rank", 3], "--rank goes with --model low-rank, not with auto."),
        (["--graph", "full"], "--graph goes with --model label-graph, not with auto."),
        (["--class-paths"], "--class-paths goes with --model kernel-logistic, not with auto."),
        (["--metric", "f1"], "'f1' is not one of 'micro_f1', 'macro_f1'"),
        (["--time-budget", 0], "--time-budget must be a float in the range (0.0, inf). Got 0.0 instead."),
        (
            ["--members", "rbf,svm"],
            "--members rbf,svm; give 'auto', or a list of distinct names among",
        ),
        (
            ["--members", "rbf,rbf"],
            "--members rbf,rbf; give 'auto', or a list of distinct names among",
        ),
        (["--metric", "jaccard", "--C", 2], "--C goes with --model max-margin or label-tree, not with auto."),
        (["--model", "auto", "--kernel", "rbf"], "--kernel goes with --model max-margin, kernel-logistic"),
        (["--model", "auto", "--data-taxonomy"], "--data-taxonomy goes with --model max-margin"),
        (["--model", "max-margin", "--metric", "jaccard"], "--metric goes with --model auto, not with"),
    ],
)
def test_nonsense_is_one_line_and_code_2(run, matrix_files, flags, message):
    done = run("fit", "d.arff", *flags, "--out", "m.lw", code=2)
    assert message in done.err
    assert done.err.count("\n") == 1


def test_data_that_it_cannot_take_go_to_max_margin(run, matrix_files, tmp_path, monkeypatch):
    (tmp_path / "one.csv").write_text("t,y\nred rose,flower\n")
    words = ["fit", "one.csv", "--text", "t", "--labels", "y", "--out", "m.lw"]
    assert "one.csv has 1 row(s) with labels and auto needs 2, so the model is max-margin" in run(*words).err
    assert "n_samples=1" in run(*words, "--model", "auto", code=2).err
    assert "n_samples=1" in run(*words, "--metric", "jaccard", code=2).err
    monkeypatch.setattr(fitting, "LARGEST_TABLE", 100)
    told = run("fit", "d.arff", "--out", "m.lw").err
    assert "60 rows of 5 labels are more than auto writes out, 1e+02, so the model is max-margin" in told
    assert isinstance(_classifier(), labelweave.MaxMarginClassifier)


def test_cross_validation_and_comparison(run, matrix_files):
    words = ["--folds", 2, *QUICK, "--members", "rbf", "-q", "--json"]
    found = json.loads(run("cross-validate", "d.arff", *words).out)
    assert found["model"] == "auto"
    table = run("fit", "d.arff", *QUICK, "--compare", "max-margin", "--compare-folds", 2, "--out", "m.lw").out
    assert "auto" in table
    assert "max-margin" in table


def test_an_interrupt_saves_the_members_there_are(run, matrix_files, monkeypatch):
    make = Members.make

    def make_or_interrupt(self, name):
        if name == "rbf":
            raise KeyboardInterrupt
        return make(self, name)

    monkeypatch.setattr(Members, "make", make_or_interrupt)
    done = run("fit", "d.arff", *QUICK, "--members", "linear,rbf", "--out", "m.lw", code=130)
    assert "the model so far is saved in m.lw. The fit was interrupted after 1 of 2 members;" in done.err


def test_progress_names_the_member_and_the_time_left(run, matrix_files, monkeypatch):
    monkeypatch.setattr(progress.GapLines, "_pause", lambda _: 0.0)
    monkeypatch.setattr("labelweave.estimators.progress_lines._QUIET_SECONDS", 0.0)
    told = run("fit", "d.arff", *QUICK, "--members", "linear", "--out", "m.lw").err
    assert "scaling, step 1 of 8\n" in told
    assert "linear, step 3 of 8, about 0 s left" in told
