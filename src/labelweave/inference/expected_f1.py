"""Label sets of the greatest expected F1 score, from probabilities.

For independent labels the best set of a row has its k most probable labels (Lewis, "Evaluating and optimizing
autonomous text classification systems", SIGIR 1995), and the best k is found in time L^2 (Ye et al., ICML
2012, section 4).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import panels
from labelweave.inference.labeled_scores import read_score_table

_MOST_LABELS = 1000  # of a row that are told apart
_LEFT_OUT = 1e-9  # probability mass that is not worth an operation
_BLOCK_ENTRIES = 2**20


class ExpectedF1Sizes(NamedTuple):
    """How many of its most probable labels every row should get.

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
    """Find the size of every row's label set of the greatest expected F1 score.

    The set itself is ``scores_above_top_k(probabilities, sizes) > 0``.

    Parameters
    ----------
    probabilities : array-like of shape (n, L)
        Of the labels, each from 0 to 1; taken to be independent.
    empty_value : float, default=0.0
        The F1 score of an empty set where nothing is true.  With 0, as in
        :func:`labelweave.metrics.f1_score`, no set is empty unless all probabilities are 0.

    Returns
    -------
    ExpectedF1Sizes
        Sizes and expected scores, exact up to rounding; of a row's labels beyond 1,000 that matter the
        expected number is taken for the number.

    Raises
    ------
    ValueError
        If a probability is outside 0 to 1, naming its place.

    Examples
    --------
    One label of probability 0.4 is better than none, and better than both.

    >>> from labelweave.inference import expected_f1_sizes
    >>> expected_f1_sizes([[0.4, 0.1]]).sizes.tolist()
    [1]
    """
    from labelweave.foundation.loops.expected_f1 import best_sizes

    if not 0 <= empty_value <= 1:
        raise ValueError(f"empty_value is {empty_value}; it is a number from 0 to 1.")
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
                "probabilities are from 0 to 1."
            )
        ranked, used, rest = _told_apart(block)
        best_sizes(ranked, used, rest, float(empty_value), sizes[rows], values[rows])
    return ExpectedF1Sizes(sizes, values)


def _told_apart(block: Array) -> tuple[Array, Array, Array]:
    """Sort the probabilities and tell how many of them matter, and what the others add up to."""
    ranked = -np.sort(-block, axis=1)
    tails = np.cumsum(ranked[:, ::-1], axis=1)[:, ::-1]
    if not block.shape[1]:
        raise ValueError("probabilities have no column; give one a label.")
    used = np.clip((tails > _LEFT_OUT).sum(axis=1), 1, _MOST_LABELS)
    rest = np.append(tails, np.zeros((len(tails), 1)), axis=1)[np.arange(len(tails)), used]
    return np.ascontiguousarray(ranked[:, : used.max(initial=1)]), used, rest
