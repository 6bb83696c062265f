"""``cross-validate``, and ``fit --compare``."""

import pytest

from labelweave import MaxMarginClassifier, compare
from labelweave.app.cli.comparing import models_to_compare
from labelweave.datasets import read_any


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


def test_models_of_label_sets_are_refused_for_classes():
    with pytest.raises(Exception, match="many labels per row"):
        models_to_compare("binary-relevance", "max-margin", are_classes=True)
