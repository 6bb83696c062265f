"""Ctrl-C on the command line: the best model so far and exit code 130, or nothing written and one line."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import labelweave
from labelweave.estimators.binary_relevance import fit as binary_relevance
from labelweave.estimators.low_rank import fit as low_rank_fit
from labelweave.model_files import safe_file


def _interrupt(monkeypatch, place, name, call=1):
    """Send SIGINT in some call of a function."""
    original, calls = getattr(place, name), []

    def interrupted(*arguments, **options):
        calls.append(name)
        if len(calls) == call:
            signal.raise_signal(signal.SIGINT)
        return original(*arguments, **options)

    monkeypatch.setattr(place, name, interrupted)


@pytest.mark.parametrize(
    ("words", "place", "name"),
    [
        (["low-rank", "--penalty", "ridge"], low_rank_fit.ReducedRankRidge, "fit"),
        (["binary-relevance"], binary_relevance, "make_ridge"),
    ],
)
def test_what_has_no_model_so_far_ends_without_a_file(
    run, matrix_files, tmp_path, monkeypatch, words, place, name
):
    _interrupt(monkeypatch, place, name)
    before = sorted(path.name for path in tmp_path.iterdir())
    done = run("fit d.txt --out m.lw --model", *words, code=130)
    assert done.err.split("\n", 1)[-1] == "labelweave: interrupted; nothing was written.\n"
    assert done.out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_labels_that_were_fitted_are_kept(run, matrix_files, monkeypatch):
    _interrupt(monkeypatch, binary_relevance, "_fit_label", 4)
    done = run("fit d.arff --out m.lw --model binary-relevance --loss log_loss", code=130)
    assert done.err.splitlines()[-1] == (
        "labelweave: The fit was interrupted after 3 of 5 labels; the weights of the others are 0. The model "
        "so far is saved in m.lw."
    )
    assert np.flatnonzero(labelweave.load("m.lw").coef_.any(axis=1)).tolist() == [0, 1, 2]
    assert ", interrupted" in run("inspect m.lw").out


def test_sigterm_removes_what_is_being_written(run, matrix_files, tmp_path, monkeypatch):
    monkeypatch.setattr(safe_file, "_unnamed", lambda *_: None)
    before, handler = sorted(tmp_path.iterdir()), signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(os, "fsync", lambda _: signal.raise_signal(signal.SIGTERM))
    done = run("convert d.txt e.svm --lossy", code=143)
    assert done.err == "labelweave: terminated; no file is incomplete.\n"
    assert sorted(tmp_path.iterdir()) == before
    assert signal.getsignal(signal.SIGTERM) is handler
