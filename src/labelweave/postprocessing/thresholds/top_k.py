"""The k best labels of a row: one k for all, or the k of the largest expected F1 score; propensity ranking.

For independent labels the set with the largest expected F1 score has a row's k most probable labels (Lewis,
"Evaluating and optimizing autonomous text classification systems", SIGIR 1995), and the best k is found in
time L^2 (Ye et al., ICML 2012, section 4).

Jain, Prabhu and Varma, "Extreme multi-label loss functions" (KDD 2016, sections 4 and 5): relevant labels are
annotated with a probability, the propensity, that is low for rare labels.  The probability that a
label is relevant is its probability of being annotated divided by the propensity; PfastreXML ranks by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array, Floats
from labelweave.foundation.arrays import largest_columns, numbers_of, panels
from labelweave.postprocessing.labeled_scores import LabeledScores, read_score_table
from labelweave.postprocessing.thresholds.objective import Objective, f1_of_counts

_MOST_LABELS = 200  # considered per row


@checked
def scores_above_top_k(scores: Array, k: Array | int) -> Array:
    """Shift the scores of every row so that exactly its k best labels have a positive one.

    The shift is halfway between the last score inside and the first outside.  If both are
    equal, the labels with the lower numbers get the smallest positive number.

    Parameters
    ----------
    scores : ndarray of shape (n, L)
        Scores.
    k : int or ndarray of int, shape (n,)
        The number of labels per row, from 0 to L.

    Returns
    -------
    ndarray of float64, shape (n, L)
        The shifted scores.

    Raises
    ------
    ValueError
        If scores are not finite, or k is not an integer from 0 to L.
    """
    table = read_score_table(scores).astype(np.float64)
    n_rows, n_labels = table.shape
    counts = np.asarray(numbers_of(k, "k"))
    is_count = (counts % 1 == 0) & (counts >= 0) & (counts <= n_labels)
    if counts.shape not in ((), (n_rows,)) or not is_count.all():
        raise ValueError(f"k is invalid; pass an integer from 0 to {n_labels}, or one per row ({n_rows}).")
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
    """Return the best number of labels for all rows, from 1 to 200.

    Unobserved labels take ranks among the k but are neither hits nor misses.  If a target cannot be
    reached it is the smallest k that comes closest.
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
    """Yield rows, their best labels, the weights of these as positives, and whether they are observed."""
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


_MOST_TOLD_APART = 1000  # per row with separate probabilities
_LEFT_OUT = 1e-9  # negligible probability mass
_BLOCK_ENTRIES = 2**20


class ExpectedF1Sizes(NamedTuple):
    """The number of most probable labels to predict per row.

    Parameters
    ----------
    sizes : ndarray of int64, shape (n,)
        The numbers of labels.
    values : ndarray of float64, shape (n,)
        The expected F1 scores of these sets.
    """

    sizes: Array
    values: Array


