"""Rank and regularization chosen by cross-validation on the command line."""

from __future__ import annotations

import json
import signal

import numpy as np
import pytest

import labelweave
from labelweave import LowRankClassifierCV
from labelweave.app.cli import progress
from labelweave.datasets import read_any

LOW_RANK = ("--model", "low-rank", "--out", "m.lw")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "parameters"),
    [
        (["--cv", 3, "--ranks", "0.2,0.4,0.6", "--regularizations", "0.1,1,10",
          "--scoring", "precision_at_1"],
         {"cv": 3, "ranks": [0.2, 0.4, 0.6], "regularizations": [0.1, 1.0, 10.0],
          "scoring": "precision_at_1"}),
        (["--ranks", "2, 5", "--regularization", 0.5], {"ranks": [2, 5], "regularizations": [0.5]}),
        (["--regularizations", 3, "--rank", 0.4, "--rule", "one_standard_error"],
         {"ranks": [0.4], "regularizations": 3, "rule": "one_standard_error"}),
        (["--regularizations", "0.5", "--penalty", "ridge", "--threshold", "f1"],
         {"regularizations": [0.5], "penalty": "ridge", "threshold": "f1"}),
        (["--scoring", "micro_f1", "--rank", 3], {"ranks": [3], "scoring": "micro_f1"}),
        (["--ranks", "2", "--regularizations", "1,2", "--kernel", "rbf", "--hyperparameters", "learn",
          "--learning-rows", 40, "--max-learning-iter", 3],
         {"ranks": [2], "regularizations": [1.0, 2.0], "kernel": "rbf", "hyperparameters": "learn",
          "learning_rows": 40, "max_learning_iter": 3}),
    ],
)  # fmt: skip
def test_flags_reach_the_classifier(run, matrix_files, words, parameters):
    run("fit", "d.txt", *LOW_RANK, "-q", *words)
    model, data = labelweave.load("m.lw"), read_any("d.txt")
    twin = LowRankClassifierCV(scaling="auto", **parameters)
    assert isinstance(model, LowRankClassifierCV)
    given = {name: list(v) if isinstance(v, tuple) else v for name, v in twin.get_params().items()}
    assert model.get_params() == given
    twin.fit(data.X, data.Y)
    assert (model.best_rank_, model.best_regularization_) == (twin.best_rank_, twin.best_regularization_)
    np.testing.assert_array_equal(model.label_factors_, twin.label_factors_)


@pytest.mark.slow
def test_what_was_chosen_is_said(run, matrix_files):
    choice = ["--ranks", "1,3", "--regularizations", "0.1,1", "--cv", 3, "--scoring", "loss"]
    done = run("fit", "d.txt", *LOW_RANK, *choice)
    model = labelweave.load("m.lw")
    chosen = f"rank {model.best_rank_}, regularization {model.best_regularization_:.4g}, the best of 4 pairs"
    assert f"rank      {model.best_rank_} (chosen by cross-validation)" in done.err.splitlines()
    assert f"chosen    {chosen} on 3 folds: mean loss" in done.err
    assert f"chosen      {chosen} on 3 folds: mean" in run("inspect", "m.lw").out
    facts = json.loads(run("inspect", "m.lw", "--json").out)["choice"]
    assert facts["rank"] == model.best_rank_
    assert facts["status"] == "complete"
    assert [(pair["rank"], pair["regularization"]) for pair in facts["pairs"]] == [
        (3, 1.0), (1, 1.0), (3, 0.1), (1, 0.1)
    ]  # fmt: skip
    assert facts["score"] == max(pair["mean_test_score"] for pair in facts["pairs"])
    run(
        "fit",
        "d.txt",
        *LOW_RANK,
        "--ranks",
        "1,3",
        "--regularizations",
        10,
        "--scoring",
        "loss",
        "--rule",
        "one_standard_error",
        "-q",
    )
    assert "within a standard error of the best of 20" in " ".join(run("inspect", "m.lw").out.split())
    assert "precision@1" in json.loads(run("evaluate", "m.lw", "d.txt", "--json").out)


def test_progress_tells_fits_from_learning_and_rounds(rows):
    states, lines = [], progress.GapLines()
    lines.show = lambda: states.append(lines.state)
    choice = {"ranks": [1, 2], "regularizations": [1.0, 2.0], "cv": 3, "max_iter": 20}
    LowRankClassifierCV(**choice, kernel="rbf", hyperparameters="learn", max_learning_iter=2).set_callbacks(
        lines
    ).fit(rows.X, rows.Y)
    assert states[:3] == ["learning 1 of at most 2", "at the end of learning", "fit 1 of at most 12 to folds"]
    assert states[13] == "fit 12 of at most 12 to folds"
    assert states[14] == "round 1 of at most 20"


def _interrupt_at(monkeypatch, state):
    def show(lines):
        if lines.state == state:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(progress.GapLines, "show", show)


def test_an_interrupt_saves_the_best_pair_so_far(run, matrix_files, monkeypatch):
    _interrupt_at(monkeypatch, "fit 3 of at most 12 to folds")
    words = ["--ranks", "1,3", "--regularizations", "0.1,1", "--cv", 3]
    done = run("fit", "d.txt", *LOW_RANK, *words, code=130)
    assert "the model so far is saved in m.lw. The cross-validation was interrupted after 3 of 12" in done.err
    assert "Traceback" not in done.err
    assert labelweave.load("m.lw").search_status_ == "interrupted"
    assert "(interrupted)" in run("inspect", "m.lw").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--ranks", "0.2,1.5"],
         "--ranks has 1.5; a rank is a whole number from 1 on, or a share of the labels"),
        (["--ranks", "0"], "--ranks has 0; a rank is a whole number from 1 on, or a share of the labels"),
        (["--ranks", "2,"], "--ranks has ''; a rank is a whole number from 1 on, or a share of the labels"),
        (["--regularizations", "1,x"],
         "--regularizations has entries that are not numbers; they must be real"),
        (["--regularizations", "1,-1"],
         "--regularizations has -1.0; give numbers from 0 on, or how many to find from"),
        (["--regularizations", "nan"],
         "--regularizations has nan; give numbers from 0 on, or how many to find from"),
        (["--regularizations", "1e999"],
         "--regularizations has inf; give numbers from 0 on, or how many to find from"),
        (["--regularizations", "0"],
         "--regularizations must be an int in the range [1, inf). Got 0 instead."),
        (["--scoring", "accuracy"], "Invalid value for '--scoring'"),
        (["--rule", "worst"], "Invalid value for '--rule'"),
        (["--ranks", "2", "--cv", "1"], "--cv must be an int in the range [2, inf). Got 1 instead."),
        (["--ranks", "2", "--rank", 3], "--rank and --ranks name the same thing; give one of them."),
        (["--regularizations", "2", "--regularization", 3], "--regularization and --regularizations name"),
        (["--scoring", "loss", "--rank", 2, "--regularization", 3], "leave nothing to choose for --scoring"),
        (["--ranks", "2", "--learning-rows", 30],
         "--learning-rows goes with --hyperparameters learn, not with fixed."),
        (["--model", "binary-relevance", "--ranks", "2"], "--ranks goes with --model low-rank, not with bin"),
        (["--model", "binary-relevance", "--scoring", "loss"], "--scoring goes with --model low-rank, not"),
    ],
)  # fmt: skip
def test_nonsense_is_one_line_and_code_2(run, matrix_files, tmp_path, words, message):
    done = run("fit", "d.txt", *LOW_RANK, *words, code=2)
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "m.lw").exists()
