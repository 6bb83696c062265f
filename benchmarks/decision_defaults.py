"""Strengths of pooling and kinds of calibration, compared on training rows alone.

A set's training rows are split into five folds, twice.  Every fold is scored by a model of the other four,
and thresholds and probabilities come from a fifth of these four that a clone did not see, as in a fit.
The test rows of the set take no part, so defaults may be chosen by these numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from labelweave import MaxMarginClassifier, metrics
from labelweave.decisions.label_scores import HeldOutScores, TrainingRows, score_held_out, split_rows
from labelweave.inference import calibrate_labels, choose_thresholds
from labelweave.labels import LabelMatrix
from labelweave.splits import IterativeStratifiedKFold

_OBJECTIVES = {"micro_f1": "micro", "macro_f1": "macro"}
_POOLINGS = ("auto", 0.0, 10.0, 50.0, 200.0)
_CALIBRATIONS: dict[str, dict[str, Any]] = {
    "auto": {"method": "auto"},
    "sigmoid": {"method": "sigmoid"},
    "isotonic, from 50": {"method": "isotonic", "min_positives": 50},
    "isotonic, from 500": {"method": "isotonic"},
}


def measure_defaults(problem: tuple[Any, Any, Any, Any]) -> dict[str, dict[str, float]]:
    """Compare strengths of pooling by F1 scores, and kinds of calibration by log loss.

    problem: X, Y, X_test, Y_test, of which the last two are not looked at.
    Returns: means over folds, and the standard errors of the differences from a pooling of 50 and from
    logistic curves.
    """
    lines: dict[str, list[dict[str, float]]] = {}
    for held, scores, truth in _folds(problem[0], problem[1]):
        for objective in _OBJECTIVES:
            lines.setdefault(f"{objective} by pooling", []).append(_f1(objective, held, scores, truth))
        lines.setdefault("log loss by calibration", []).append(_log_losses(held, scores, truth))
    return {title: _summary(runs) for title, runs in lines.items()}


def _folds(X: Any, Y: Any) -> Iterator[tuple[HeldOutScores, Any, Any]]:
    """Give scores of held-out rows of each four folds, and scores and labels of the fifth."""
    model = MaxMarginClassifier()
    for seed in (0, 1):
        for train, test in IterativeStratifiedKFold(shuffle=True, random_state=seed).split(X, Y):
            data = TrainingRows(X[train], Y[train], LabelMatrix(Y[train]), None)
            splits = split_rows(None, data, 0.2, seed)
            held = score_held_out(data, splits, "auto", partial(_fitted, model, data))[0]
            yield held, model.fit(X[train], Y[train]).decision_function(X[test]), Y[test]


def _fitted(model: Any, data: TrainingRows, rows: Any, _: Any) -> Any:
    return model.fit(data.X[rows], data.y[rows])


def _f1(objective: Any, held: HeldOutScores, scores: Any, truth: Any) -> dict[str, float]:
    found = {}
    for pooling in _POOLINGS:
        thresholds = choose_thresholds(held.labels, held.scores, objective, pooling=pooling).thresholds
        predicted = (scores > thresholds).astype(np.int8)
        found[str(pooling)] = metrics.f1_score(truth, predicted, average=_OBJECTIVES[objective])
    return found


def _log_losses(held: HeldOutScores, scores: Any, truth: Any) -> dict[str, float]:
    return {
        title: metrics.log_loss(
            truth, calibrate_labels(held.labels, held.scores, **how).probabilities(scores)
        )
        for title, how in _CALIBRATIONS.items()
    }


def _summary(runs: list[dict[str, float]]) -> dict[str, float]:
    usual = "50.0" if "50.0" in runs[0] else "sigmoid"
    gains = [run["auto"] - run[usual] for run in runs]
    means = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
    error = float(np.std(gains, ddof=1) / np.sqrt(len(gains)))
    return means | {"auto's gain": float(np.mean(gains)), "standard error": error}
