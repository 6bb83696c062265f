"""Steps of the weighted approximate-rank pairwise loss (WARP) on low-rank factors.

Weston, Bengio and Usunier, "Large scale image annotation: learning to rank with joint
word-image embeddings", Machine Learning 81 (2010), Algorithm 1.  The score of label l is
``h_l . z`` with ``z = sum_j x_j w_j`` the embedding of a row.  A visit takes one positive label p of a row,
draws negative labels m until one has ``score(m) > score(p) - margin``, estimates the rank of p from
the number of draws, and steps down the gradient of ``H(rank) (margin - score(p) + score(m))`` with
``H(r) = 1 + 1/2 + ... + 1/r``.  Vectors that grew longer than the largest norm are cut back.

A row of ``factors`` has one number more than the rank: the sum of its squared gradients, of which
AdaGrad takes the root, one a vector.
"""

import numpy as np
from numba import njit

_TINY = 1e-30

LOOP = {"nogil": True, "cache": True, "fastmath": {"reassoc", "contract"}, "error_model": "numpy"}


@njit(**LOOP)
def _draw(state, below):
    """Return a number from 0 to below - 1; ``state`` holds one uint64 (the generator is SplitMix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = state[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = bits ^ (bits >> np.uint64(31))
    return min(int((bits >> np.uint64(11)) * 2.0**-53 * below), below - 1)


@njit(**LOOP)
def _outside(members, start, stop, place):
    """Return the number ``place`` (from 0) of those that are not among the sorted members start to stop."""
    low, high = start, stop
    while low < high:
        middle = (low + high) // 2
        if members[middle] - (middle - start) <= place:
            low = middle + 1
        else:
            high = middle
    return place + low - start


@njit(**LOOP)
def _embed(indices, values, start, stop, feature_factors, embedding):
    embedding[:] = 0
    for position in range(start, stop):
        factor, value = feature_factors[indices[position]], values[position]
        for k in range(len(embedding)):
            embedding[k] += value * factor[k]


@njit(**LOOP)
def _score(factor, embedding):
    total = 0.0
    for k in range(len(embedding)):
        total += factor[k] * embedding[k]
    return total


@njit(**LOOP)
def _move(factor, direction, gradient, rate, max_norm):
    """Add rate * gradient * direction, the rate divided by AdaGrad's root; keep the norm."""
    rank = len(direction)
    square = 0.0
    for k in range(rank):
        square += direction[k] * direction[k]
    factor[rank] += gradient * gradient * square / rank
    rate /= np.sqrt(factor[rank] + _TINY)
    norm = 0.0
    for k in range(rank):
        factor[k] += rate * gradient * direction[k]
        norm += factor[k] * factor[k]
    norm = np.sqrt(norm)
    if norm > max_norm:
        for k in range(rank):
            factor[k] *= max_norm / norm


@njit(**LOOP)
def rank_pairs(
    pairs, rows, labels, positive_indptr, negative_indptr, negatives, all_observed,
    indptr, indices, values, feature_factors, label_factors, harmonic, rate, margin, max_norm, scratch, state,
):  # fmt: skip
    """Visit positive entries in the order given; return the sum of losses.

    Entry e is the positive label ``labels[e]`` of row ``rows[e]``; entries are sorted by row and label, and
    those of row i are ``positive_indptr[i]`` to ``positive_indptr[i + 1]``.  The observed negatives
    of row i stand in ``negatives`` likewise, unless all is observed: then they are all
    labels but the positives.  ``scratch`` has two rows of the rank, ``harmonic[r]`` is H(r).
    """
    embedding, difference = scratch[0], scratch[1]
    rank = len(embedding)
    losses = 0.0
    for pair in pairs:
        row, positive = rows[pair], labels[pair]
        first, last = positive_indptr[row], positive_indptr[row + 1]
        n_negatives = negative_indptr[row + 1] - negative_indptr[row]
        if all_observed:
            n_negatives = len(label_factors) - (last - first)
        _embed(indices, values, indptr[row], indptr[row + 1], feature_factors, embedding)
        best = _score(label_factors[positive], embedding) - margin
        for trial in range(1, n_negatives + 1):
            place = _draw(state, n_negatives)
            if all_observed:
                negative = _outside(labels, first, last, place)
            else:
                negative = negatives[negative_indptr[row] + place]
            short = _score(label_factors[negative], embedding) - best
            if short > 0:
                weight = harmonic[n_negatives // trial]
                losses += weight * short
                for k in range(rank):
                    difference[k] = label_factors[positive, k] - label_factors[negative, k]
                _move(label_factors[positive], embedding, weight, rate, max_norm)
                _move(label_factors[negative], embedding, -weight, rate, max_norm)
                for position in range(indptr[row], indptr[row + 1]):
                    gradient = weight * values[position]
                    _move(feature_factors[indices[position]], difference, gradient, rate, max_norm)
                break
    return losses
