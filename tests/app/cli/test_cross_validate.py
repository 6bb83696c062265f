from __future__ import annotations

import json

import numpy as np
import pytest

from labelweave import MaxMarginClassifier, compare
from labelweave.datasets import read_any
from labelweave.decisions.comparison import Comparison


def test_metrics_are_those_of_the_comparison(run, matrix_files, tmp_path):
    file = matrix_files["mulan"]
    words = ("cross-validate", file, "--folds", 3, "--seed", 4, "--C", 0.5, "--scaling", "none", "-q")
    found = json.loads(run(*words, "--json").out)
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
    done = run("cross-validate", "a.csv", *table, "--folds", 2, "--calibrate", "sigmoid,cv=2", "-q")
    assert "max-margin, calibrated, 6 rows, 2 folds" in done.out
    kinds = [("blue", "b") if k % 2 else ("red", "r") for k in range(26)]
    lines = ["red thing,?"] * 4 + [f"{color} thing,{kind}" for color, kind in kinds]
    (tmp_path / "k.csv").write_text("\n".join(["text,kind", *lines, ""]))
    words = ("--text", "text", "--labels", "kind", "--one-class", "--folds", 3, "--json", "-q")
    found = json.loads(run("cross-validate", "k.csv", *words, "--model", "kernel-logistic").out)
    assert found["metrics"]["accuracy"]["mean"] == 1.0
    assert "log_loss" in found["metrics"]
    assert found["rows"] == 30


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--folds", 1], "--folds"),
        (["--folds", 999], "--folds 999 needs as many rows, but DATA has 60."),
        (["--out", "m.lw"], "No such option '--out'"),
        (["--compare", "binary-relevance"], "No such option '--compare'"),
        (["--rank", 3], "--rank goes with --model"),
    ],
)
def test_nonsense_is_one_sentence(run, matrix_files, words, said):
    done = run("cross-validate", matrix_files["mulan"], *words, code=2)
    assert said in done.err
    assert "Traceback" not in done.err


def test_the_interval_of_a_mean_is_the_difference_to_nothing():
    values = {
        name: {"micro_f1": np.array(part)} for name, part in {"a": [0.2, 0.4, 0.5], "b": [0.0] * 3}.items()
    }
    found = Comparison(values, 0.5, "b")
    assert found.interval("a", "micro_f1") == found.difference("a", "micro_f1")
    with pytest.raises(ValueError, match="level is 2"):
        found.interval("a", "micro_f1", 2)


@pytest.mark.parametrize("n_models", [1, 3, 8])
def test_comparisons_fit_into_80_columns(n_models):
    rng = np.random.default_rng(0)
    names = ["max-margin, calibrated, conformal", *(f"binary-relevance {k}" for k in range(n_models))]
    metrics = ("label_ranking_average_precision", "micro_f1")
    values = {name: {metric: rng.random(5) / 1000 for metric in metrics} for name in names}
    out = repr(Comparison(values, 0.25, names[0]))
    assert max(map(len, out.splitlines())) <= 80
    assert out.count("label_ranking_average_precision") == out.count("metric ") >= 1
    assert all(f"{k}" in out for k in range(n_models))
    assert "…" not in out  # nothing is cut
    assert " ".join(out.split()).endswith("conformal, * where it leaves out 0")
