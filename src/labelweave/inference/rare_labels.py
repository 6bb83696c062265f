"""The best labels again, with rare ones moved up.

Jain, Prabhu and Varma, "Extreme multi-label loss functions" (KDD 2016, sections 4 and 5): labels that apply
are written down with a probability, the propensity, that is low for rare labels.  The probability that a
label applies is that of its being written down, divided by the propensity, by which PfastreXML ranks.
"""

from __future__ import annotations

import numpy as np

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array, Floats
from labelweave.foundation.arrays import numbers_of
from labelweave.inference.labeled_scores import read_score_table


@checked
def favour_rare_labels(
    labels: Array, scores: Array, propensity: Array, k: int = 5, *, power: float = 0.5, sharpness: float = 3.0
) -> tuple[Array, Floats]:
    """Choose the best k of more labels of each row by probability / propensity ** power.

    Parameters
    ----------
    labels : ndarray of int, shape (n, m)
        Labels of each row, such as the 50 best of ``predict_top``.
    scores : ndarray of shape (n, m)
        Their scores.
    propensity : ndarray of shape (L,)
        How likely each label is written down where it applies, above 0 and at most 1, as
        :func:`labelweave.metrics.propensities` estimates it from the training labels.
    k : int, default=5
        How many labels, at most m.
    power : float, default=0.5
        0 leaves the order as it is; 1 is right where the probabilities are, and propensities too.
    sharpness : float, default=3.0
        A score s stands for the probability 1 / (1 + exp(-sharpness s)): 3 for margins, as label trees have
        it, 1 for log-odds.

    Returns
    -------
    labels : ndarray of int, shape (n, k)
        Label numbers, best first; of equal ones in the order given.
    scores : ndarray of shape (n, k)
        Logarithms of probability / propensity ** power.

    Raises
    ------
    ValueError
        If shapes do not fit, a label has no propensity, or a number is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.inference import favour_rare_labels
    >>> labels, scores = np.array([[0, 1, 2]]), np.array([[0.2, 0.1, -0.9]])
    >>> favour_rare_labels(labels, scores, np.array([0.9, 0.5, 0.1]), 2)[0]
    array([[1, 0]])
    """
    table, numbers = read_score_table(scores).astype(np.float64), np.asarray(numbers_of(labels, "labels"))
    chances = np.asarray(numbers_of(propensity, "propensity"), np.float64)
    if numbers.shape != table.shape or numbers.dtype.kind not in "iu":
        raise ValueError(
            f"labels have shape {numbers.shape} and type {numbers.dtype} but scores have shape "
            f"{table.shape}; give one label number a score."
        )
    if chances.ndim != 1 or not ((chances > 0) & (chances <= 1)).all():
        raise ValueError("propensity is no vector of numbers above 0 and at most 1, one a label.")
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < len(chances)):
        raise ValueError(
            f"labels have a number that is not from 0 to {len(chances) - 1}, the labels of propensity."
        )
    if not 1 <= k <= table.shape[1]:
        raise ValueError(f"k is {k}; it must be between 1 and the labels of a row, {table.shape[1]}.")
    if not (np.isfinite(power) and power >= 0 and np.isfinite(sharpness) and sharpness > 0):
        raise ValueError(
            f"power is {power} and sharpness {sharpness}; they are finite, 0 or more and above 0."
        )
    with np.errstate(over="ignore"):
        found = -np.logaddexp(0.0, -sharpness * table) - power * np.log(chances)[numbers]
    order = np.argsort(-found, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(numbers, order, axis=1), np.take_along_axis(found, order, axis=1)
