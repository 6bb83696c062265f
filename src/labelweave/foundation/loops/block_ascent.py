"""Coordinate ascent inside a block of rows of a kernel max-margin dual, all labels at once.

The dual is ``<T, B> - 1/2 tr(B^T K B R)`` with ``lower <= B <= upper`` (M3L, journal version,
section 5, in signed variables).  A block P of k rows comes with ``kernel``, its k x k part of K,
and its rows of every other array.  Steps of a row see those of the rows before it through
``moved``, the change of B R since the visit began: the scores of row p are ``scores[p] + K_pP moved``.

Labels stand in groups of ``WIDTH``, so that the k rows of a group of ``moved`` stay in
the first cache while sums are kept in registers.
"""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops import WIDTH
from labelweave.foundation.loops.compiling import njit
from labelweave.foundation.loops.coordinate_ascent import LOOP
from labelweave.foundation.loops.sparse_products import add_rows

_SETTLED = 0.1  # sweeps end when one gains less than this share of the first
_SMALLEST = 1e-30  # stands for a curvature of 0, where the dual is linear and a step goes to a bound


@njit(**LOOP)
def row_shares(targets, scores, beta, lower, upper, shares):
    """Write every row's share of the duality gap; return <T, B>, <B, S> and the losses.

    A share is ``sum_l max(lower (T - S), upper (T - S)) - B (T - S)``.
    """
    linear, quadratic, losses = 0.0, 0.0, 0.0
    for row in range(len(targets)):
        row_linear, row_quadratic, row_loss = 0.0, 0.0, 0.0
        for label in range(targets.shape[1]):
            target, score = np.float64(targets[row, label]), np.float64(scores[row, label])
            variable, short = np.float64(beta[row, label]), target - score
            row_loss += max(lower[row, label] * short, upper[row, label] * short)
            row_linear += variable * target
            row_quadratic += variable * score
        shares[row] = row_loss - row_linear + row_quadratic
        linear += row_linear
        quadratic += row_quadratic
        losses += row_loss
    return linear, quadratic, losses


@njit(**LOOP)
def _take(source, first, group):
    """Copy a group of labels; what is beyond the last label becomes 0."""
    wide = min(WIDTH, source.shape[1] - first)
    for row in range(len(source)):
        for place in range(wide):
            group[row, place] = source[row, first + place]
        for place in range(wide, WIDTH):
            group[row, place] = 0


@njit(**LOOP)
def _give(group, first, target):
    for row in range(len(target)):
        for place in range(min(WIDTH, target.shape[1] - first)):
            target[row, first + place] = group[row, place]


@njit(**LOOP)
def _sweep_group(kernel, every, inverses, gradients, beta, lower, upper, moved, total):
    """Take the best step of every variable of a group once; return the gain.

    ``gradients`` are those at the start of the visit, ``total`` is scratch.
    """
    gain = 0.0
    for row in range(len(kernel)):
        total[:] = 0
        add_rows(moved, every, kernel[row], 0, len(every), total)
        part = total[0] * 0
        for place in range(WIDTH):
            gradient, old = gradients[row, place] - total[place], beta[row, place]
            new = min(max(old + gradient * inverses[row], lower[row, place]), upper[row, place])
            step = new - old
            part += step * gradient
            beta[row, place] = new
            moved[row, place] += step
        gain += part
    return gain


@njit(**LOOP)
def ascend_block(kernel, targets, scores, beta, lower, upper, moved, most_sweeps):
    """Sweep over a block with R the identity; changes ``beta``, writes ``moved`` and returns the steps' gain.

    Every group of labels is swept until little more is gained, ``most_sweeps`` times at most.
    """
    size = len(kernel)
    groups = np.empty((5, size, WIDTH), kernel.dtype)
    gradients, group_beta, group_moved = groups[0], groups[1], groups[2]
    group_lower, group_upper = groups[3], groups[4]
    every, total = np.arange(size), np.empty(WIDTH, kernel.dtype)
    inverses = np.empty(size, kernel.dtype)
    for row in range(size):
        inverses[row] = 1 / max(kernel[row, row], kernel.dtype.type(_SMALLEST))
    for first in range(0, targets.shape[1], WIDTH):
        _take(targets, first, gradients)
        _take(scores, first, group_moved)
        gradients -= group_moved
        _take(beta, first, group_beta)
        _take(lower, first, group_lower)
        _take(upper, first, group_upper)
        group_moved[:] = 0
        first_gain = 0.0
        for _ in range(most_sweeps):
            gain = _sweep_group(
                kernel, every, inverses, gradients, group_beta, group_lower, group_upper, group_moved, total
            )
            first_gain = max(first_gain, gain)
            if gain <= _SETTLED * first_gain:
                break
        _give(group_beta, first, beta)
        _give(group_moved, first, moved)


@njit(**LOOP)
def _visit_coupled_row(norm, covariance, gradients, beta, lower, upper, spread):
    """Take the steps of one row, label by label; write R times them to ``spread``, return the gain."""
    spread[:] = 0
    gain = 0.0
    for label in range(len(beta)):
        gradient, old = gradients[label] - norm * spread[label], beta[label]
        curvature = max(norm * covariance[label, label], covariance.dtype.type(_SMALLEST))
        new = min(max(old + gradient / curvature, lower[label]), upper[label])
        step = new - old
        if step != 0:
            gain += step * gradient
            beta[label] = new
            for other in range(len(beta)):
                spread[other] += step * covariance[label, other]
    return gain


@njit(**LOOP)
def ascend_coupled_block(kernel, targets, scores, beta, lower, upper, moved, most_sweeps, covariance):
    """Sweep over a block with a dense R; changes ``beta`` and writes ``moved``, the change of B R.

    Sweeps go on until little more is gained, ``most_sweeps`` times at most.
    """
    size, n_labels = targets.shape
    n_groups = -(-n_labels // WIDTH)
    groups = np.zeros((n_groups, size, WIDTH), kernel.dtype)
    every = np.arange(size)
    total = np.empty(n_groups * WIDTH, kernel.dtype)
    gradients, spread = np.empty(n_labels, kernel.dtype), np.empty(n_labels, kernel.dtype)
    first_gain = 0.0
    for _ in range(most_sweeps):
        gain = 0.0
        for row in range(size):
            total[:] = 0
            for group in range(n_groups):
                part = total[group * WIDTH : (group + 1) * WIDTH]
                add_rows(groups[group], every, kernel[row], 0, size, part)
            for label in range(n_labels):
                gradients[label] = targets[row, label] - scores[row, label] - total[label]
            gain += _visit_coupled_row(
                kernel[row, row], covariance, gradients, beta[row], lower[row], upper[row], spread
            )
            for label in range(n_labels):
                groups[label // WIDTH, row, label % WIDTH] += spread[label]
        first_gain = max(first_gain, gain)
        if gain <= _SETTLED * first_gain:
            break
    for group in range(n_groups):
        _give(groups[group], group * WIDTH, moved)
