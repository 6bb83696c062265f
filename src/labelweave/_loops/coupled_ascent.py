"""Sweeps of dual coordinate ascent over all labels, when a covariance R couples them.

One example is taken at a time and its labels one after the other, each seeing
the steps before it.  With the steps ``delta`` of one example, the scores move by
``norm * R delta`` and the weights of feature j by ``x_j R delta``.  (Taking the
labels block by block over all examples, with delayed updates between blocks, needs
ten times the sweeps and more when R is ill-conditioned: measured on RCV1.)

``upper`` holds the weights of rows, (n,), or of entries, (blocks, n, WIDTH).
Labels stand in blocks of ``WIDTH``: ``weights[b, j]`` is the row of feature j for block b.
"""

from __future__ import annotations

import numpy as np

from labelweave._loops.compiling import njit
from labelweave._loops.coordinate_ascent import LOOP, prefetch_example
from labelweave._loops.sparse_products import add_rows, add_to_rows
from labelweave._loops.vector_code import WIDTH


@njit(**LOOP)
def _score_example(indptr, indices, values, row, weights, intercept, scores):
    for block in range(len(weights)):
        first = block * WIDTH
        part = scores[first : first + WIDTH]
        for label in range(WIDTH):
            part[label] = intercept[first + label]
        add_rows(weights[block], indices, values, indptr[row], indptr[row + 1], part)


@njit(**LOOP)
def _move_weights(indptr, indices, values, row, weights, intercept, bias, spread):
    for block in range(len(weights)):
        first = block * WIDTH
        part = spread[first : first + WIDTH]
        for label in range(WIDTH):
            intercept[first + label] += bias * part[label]
        add_to_rows(weights[block], indices, values, indptr[row], indptr[row + 1], part)


@njit(**LOOP)
def _best_step(score, sign, beta, upper, positive_margin, negative_margin, curvature):
    """Return the step of one variable alone, and the gradient there."""
    zero = score * 0
    target = positive_margin * max(sign, zero) + negative_margin * min(sign, zero)
    gradient = target - score
    lowest, highest = upper * min(sign, zero), upper * max(sign, zero)
    if curvature > 0:
        new = min(max(beta + gradient / curvature, lowest), highest)
    else:  # a label without prior variance: the dual is linear in its variable
        new = highest if gradient > 0 else (lowest if gradient < 0 else beta)
    return new - beta, gradient


@njit(**LOOP)
def sweep_dense_covariance(
    rows, indptr, indices, values, squared_norms, signs, beta, upper, margins, weights,
    intercept, bias, covariance, gains, threshold,
):  # fmt: skip
    """Visit the given rows once; ``covariance`` is R, in the order of the blocks and padded with 0.

    A row whose gain is not above ``threshold`` is left alone.  Writes each row's gain; returns
    the sum of the gaps met.
    """
    width = len(weights) * WIDTH
    scores = np.empty(width, weights.dtype)
    spread = np.empty(width, weights.dtype)
    change = np.empty(width, weights.dtype)
    total_gap = 0.0
    for position in range(len(rows)):
        row = rows[position]
        if position + 1 < len(rows):
            prefetch_example(indptr, indices, values, rows[position + 1])
        _score_example(indptr, indices, values, row, weights, intercept, scores)
        norm = squared_norms[row] + bias
        spread[:] = 0
        gain = norm * 0
        for label in range(width):
            block, place = label // WIDTH, label % WIDTH
            sign, old = weights.dtype.type(signs[block, row, place]), beta[block, row, place]
            change[label] = 0
            if sign == 0:
                continue
            bound = upper[row] if upper.ndim == 1 else upper[block, row, place]
            score = scores[label] + norm * spread[label]
            step, gradient = _best_step(
                score, sign, old, bound, margins[block, 0, place], margins[block, 1, place],
                norm * covariance[label, label],
            )  # fmt: skip
            met = gradient + norm * spread[label]
            total_gap += bound * max(norm * 0, sign * met) - old * met
            if step != 0:
                gain += step * gradient
                change[label] = step
                for other in range(width):
                    spread[other] += step * covariance[label, other]
        gains[row] = gain
        if gain > threshold:
            for label in range(width):
                beta[label // WIDTH, row, label % WIDTH] += change[label]
            _move_weights(indptr, indices, values, row, weights, intercept, bias, spread)
    return total_gap


@njit(**LOOP)
def sweep_factor_covariance(
    rows, indptr, indices, values, squared_norms, signs, beta, upper, margins, weights,
    intercept, bias, own, factor_indptr, factor_indices, factor_values, rank, gains, threshold,
):  # fmt: skip
    """Visit the given rows once, with R = diag(own) + F F^T and F given as CSR, so that R is not formed."""
    width = len(weights) * WIDTH
    scores = np.empty(width, weights.dtype)
    spread = np.empty(width, weights.dtype)
    change = np.empty(width, weights.dtype)
    pooled = np.zeros(rank, weights.dtype)
    total_gap = 0.0
    for position in range(len(rows)):
        row = rows[position]
        if position + 1 < len(rows):
            prefetch_example(indptr, indices, values, rows[position + 1])
        _score_example(indptr, indices, values, row, weights, intercept, scores)
        norm = squared_norms[row] + bias
        pooled[:] = 0
        gain = norm * 0
        for label in range(width):
            block, place = label // WIDTH, label % WIDTH
            sign, old = weights.dtype.type(signs[block, row, place]), beta[block, row, place]
            change[label] = 0
            if sign == 0:
                continue
            bound = upper[row] if upper.ndim == 1 else upper[block, row, place]
            moved, variance = norm * 0, own[label]
            for p in range(factor_indptr[label], factor_indptr[label + 1]):
                moved += factor_values[p] * pooled[factor_indices[p]]
                variance += factor_values[p] * factor_values[p]
            step, gradient = _best_step(
                scores[label] + norm * moved, sign, old, bound, margins[block, 0, place],
                margins[block, 1, place], norm * variance,
            )  # fmt: skip
            met = gradient + norm * moved
            total_gap += bound * max(norm * 0, sign * met) - old * met
            if step != 0:
                gain += step * gradient
                change[label] = step
                for p in range(factor_indptr[label], factor_indptr[label + 1]):
                    pooled[factor_indices[p]] += factor_values[p] * step
        gains[row] = gain
        if gain > threshold:
            for label in range(width):
                beta[label // WIDTH, row, label % WIDTH] += change[label]
                spread[label] = own[label] * change[label]
                for p in range(factor_indptr[label], factor_indptr[label + 1]):
                    spread[label] += factor_values[p] * pooled[factor_indices[p]]
            _move_weights(indptr, indices, values, row, weights, intercept, bias, spread)
    return total_gap
