"""Sweeps of dual coordinate ascent over a block of ``WIDTH`` labels.

One example is taken at a time, with all labels of the block beside each other.
In the notation of the M3L paper (journal version, sections 4 and 6), the signed
dual variable is ``beta_il = 2 y_il alpha_il``; it lies between 0 and
``y_il upper_i``, with ``upper_i = 2 C w_i``.  ``signs`` holds y, 0 where a label
was not observed, so that both bounds are 0 there and the variable stays put.
The margin that label l asks of a positive (negative) example is ``margins[0, l]``
(``margins[1, l]``): half the loss of the paper's equation (5).

Rows of ``weights`` are features.  The intercept is a vector of its own.
"""

from __future__ import annotations

import numpy as np

from labelweave._loops import WIDTH
from labelweave._loops.compiling import njit
from labelweave._loops.margin_steps import add_entry_sums, box_step
from labelweave._loops.sparse_products import add_rows, add_to_rows, prefetch

_SMALL_NORM = 1e-3  # below this a row with the intercept held fixed would take steps far too long

LOOP = {"nogil": True, "cache": True, "fastmath": True, "error_model": "numpy"}


@njit(**LOOP)
def prefetch_example(indptr, indices, values, row):
    for position in range(indptr[row], indptr[row + 1], 16):
        prefetch(indices, position)
        prefetch(values, position)


@njit(**LOOP)
def _add_to_nonzeros(weights, indices, values, start, stop, change):
    """Move the weights that are not 0."""
    for position in range(start, stop):
        row, value = weights[indices[position]], values[position]
        for label in range(WIDTH):
            move = value * change[label]
            row[label] += move if row[label] != 0 else weights.dtype.type(0)


@njit(**LOOP)
def sweep_independent(
    rows, indptr, indices, values, squared_norms, signs, beta, upper, margins, weights,
    intercept, intercept_share, has_intercept, totals, free, gains, threshold, keeps_zeros,
):  # fmt: skip
    """Visit the given rows once, when the labels of the block do not interact (R diagonal there).

    ``intercept_share[l]`` is 1 where the intercept of label l follows every step and 0 where
    it is held fixed in the sweep; it follows the steps of rows that are (nearly) empty in any case,
    if ``has_intercept``.  A row whose gain is not above ``threshold`` is left alone.  With ``keeps_zeros``
    weights that are 0 stay so, as if those features were not there.
    Keeps ``totals`` (the sum of beta) up to date, adds up ``free`` (the inverse norms of
    variables between their bounds, but for the rows just named), writes each row's gain; returns
    the sum of the gaps met.
    """
    scores = np.empty(WIDTH, weights.dtype)
    change = np.empty(WIDTH, weights.dtype)
    inverse_norms = np.empty(WIDTH, weights.dtype)
    share = np.empty(WIDTH, weights.dtype)
    uncounted = np.zeros(WIDTH, weights.dtype)
    one = weights.dtype.type(1)
    total_gap = 0.0
    for position in range(len(rows)):
        row = rows[position]
        if position + 2 < len(rows):
            later = rows[position + 2]
            prefetch_example(indptr, indices, values, later)
            prefetch(beta, later * WIDTH)
            prefetch(signs, later * WIDTH)
        start, stop = indptr[row], indptr[row + 1]
        fixed = one / squared_norms[row]
        following = one / (squared_norms[row] + one)
        is_small = has_intercept and squared_norms[row] < _SMALL_NORM
        for label in range(WIDTH):
            scores[label] = intercept[label]
            share[label] = one if is_small else intercept_share[label]
            inverse_norms[label] = following if share[label] > 0 else fixed
        add_rows(weights, indices, values, start, stop, scores)
        counted = uncounted if is_small else free
        gain, gap = box_step(
            scores, signs[row], margins, beta[row], upper[row], inverse_norms, change, counted
        )
        gains[row] = gain
        total_gap += gap
        if gain > threshold:
            for label in range(WIDTH):
                beta[row, label] += change[label]
                intercept[label] += share[label] * change[label]
                totals[label] += change[label]
            if keeps_zeros:
                _add_to_nonzeros(weights, indices, values, start, stop, change)
            else:
                add_to_rows(weights, indices, values, start, stop, change)
    return total_gap


@njit(**LOOP)
def scatter_block(indptr, indices, values, beta, weights):
    """Add X^T beta to the weights, skipping rows whose variables are all zero."""
    change = np.empty(WIDTH, weights.dtype)
    for row in range(len(indptr) - 1):
        any_at_all = False
        for label in range(WIDTH):
            change[label] = beta[row, label]
            any_at_all |= beta[row, label] != 0
        if any_at_all:
            add_to_rows(weights, indices, values, indptr[row], indptr[row + 1], change)


@njit(**LOOP)
def label_sums(indptr, indices, values, signs, beta, upper, margins, weights, intercept, sums):
    """Add up, label by label, the hinge losses, beta * target and beta * score into the rows of ``sums``."""
    scores = np.empty(WIDTH, weights.dtype)
    for row in range(len(indptr) - 1):
        for label in range(WIDTH):
            scores[label] = intercept[label]
        add_rows(weights, indices, values, indptr[row], indptr[row + 1], scores)
        add_entry_sums(scores, signs[row], margins, beta[row], upper[row], sums)
