"""``fit --threshold`` of max-margin and kernel logistic models."""

from __future__ import annotations

import json

import numpy as np
import pytest

import labelweave
from labelweave.datasets import read_any

MODELS = pytest.mark.parametrize(
    "words", [["max-margin"], ["max-margin", "--kernel", "rbf"], ["kernel-logistic"]]
)
FIXED = ["--hyperparameters", "fixed"]


def _fit(run, words, *more, code=0):
    fixed = FIXED if "kernel-logistic" in words else []
    return run("fit", "d.txt", "--out", "m.lw", "--model", *words, *fixed, *more, code=code)


@MODELS
def test_thresholds_are_chosen_and_told(run, matrix_files, words):
    summary = _fit(run, words, "--threshold", "macro_f1", "--validation-fraction", 0.4).err
    model, rows = labelweave.load("m.lw"), read_any("d.txt")
    assert len(set(model.thresholds_)) > 1
    assert model.validation_fraction == 0.4
    what = "probability one a label, from" if "kernel-logistic" in words else "one a label, from"
    told = run("inspect", "m.lw").out
    for text in (summary, told):
        line = next(line for line in text.splitlines() if line.startswith("threshold"))
        assert line.split(maxsplit=1)[1].startswith(what)
    assert what in json.loads(run("inspect", "m.lw", "--json").out)["threshold"]
    found = [json.loads(line) for line in run("predict", "m.lw", "d.txt", "--top", 3).out.splitlines()]
    best = model.predict_top(rows.X, 3)[0]
    assert [[int(entry["label"]) for entry in row["labels"]] for row in found] == best.tolist()


@MODELS
def test_nothing_is_told_of_the_usual_threshold(run, matrix_files, words):
    assert "threshold" not in _fit(run, words).err
    assert "threshold  " not in run("inspect", "m.lw").out
    usual = 0.5 if "kernel-logistic" in words else 0.0
    np.testing.assert_array_equal(labelweave.load("m.lw").thresholds_, usual)


def test_a_probability_is_a_threshold(run, matrix_files):
    summary = _fit(run, ["kernel-logistic"], "--threshold", 0.3).err
    assert "threshold probability 0.3" in summary
    np.testing.assert_allclose(labelweave.load("m.lw").thresholds_, 0.3)
    refused = _fit(run, ["kernel-logistic"], "--threshold", 1.5, code=2).err
    assert "macro_f1, micro_f1 or a float in the range (0.0, 1.0). Got 1.5 instead." in refused


def test_a_score_is_a_threshold(run, matrix_files):
    _fit(run, ["max-margin"], "--threshold", -0.25, "-q")
    np.testing.assert_array_equal(labelweave.load("m.lw").thresholds_, -0.25)


@MODELS
def test_the_share_of_rows_goes_with_a_choice(run, matrix_files, words):
    message = "--validation-fraction goes with --threshold f1, micro_f1, macro_f1,"
    assert message in _fit(run, words, "--validation-fraction", 0.2, code=2).err


def test_other_models_have_none(run, matrix_files):
    done = run("fit", "d.txt", "--out", "m.lw", "--model", "binary-relevance", "--threshold", "f1", code=2)
    models = "max-margin, kernel-logistic, low-rank or label-graph"
    assert f"--threshold goes with --model {models}, not with binary-relevance." in done.err
