"""The expected F1 score of the k most probable of independent labels, for every k.

Ye, Chai, Lee and Chieu, "Optimizing F-measures: a tale of two approaches", ICML 2012, section 4.
With C_k(j) the probability that j of the k most probable labels are true, and s_k(a) the
expectation of 1 / (a + number of true labels among the others),

``E F1(k) = sum over j of 2 j C_k(j) s_k(k + j)``,  ``s_{k-1}(a) = p_k s_k(a + 1) + (1 - p_k) s_k(a)``.
"""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import LOOP, njit


@njit(**LOOP)
def _fill_counts(probabilities, counts):
    """Write C_k(j) into counts[k, j]."""
    counts[0, 0] = 1.0
    for k in range(1, len(probabilities) + 1):
        p = probabilities[k - 1]
        counts[k, 0] = (1.0 - p) * counts[k - 1, 0]
        for j in range(1, k):
            counts[k, j] = p * counts[k - 1, j - 1] + (1.0 - p) * counts[k - 1, j]
        counts[k, k] = p * counts[k - 1, k - 1]


@njit(**LOOP)
def _best_size(probabilities, rest, counts, inverse, empty_value):
    """Return the best k and its expected F1 score; ties go to the smaller set."""
    m = len(probabilities)
    _fill_counts(probabilities, counts)
    for a in range(1, 2 * m + 1):
        inverse[a] = 1.0 / (a + rest)
    best, best_value = 0, empty_value * counts[m, 0] * np.exp(-rest)
    for k in range(m, 0, -1):
        value = 0.0
        for j in range(1, k + 1):
            value += 2.0 * j * counts[k, j] * inverse[k + j]
        if value > best_value or (value == best_value and best > k):
            best, best_value = k, value
        p = probabilities[k - 1]
        for a in range(1, 2 * k - 1):
            inverse[a] = p * inverse[a + 1] + (1.0 - p) * inverse[a]
    return best, best_value


@njit(**LOOP)
def best_sizes(ranked, used, rest, empty_value, sizes, values):
    """Find the best k of every row.

    ranked (n, m): the greatest probabilities of every row, descending, of which ``used`` (n,) count.
    rest (n,): the sum of those that do not, whose number of true labels is taken for that.
    empty_value: the score of an empty set where nothing is true.
    sizes (n,), values (n,): get the best k and their expected F1 scores.
    """
    most = ranked.shape[1]
    counts = np.zeros((most + 1, most + 1))
    inverse = np.empty(2 * most + 2)
    for row in range(len(ranked)):
        sizes[row], values[row] = _best_size(
            ranked[row, : used[row]], rest[row], counts, inverse, empty_value
        )