@checked
def expected_f1_sizes(probabilities: Any, *, empty_value: float = 0.0) -> ExpectedF1Sizes:
    """Find the label set size with the largest expected F1 score for every row.

    The set itself is ``scores_above_top_k(probabilities, sizes) > 0``.

    Parameters
    ----------
    probabilities : array-like of shape (n, L)
        Of the labels, each from 0 to 1; assumed independent.
    empty_value : float, default=0.0
        The F1 score of an empty set where nothing is true.  With 0, as in
        :func:`labelweave.metrics.f1_score`, no set is empty unless all probabilities are 0.

    Returns
    -------
    ExpectedF1Sizes
        Sizes and expected scores, exact up to rounding; relevant labels of a row beyond 1,000 count with
        their expected number.

    Raises
    ------
    ValueError
        If a probability is outside 0 to 1; the message names its place.

    Examples
    --------
    Predicting one label of probability 0.4 is better than none, and better than both.

    >>> from labelweave.postprocessing import expected_f1_sizes
    >>> expected_f1_sizes([[0.4, 0.1]]).sizes.tolist()
    [1]
    """
    from labelweave.foundation.loops.f1_scores import best_sizes

    if not 0 <= empty_value <= 1:
        raise ValueError(f"empty_value is {empty_value}; pass a number from 0 to 1.")
    table = read_score_table(probabilities)
    n_rows, n_labels = table.shape
    sizes, values = np.zeros(n_rows, np.int64), np.zeros(n_rows)
    for rows in panels(n_rows, max(1, _BLOCK_ENTRIES // max(1, n_labels))):
        block = table[rows].astype(np.float64)
        outside = np.argwhere((block < 0) | (block > 1))
        if len(outside):
            row, label = outside[0]
            raise ValueError(
                f"The probability at row {rows.start + row}, label {label} is {block[row, label]}; "
                "pass numbers from 0 to 1."
            )
        ranked, used, rest = _told_apart(block)
        best_sizes(ranked, used, rest, float(empty_value), sizes[rows], values[rows])
    return ExpectedF1Sizes(sizes, values)


def _told_apart(block: Array) -> tuple[Array, Array, Array]:
    """Sort the probabilities; return them, how many of them matter, and the sum of the others."""
    ranked = -np.sort(-block, axis=1)
    tails = np.cumsum(ranked[:, ::-1], axis=1)[:, ::-1]
    if not block.shape[1]:
        raise ValueError("probabilities have no column; pass one per label.")
    used = np.clip((tails > _LEFT_OUT).sum(axis=1), 1, _MOST_TOLD_APART)
    rest = np.append(tails, np.zeros((len(tails), 1)), axis=1)[np.arange(len(tails)), used]
    return np.ascontiguousarray(ranked[:, : used.max(initial=1)]), used, rest


@checked
def favor_rare_labels(
    labels: Array, scores: Array, propensity: Array, k: int = 5, *, power: float = 0.5, sharpness: float = 3.0
) -> tuple[Array, Floats]:
    """Choose the best k labels of each row's candidates by probability / propensity ** power.

    Parameters
    ----------
    labels : ndarray of int, shape (n, m)
        Labels of each row, such as the 50 best of ``predict_top``.
    scores : ndarray of shape (n, m)
        Their scores.
    propensity : ndarray of shape (L,)
        The probability that each label is annotated if relevant, above 0 and at most 1, as
        :func:`labelweave.metrics.propensities` estimates it from the training labels.
    k : int, default=5
        The number of labels, at most m.
    power : float, default=0.5
        0 keeps the order; 1 is correct if the probabilities and propensities are.
    sharpness : float, default=3.0
        A score s stands for the probability 1 / (1 + exp(-sharpness s)): 3 for margins, as in label trees,
        1 for log-odds.

    Returns
    -------
    labels : ndarray of int, shape (n, k)
        Label numbers, best first; ties keep their order.
    scores : ndarray of shape (n, k)
        Logarithms of probability / propensity ** power.

    Raises
    ------
    ValueError
        If shapes differ, a label has no propensity, or a number is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.postprocessing import favor_rare_labels
    >>> labels, scores = np.array([[0, 1, 2]]), np.array([[0.2, 0.1, -0.9]])
    >>> favor_rare_labels(labels, scores, np.array([0.9, 0.5, 0.1]), 2)[0]
    array([[1, 0]])
    """
    table, numbers = read_score_table(scores).astype(np.float64), np.asarray(numbers_of(labels, "labels"))
    chances = np.asarray(numbers_of(propensity, "propensity"), np.float64)
    if numbers.shape != table.shape or numbers.dtype.kind not in "iu":
        raise ValueError(
            f"labels have shape {numbers.shape} and type {numbers.dtype} but scores have shape "
            f"{table.shape}; pass one label number per score."
        )
    if chances.ndim != 1 or not ((chances > 0) & (chances <= 1)).all():
        raise ValueError("propensity is invalid; pass one number per label, above 0 and at most 1.")
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < len(chances)):
        raise ValueError(
            f"labels has a number outside 0 to {len(chances) - 1}; use label numbers within propensity."
        )
    if not 1 <= k <= table.shape[1]:
        raise ValueError(f"k is {k}; pass an integer from 1 to the labels per row, {table.shape[1]}.")
    if not (np.isfinite(power) and power >= 0 and np.isfinite(sharpness) and sharpness > 0):
        raise ValueError(
            f"power is {power} and sharpness {sharpness}; both must be finite, power >= 0 and sharpness > 0."
        )
    with np.errstate(over="ignore"):
        found = -np.logaddexp(0.0, -sharpness * table) - power * np.log(chances)[numbers]
    order = np.argsort(-found, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(numbers, order, axis=1), np.take_along_axis(found, order, axis=1)
