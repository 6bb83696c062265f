"""F1 scores of rows: the expected F1 of the k most probable labels, and the best cut of every label.

For the first, Ye, Chai, Lee and Chieu, "Optimizing F-measures: a tale of two approaches", ICML 2012, section
4.  With C_k(j) the probability that j of the k most probable of independent labels are true, and s_k(a) the
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
    """Compute the best k of every row.

    ranked (n, m): the largest probabilities of every row, descending, of which ``used`` (n,) count.
    rest (n,): the sum of the others, used as their number of true labels.
    empty_value: the score of an empty set if no label is true.
    sizes (n,), values (n,): get the best k and their expected F1 scores.
    """
    most = ranked.shape[1]
    counts = np.zeros((most + 1, most + 1))
    inverse = np.empty(2 * most + 2)
    for row in range(len(ranked)):
        sizes[row], values[row] = _best_size(
            ranked[row, : used[row]], rest[row], counts, inverse, empty_value
        )


@njit(nogil=True, cache=True)
def move_cuts(starts, rows, scores, shares, positives, above, hits, labels, weights):
    """Move labels to cuts that raise the weighted sum of the rows' F1 scores, with the others fixed.

    Label l has ``rows[starts[l]:starts[l + 1]]`` with descending ``scores``, the first ``above[l]`` of them
    above its threshold, and ``positives[l]`` positives, counted by their ``shares``.  ``hits`` has 2 hits of
    every row, ``labels`` its predicted and positive labels.  Only cuts below a positive row, and above all
    rows, can be best.
    """
    for label in range(len(above)):
        start, stop, now = starts[label], starts[label + 1], above[label]
        gain, best_gain, present, best = 0.0, 0.0, 0.0, 0
        left, is_fresh = positives[label], False
        for place in range(start, stop):
            count = place - start + 1
            if left == 0 and not is_fresh and count > now:
                break
            row, twice = rows[place], 2.0 * shares[place]
            hit, total = hits[row], labels[row]
            if count <= now:
                hit, total = hit - twice, total - 1.0
            before = hit / total if total > 0 else 0.0
            gain += weights[row] * ((hit + twice) / (total + 1.0) - before)
            if twice > 0:
                left -= 1
                is_fresh = True
            if count == now:
                present = gain
            if is_fresh and (place + 1 == stop or scores[place] > scores[place + 1]):
                is_fresh = False
                if gain > best_gain:
                    best_gain, best = gain, count
        if best_gain > present:
            sign = 1.0 if best > now else -1.0
            for place in range(start + min(best, now), start + max(best, now)):
                row = rows[place]
                labels[row] += sign
                hits[row] += 2.0 * shares[place] * sign
            above[label] = best
