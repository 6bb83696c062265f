"""AdaBoost.MH (Schapire and Singer 2000) and ranking by perceptrons (Crammer and Singer 2003)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

_QUANTILES = np.linspace(0.0, 1.0, 9)[1:-1]


def boost(rounds: int, X: Any, Y: Any, X_new: Any) -> Any:
    """Sum the confidences of stumps, one question a round for all labels (real AdaBoost.MH)."""
    asked, asked_new = _questions(X, X), _questions(X, X_new)
    signs = np.where(Y > 0, 1.0, -1.0).astype(np.float32)
    scores, scores_new = np.zeros_like(signs), np.zeros((X_new.shape[0], Y.shape[1]))
    smoothing = 1.0 / signs.size
    for _ in range(rounds):
        weights = np.exp(-signs * scores)
        weights /= weights.sum()
        parts = np.stack([weights * (signs > 0), weights * (signs < 0)])
        yes = np.stack([asked.T @ part for part in parts])  # (side, question, label)
        no = parts.sum(axis=1)[:, None] - yes
        losses = np.sqrt(np.maximum(yes[0] * yes[1], 0)) + np.sqrt(np.maximum(no[0] * no[1], 0))
        best = int(np.argmin(losses.sum(axis=1)))
        answers = np.maximum(np.stack([no[:, best], yes[:, best]]), 0.0) + smoothing
        confidences = 0.5 * np.log(answers[:, 0] / answers[:, 1])  # (answer, label)
        scores += confidences[_column(asked, best)].astype(np.float32)
        scores_new += confidences[_column(asked_new, best)]
    return scores_new


def _questions(X: Any, X_new: Any) -> Any:
    """Answer for new rows, 0/1, whether a word is there, or a feature above a quantile of the rows X."""
    if sp.issparse(X):
        return sp.csc_array((X_new[:, np.unique(X.indices)] != 0).astype(np.float32))
    levels = np.quantile(X, _QUANTILES, axis=0)
    return (X_new[:, None] > levels).reshape(len(X_new), -1).astype(np.float32)


def _column(asked: Any, place: int) -> Any:
    column = asked[:, [place]]
    return (column.toarray() if sp.issparse(column) else column).ravel().astype(np.intp)


def rank(passes: int, share: float, K: Any, Y: Any, K_new: Any) -> Any:
    """Train the perceptron with uniform updates; rows have as many labels as that share of the mean.

    K, K_new: kernel values of training rows, and of new rows with training rows.
    Returns: 1/2 for the predicted labels of new rows, and -1/2 for the others.
    """
    duals = np.zeros(Y.shape)
    for row in np.tile(np.arange(len(Y)), passes):
        scores, has = K[row] @ duals, Y[row] > 0
        wrong = scores[has][:, None] <= scores[~has]
        if wrong.any():
            duals[row, has] += wrong.sum(axis=1) / wrong.sum()
            duals[row, ~has] -= wrong.sum(axis=0) / wrong.sum()
    order = np.argsort(np.argsort(-(K_new @ duals), axis=1), axis=1)
    return (order < round(share * float((Y > 0).sum(axis=1).mean()))) - 0.5
