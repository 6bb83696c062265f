"""Sweeps of dual coordinate ascent over all labels, coupled by a covariance R.

One example is processed at a time and its labels one by one, each using
the steps before it.  With the steps ``delta`` of one example, the scores move by
``norm * R delta`` and the weights of feature j by ``x_j R delta``.  (Processing
blocks of labels over all examples, with delayed updates between blocks, needs
ten times the sweeps and more when R is ill-conditioned: measured on RCV1.)

``upper`` holds the weights of rows, (n,), or of entries, (blocks, n, WIDTH).
Labels are in blocks of ``WIDTH``: ``weights[b, j]`` is the row of feature j for block b.
"""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops import WIDTH
from labelweave.foundation.loops.compiling import njit
from labelweave.foundation.loops.coordinate_ascent import LOOP, prefetch_example
from labelweave.foundation.loops.sparse_products import add_rows, add_to_rows


@njit(**LOOP)
def _score_example(position, rows, indptr, indices, values, weights, intercept, scores):
    """Write the scores of the example at a position, and prefetch the next one's entries."""
    row = rows[position]
    if position + 1 < len(rows):
        prefetch_example(indptr, indices, values, rows[position + 1])
    for block in range(len(weights)):
        first = block * WIDTH
        part = scores[first : first + WIDTH]
        for label in range(WIDTH):
            part[label] = intercept[first + label]
        add_rows(weights[block], indices, values, indptr[row], indptr[row + 1], part)
    return row


@njit(**LOOP)
def _move(row, change, beta, indptr, indices, values, weights, intercept, bias, spread):
    """Change the variables of an example, and the weights by the change times R."""
    for block in range(len(weights)):
        first = block * WIDTH
        part = spread[first : first + WIDTH]
        for label in range(WIDTH):
            beta[block, row, label] += change[first + label]
            intercept[first + label] += bias * part[label]
        add_to_rows(weights[block], indices, values, indptr[row], indptr[row + 1], part)


@njit(**LOOP)
def _best_step(row, label, signs, beta, upper, margins, score, moved, curvature):
    """Return the step of one variable alone, its gain, and its encountered part of the gap.

    score: after the steps before it, ``moved`` of which came from this visit.
    """
    block, place = label // WIDTH, label % WIDTH
    sign, old, zero = beta.dtype.type(signs[block, row, place]), beta[block, row, place], score * 0
    if sign == 0:
        return zero, zero, zero
    bound = upper[row] if upper.ndim == 1 else upper[block, row, place]
    if margins.ndim == 3:
        target = margins[block, 0, place] * max(sign, zero) + margins[block, 1, place] * min(sign, zero)
    else:
        target = margins[block, row, 0, place] * sign
    gradient = target - score
    lowest, highest = bound * min(sign, zero), bound * max(sign, zero)
    if curvature > 0:
        new = min(max(old + gradient / curvature, lowest), highest)
    else:  # a label without prior variance: the dual is linear
        new = highest if gradient > 0 else (lowest if gradient < 0 else old)
    met = gradient + moved
    return new - old, (new - old) * gradient, bound * max(zero, sign * met) - old * met


@njit(**LOOP)
def sweep_dense_covariance(
    rows, indptr, indices, values, squared_norms, signs, beta, upper, margins, weights,
    intercept, bias, covariance, gains, threshold,
):  # fmt: skip
    """Visit the given rows once; ``covariance`` is R, in the order of the blocks and padded with 0.

    Rows whose gain is not above ``threshold`` are skipped.  Writes each row's gain; returns
    the sum of the encountered gaps.
    """
    room = np.empty((3, len(weights) * WIDTH), weights.dtype)
    scores, spread, change = room[0], room[1], room[2]
    total_gap = 0.0
    for position in range(len(rows)):
        row = _score_example(position, rows, indptr, indices, values, weights, intercept, scores)
        norm = squared_norms[row] + bias
        spread[:] = 0
        gain = norm * 0
        for label in range(len(scores)):
            moved = norm * spread[label]
            step, gained, gap = _best_step(
                row, label, signs, beta, upper, margins, scores[label] + moved, moved,
                norm * covariance[label, label],
            )  # fmt: skip
            change[label] = step
            total_gap += gap
            if step != 0:
                gain += gained
                for other in range(len(scores)):
                    spread[other] += step * covariance[label, other]
        gains[row] = gain
        if gain > threshold:
            _move(row, change, beta, indptr, indices, values, weights, intercept, bias, spread)
    return total_gap


@njit(**LOOP)
def sweep_factor_covariance(
    rows, indptr, indices, values, squared_norms, signs, beta, upper, margins, weights,
    intercept, bias, own, factor_indptr, factor_indices, factor_values, rank, gains, threshold,
):  # fmt: skip
    """Visit the given rows once, with R = diag(own) + F F^T and F as CSR, without forming R."""
    room = np.empty((3, len(weights) * WIDTH), weights.dtype)
    scores, spread, change = room[0], room[1], room[2]
    pooled = np.zeros(rank, weights.dtype)
    total_gap = 0.0
    for position in range(len(rows)):
        row = _score_example(position, rows, indptr, indices, values, weights, intercept, scores)
        norm = squared_norms[row] + bias
        pooled[:] = 0
        gain = norm * 0
        for label in range(len(scores)):
            moved, variance = norm * 0, own[label]
            for p in range(factor_indptr[label], factor_indptr[label + 1]):
                moved += factor_values[p] * pooled[factor_indices[p]]
                variance += factor_values[p] * factor_values[p]
            moved *= norm
            step, gained, gap = _best_step(
                row, label, signs, beta, upper, margins, scores[label] + moved, moved, norm * variance
            )
            change[label] = step
            total_gap += gap
            if step != 0:
                gain += gained
                for p in range(factor_indptr[label], factor_indptr[label + 1]):
                    pooled[factor_indices[p]] += factor_values[p] * step
        gains[row] = gain
        if gain > threshold:
            for label in range(len(scores)):
                spread[label] = own[label] * change[label]
                for p in range(factor_indptr[label], factor_indptr[label + 1]):
                    spread[label] += factor_values[p] * pooled[factor_indices[p]]
            _move(row, change, beta, indptr, indices, values, weights, intercept, bias, spread)
    return total_gap
