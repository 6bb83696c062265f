"""Fits of every kind take no more work than usual, to detect what only slows a solver down."""

import sys

import numpy as np
import pytest
from attacks.small_fits import CHECKPOINTED, data_of, fitted
from sklearn.base import clone

from labelweave import KernelLogisticClassifier, MaxMarginClassifier

MORE = {
    "margins, small tolerance": MaxMarginClassifier(kernel="rbf", solver="alternating_directions", tol=1e-8),
    "margins, coupled kernel": MaxMarginClassifier(
        kernel="rbf", solver="alternating_directions", tol=1e-6, label_covariance=0.6 * np.eye(5) + 0.4
    ),
    "margins, large cost": MaxMarginClassifier(C=1e4, tol=1e-6),
    "logistic, small tolerance": KernelLogisticClassifier(hyperparameters="fixed", tol=1e-10),
}
# rounds of a fit, and calls of functions that compute in it: the most that OpenBLAS's code for Prescott,
# Sandybridge, Haswell and SkylakeX takes, since how products are rounded moves a graph's rounds by a quarter
USUAL = {
    "margins, coordinates": (61, 4553),
    "margins, coupled": (94, 1804),
    "margins, rbf": (15, 2051),
    "margins, rbf blocks": (9, 616),
    "margins, rbf pairs": (6, 1318),
    "margins, learned": (84, 113220),
    "logistic, fixed": (4, 2291),
    "logistic, learned": (3, 34031),
    "logistic, tree": (3, 43706),
    "logistic, pivots": (3, 41905),
    "low rank": (13, 9604),
    "low rank, logistic": (12, 22580),
    "low rank, learned": (11, 27242),
    "low rank, path": (3, 76277),
    "graph, learned": (68, 41845),
    "graph, given": (44, 33971),
    "graph, proximal": (389, 173042),
    "graph, scores": (65, 54192),
    "margins, small tolerance": (20, 1718),
    "margins, coupled kernel": (20, 2333),
    "margins, large cost": (32, 6907),
    "logistic, small tolerance": (6, 3363),
}
_MORE = 1.1  # other processors round differently
_FOLDERS = ("solvers", "problems", "postprocessing", "features", "foundation/arrays")
_COUNTED = tuple(f"labelweave/{folder}/" for folder in _FOLDERS)


def _calls(work):
    """Count calls of functions in the folders that compute."""
    count = 0

    def note(frame, event, _):
        nonlocal count
        place = frame.f_code.co_filename.replace("\\", "/")
        count += event == "call" and any(folder in place for folder in _COUNTED)

    sys.setprofile(note)
    try:
        done = work()
    finally:
        sys.setprofile(None)
    return done, count


def work_of(name):
    data = data_of(name)
    model, calls = _calls(lambda: fitted(clone((CHECKPOINTED | MORE)[name]), *data))
    return model, (model.n_iter_, calls)


@pytest.mark.parametrize("name", USUAL)
def test_no_more_work_than_usual(name):
    model, found = work_of(name)
    assert model.status_ in ("converged", "settled")
    for taken, usual in zip(found, USUAL[name], strict=True):
        assert taken <= _MORE * usual
