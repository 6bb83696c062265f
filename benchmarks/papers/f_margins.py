"""A structured support vector machine whose loss is 1 - F1 of a row's label set.

After Petterson and Caetano ("Submodular multi-label learning", NeurIPS 2011), without their pairs of labels:
every label has a score ``s = W x``, linear in the features and a constant 1, and scores above 0 are
predicted.  The weights minimise ``|W|^2 / 2 + C sum_i max_z (1 - F1(y_i, z) - s_i . (y_i - z))`` by
block-coordinate Frank-Wolfe steps (Lacoste-Julien et al., ICML 2013), to a relative gap of 1 % or for 200
passes.  The set that attains a row's maximum is exact: for each number of true labels and of others it has
those of the highest scores.
"""

from __future__ import annotations

import time
from typing import Any

import numba
import numpy as np

from labelweave import MaxMarginClassifier
from labelweave.metrics import f1_score, hamming_loss

_PENALTIES = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
_THRESHOLDS = "hinge, thresholds"
_FOLDS, _GAP, _PASSES, _BETWEEN = 5, 0.01, 200, 10


@numba.njit(cache=True)
def worst_set(scores: Any, truth: Any) -> tuple[Any, float]:
    """Find the set z of the highest ``1 - F1(truth, z) + scores . z``, and its ``1 - F1``.

    Two empty sets have F1 1.

    scores: the labels' scores.
    truth: 1 for true labels, else 0.
    labels: The set, as ``truth`` is.
    loss: Its 1 - F1.
    """
    order = np.argsort(-scores)
    true, false = order[truth[order] > 0], order[truth[order] == 0]
    highest, n_true, n_false, loss = -np.inf, 0, 0, 0.0
    kept = 0.0
    for t in range(len(true) + 1):
        value = kept
        for f in range(len(false) + 1):
            size = len(true) + t + f
            own = 1.0 - 2.0 * t / size if size else 0.0
            if value + own > highest:
                highest, n_true, n_false, loss = value + own, t, f, own
            if f < len(false):
                value += scores[false[f]]
        if t < len(true):
            kept += scores[true[t]]
    labels = np.zeros(len(scores))
    labels[true[:n_true]] = 1.0
    labels[false[:n_false]] = 1.0
    return labels, loss


@numba.njit(cache=True)
def _pass_over(X: Any, Y: Any, order: Any, C: float, W: Any, A: Any, losses: Any) -> None:
    """Take a step at every row: its share of W is the product of its row of A and its features."""
    for i in order:
        scores = W @ X[i]
        labels, loss = worst_set(scores, Y[i])
        away = A[i] - C * (Y[i] - labels)
        gain = away @ scores - losses[i] + C * loss
        curvature = (X[i] @ X[i]) * (away @ away)
        if gain > 0.0 and curvature > 0.0:
            step = min(1.0, gain / curvature)
            A[i] -= step * away
            losses[i] += step * (C * loss - losses[i])
            for label in range(len(away)):
                W[label] -= step * away[label] * X[i]


@numba.njit(cache=True)
def _primal(X: Any, Y: Any, C: float, W: Any) -> float:
    total = np.sum(W * W) / 2.0
    for i in range(len(X)):
        scores = W @ X[i]
        labels, loss = worst_set(scores, Y[i])
        total += C * (loss - scores @ (Y[i] - labels))
    return total


def _weights(X: Any, Y: Any, C: float) -> tuple[Any, float]:
    """Fit; give the weights, those of the constant last, and the relative gap."""
    X = np.ascontiguousarray(np.column_stack([X, np.ones(len(X))]))
    Y = np.ascontiguousarray(Y, float)
    W, A, losses = np.zeros((Y.shape[1], X.shape[1])), np.zeros_like(Y), np.zeros(len(X))
    random, gap = np.random.default_rng(0), np.inf
    for done in range(1, _PASSES + 1):
        _pass_over(X, Y, random.permutation(len(X)), C, W, A, losses)
        if done % _BETWEEN == 0:
            primal = _primal(X, Y, C, W)
            gap = (primal - losses.sum() + np.vdot(W, W) / 2.0) / primal
            if gap <= _GAP:
                break
    return W, float(gap)


def _predicted(way: str, C: float, X: Any, Y: Any, X_new: Any) -> tuple[Any, float]:
    """Fit in one of the ways; give the label sets of new rows, and the relative gap."""
    if way == "margins of F1":
        W, gap = _weights(X, Y, C)
        return (X_new @ W[:, :-1].T + W[:, -1] > 0).astype(int), gap
    threshold = "example_f1" if way == _THRESHOLDS else "auto"
    model = MaxMarginClassifier(C=C, threshold=threshold, n_jobs=1).fit(X, Y)
    return model.predict(X_new), float(model.duality_gap_)


def measure(X: Any, Y: Any, X_test: Any, Y_test: Any) -> dict[str, dict[str, Any]]:
    """Choose penalties by example-F1 of left-out training rows, fit, and measure on test rows.

    X, Y, X_test, Y_test: training and test rows, with their labels of 0 and 1.
    Returns: by the way of training, the measures; "ahead" is by how much example-F1 is above that of hinge
    losses with thresholds, "error" the standard error of that over test rows.
    """
    folds, found, rows = np.random.default_rng(0).permutation(len(X)) % _FOLDS, {}, {}
    for way in (_THRESHOLDS, "hinge", "margins of F1"):
        begin, known = time.process_time(), np.zeros(len(_PENALTIES))
        for place, C in enumerate(_PENALTIES):
            for fold in range(_FOLDS):
                kept, held = folds != fold, folds == fold
                sets = _predicted(way, C, X[kept], Y[kept], X[held])[0]
                known[place] += f1_score(Y[held], sets, average="example") * held.mean()
        C = _PENALTIES[int(known.argmax())]
        sets, gap = _predicted(way, C, X, Y, X_test)
        rows[way] = 2.0 * (sets * Y_test).sum(axis=1) / np.maximum(1, (sets + Y_test).sum(axis=1))
        ahead = rows[way] - rows[_THRESHOLDS]
        of_F1 = {f"{name}-F1": f1_score(Y_test, sets, average=name) for name in ("example", "micro", "macro")}
        found[way] = of_F1 | {
            "Hamming": hamming_loss(Y_test, sets),
            "ahead": ahead.mean(),
            "error": ahead.std(ddof=1) / len(ahead) ** 0.5,
            "left out": known.max(),
            "C": C,
            "gap": gap,
            "seconds": time.process_time() - begin,
        }
    return {way: {name: float(value) for name, value in numbers.items()} for way, numbers in found.items()}
