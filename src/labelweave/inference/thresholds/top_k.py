"""The same number of labels for every row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import largest_columns, numbers_of
from labelweave.inference.labeled_scores import LabeledScores, read_score_table
from labelweave.inference.thresholds.objective import Objective, f1_of_counts

_MOST_LABELS = 200  # considered for a row


@checked
def scores_above_top_k(scores: Array, k: Array | int) -> Array:
    """Shift the scores of every row so that just its k best labels have a positive one.

    The shift is half way between the last score inside and the first outside.  Where both are
    equal the labels with the lower numbers get the least positive number.

    Parameters
    ----------
    scores : ndarray of shape (n, L)
        Scores.
    k : int or ndarray of int, shape (n,)
        How many labels of every row, from 0 to L.

    Returns
    -------
    ndarray of float64, shape (n, L)
        The shifted scores.

    Raises
    ------
    ValueError
        If scores are not finite, or k is no whole number from 0 to L.
    """
    table = read_score_table(scores).astype(np.float64)
    n_rows, n_labels = table.shape
    counts = np.asarray(numbers_of(k, "k"))
    is_count = (counts % 1 == 0) & (counts >= 0) & (counts <= n_labels)
    if counts.shape not in ((), (n_rows,)) or not is_count.all():
        raise ValueError(f"k is no whole number from 0 to {n_labels}, nor one for each of {n_rows} rows.")
    counts = np.broadcast_to(counts.astype(np.intp), (n_rows,))
    if not table.size:
        return np.asarray(table)
    order = np.argsort(-table, axis=1, kind="stable")
    padded = np.pad(np.take_along_axis(table, order, axis=1), ((0, 0), (1, 1)), mode="edge")
    padded[:, 0] += 1.0
    padded[:, -1] -= 1.0
    rows = np.arange(n_rows)
    inside, outside = padded[rows, counts], padded[rows, counts + 1]
    shifted = table - (0.5 * inside + 0.5 * outside)[:, None]
    is_inside = np.empty(table.shape, bool)
    np.put_along_axis(is_inside, order, np.arange(n_labels) < counts[:, None], axis=1)
    least = np.finfo(np.float64).tiny
    return np.asarray(np.where(is_inside, np.maximum(shifted, least), np.minimum(shifted, 0.0)))


def best_top_k(table: LabeledScores, objective: Objective) -> int:
    """Find the best number of labels for all rows, from 1 to 200.

    Unobserved labels take places among the k but are neither hits nor misses.  Where a target cannot be
    reached it is the least k that misses least.
    """
    most = min(table.shape[1], _MOST_LABELS)
    if objective.name == "macro_f1":
        values = _label_values(table, most)
    elif objective.name == "example_f1":
        values = _row_values(table, most)
    else:
        values = _entry_values(table, objective, most)
    return 1 + int(np.argmax(values))


def _ranked_entries(table: LabeledScores, most: int) -> Iterator[tuple[slice, Array, Array, Array]]:
    """Hand out rows, their best labels, how much these count as positive, and whether they are observed."""
    for lines in table.row_blocks():
        labels = largest_columns(table.scores[lines.which], most)
        shares, seen = (np.take_along_axis(part, labels, axis=1) for part in (lines.shares, lines.signs != 0))
        yield lines.which, labels, shares, seen


def _entry_values(table: LabeledScores, objective: Objective, most: int) -> Array:
    hits, predicted = np.zeros((2, most))
    for rows, _, shares, seen in _ranked_entries(table, most):
        hits += table.weights[rows] @ shares
        predicted += table.weights[rows] @ seen
    hits, predicted = np.cumsum(hits), np.cumsum(predicted)
    values = objective.of_counts(hits, predicted, float(table.positive_weights().sum()))
    return hits if objective.name == "recall" and np.isneginf(values).all() else values


def _row_values(table: LabeledScores, most: int) -> Array:
    values, positives = np.zeros(most), table.row_positives()
    for rows, _, shares, seen in _ranked_entries(table, most):
        hits, predicted = np.cumsum(shares, axis=1), np.cumsum(seen, axis=1)
        values += table.weights[rows] @ f1_of_counts(hits, predicted, positives[rows][:, None])
    return values


def _label_values(table: LabeledScores, most: int) -> Array:
    hits, predicted = np.zeros((2, table.shape[1], most))
    places = np.arange(most)
    for rows, labels, shares, seen in _ranked_entries(table, most):
        weights = table.weights[rows][:, None]
        np.add.at(hits, (labels, places), weights * shares)
        np.add.at(predicted, (labels, places), weights * seen)
    hits, predicted = np.cumsum(hits, axis=1), np.cumsum(predicted, axis=1)
    return np.asarray(f1_of_counts(hits, predicted, table.positive_weights()[:, None]).sum(axis=0))
