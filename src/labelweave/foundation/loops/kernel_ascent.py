"""Coordinate ascent on kernel max-margin duals: blocks of rows of all labels, or pairs along one label.

The dual is ``<T, B> - 1/2 tr(B^T K B R)`` with ``lower <= B <= upper`` (M3L, journal version, section 5, in
signed variables ``beta_il = 2 y_il alpha_il``); its gradients are ``T - scores``, with ``scores = K B R``.

**A block** P of k rows comes with ``kernel``, its k x k part of K, and its rows of every other array.  Steps
of a row use those of the rows before it through ``moved``, the change of B R since the visit began: the
scores of row p are ``scores[p] + K_pP moved``.  Labels are in groups of ``WIDTH``, so that the k rows of a
group of ``moved`` stay in the first-level cache while sums are kept in registers.

**Pairs** (section 5.1 and algorithms 1 and 2).  Along label l, ``moved`` is the paper's u (equation 36): K
times the change of that label's variables since the visit began.  The gradients there are ``start - R_ll
moved``, and other labels do not change during the visit.  A gradient is *projected* (equation 31) if
it is set to 0 where the variable's bound forbids the move.  Whole arrays are (labels, rows), with the rows of
a label contiguous.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from labelweave.foundation.loops import WIDTH
from labelweave.foundation.loops.compiling import njit
from labelweave.foundation.loops.coordinate_ascent import LOOP
from labelweave.foundation.loops.sparse_products import add_rows

_SETTLED = 0.1  # sweeps end when one gains less than this fraction of the first
_SMALLEST = 1e-30  # stands for a curvature of 0, where the dual is linear and a step goes to a bound
_SAFE = 1 - 1e-6  # a pair is skipped if K_pq^2 is above this fraction of K_pp K_qq
_NONE = 1e-9  # a gradient below this fraction of the first variable's is 0 up to rounding
_SHORT = 4e-16  # a step below this fraction of the distance between its bounds is rounding
_BLOCK = 512  # rows whose maximum is computed before its position


@njit(**LOOP)
def row_shares(targets, scores, beta, lower, upper, shares):
    """Write every row's part of the duality gap; return <T, B>, <B, S> and the losses.

    A part is ``sum_l max(lower (T - S), upper (T - S)) - B (T - S)``.
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
    """Copy a group of labels, padded with 0 after the last label."""
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
    """Sweep over a block with identity R; changes ``beta``, writes ``moved`` and returns the steps' gain.

    Every group of labels is swept until the gain is small, at most ``most_sweeps`` times.
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

    Sweeps continue until the gain is small, at most ``most_sweeps`` times.
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


@intrinsic
def _larger(typing_context, first, second):
    """Return the larger number, in a form that LLVM vectorizes; Numba's own ``max`` is a branch."""
    signature = types.float64(types.float64, types.float64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        is_larger = builder.fcmp_ordered(">", *args, flags=("fast",))
        return builder.select(is_larger, *args, flags=("fast",))

    return signature, codegen


@njit(**LOOP)
def _place_of(magnitude, values, block):
    """Return the first position of a magnitude in the block that starts at ``block``."""
    place = block
    while place < len(values) - 1 and abs(values[place]) != magnitude:
        place += 1
    return place


@njit(**LOOP)
def _projected(gradient, beta, lower, upper):
    upward = max(gradient, 0.0) if beta < upper else 0.0
    downward = min(gradient, 0.0) if beta > lower else 0.0
    return upward + downward


@njit(**LOOP)
def _project_block(start, moved, variance, beta, lower, upper, gradients):
    largest = 0.0
    for row in range(len(start)):
        gradient = _projected(start[row] - variance * moved[row], beta[row], lower[row], upper[row])
        gradients[row] = gradient
        largest = _larger(abs(gradient), largest)
    return largest


@njit(**LOOP)
def _project_all(start, moved, variance, beta, lower, upper, gradients):
    """Write the projected gradients of a label; return the largest magnitude and its first row."""
    largest, place = 0.0, 0
    for begin in range(0, len(start), _BLOCK):
        some = slice(begin, min(begin + _BLOCK, len(start)))
        part = _project_block(
            start[some], moved[some], variance, beta[some], lower[some], upper[some], gradients[some]
        )
        if part > largest:
            largest, place = part, begin
    return largest, _place_of(largest, gradients, place)


@njit(**LOOP)
def begin_visit(targets, scores, beta, lower, upper, start, moved, gradients):
    """Write ``start``, ``moved``, ``gradients`` of one label; return the largest |gradient| and its row."""
    for row in range(len(start)):
        start[row] = targets[row] - scores[row]
        moved[row] = 0.0
    return _project_all(start, moved, 0.0, beta, lower, upper, gradients)


@njit(**LOOP)
def _bound_block(gradient_p, diagonal_p, kernel_row, diagonal, gradients, bounds):
    largest = 0.0
    for row in range(len(gradients)):
        gradient, covariance = gradients[row], kernel_row[row]
        product, square = diagonal_p * diagonal[row], covariance * covariance
        best = gradient_p * gradient_p * diagonal[row] + gradient * gradient * diagonal_p
        best -= 2 * gradient_p * gradient * covariance
        # no "and": a branch would keep the loop from being vectorized
        counts = (abs(gradient) > _NONE * abs(gradient_p)) & (square < _SAFE * product)
        bound = best / (product - square if counts else 1.0) if counts else 0.0
        bounds[row] = bound
        largest = _larger(bound, largest)
    return largest


@njit(**LOOP)
def choose_second(first, kernel_row, diagonal, gradients, bounds):
    """Return the row q that maximizes equation 30 with the given first row, or -1 without one.

    Only rows that can move and whose 2 x 2 matrix with the first is safely positive definite count.
    ``bounds`` receives the values of equation 30 times 2 R_ll, 0 for other rows.
    """
    largest, place = 0.0, 0
    for begin in range(0, len(gradients), _BLOCK):
        some = slice(begin, min(begin + _BLOCK, len(gradients)))
        part = _bound_block(
            gradients[first], diagonal[first], kernel_row[some], diagonal[some], gradients[some], bounds[some]
        )
        if part > largest:
            largest, place = part, begin
    return _place_of(largest, bounds, place) if largest > 0.0 else -1


@njit(**LOOP)
def _solve_one_variable(curvature, gradient, old, lower, upper):
    if curvature > 0.0:
        return min(max(old + gradient / curvature, lower), upper)
    # no curvature: a row or a label without variance, where the dual is linear
    return upper if gradient > 0.0 else (lower if gradient < 0.0 else old)


@njit(**LOOP)
def _gain(curvatures, gradients, steps):
    (a, b, c), (x, y) = curvatures, steps
    return gradients[0] * x + gradients[1] * y - 0.5 * (a * x * x + 2 * b * x * y + c * y * y)


@njit(**LOOP)
def solve_two_variables(curvatures, gradients, old, lower, upper):
    """Return the values of two variables that maximize the dual between their bounds (algorithm 2).

    ``curvatures`` holds Q_11, Q_12, Q_22 of a positive definite Q; the others are pairs.  The
    maximum of a concave function over a box lies on a side that its free maximum is beyond.
    Values at a bound are exactly that bound.
    """
    a, b, c = curvatures
    determinant = a * c - b * b
    free_0 = old[0] + (c * gradients[0] - b * gradients[1]) / determinant
    free_1 = old[1] + (a * gradients[1] - b * gradients[0]) / determinant
    held_0 = min(max(free_0, lower[0]), upper[0])
    held_1 = min(max(free_1, lower[1]), upper[1])
    if held_0 == free_0 and held_1 == free_1:
        return held_0, held_1
    other_0 = _solve_one_variable(a, gradients[0] - b * (held_1 - old[1]), old[0], lower[0], upper[0])
    other_1 = _solve_one_variable(c, gradients[1] - b * (held_0 - old[0]), old[1], lower[1], upper[1])
    if held_0 == free_0:
        return other_0, held_1
    if held_1 == free_1:
        return held_0, other_1
    first_gain = _gain(curvatures, gradients, (held_0 - old[0], other_1 - old[1]))
    second_gain = _gain(curvatures, gradients, (other_0 - old[0], held_1 - old[1]))
    return (held_0, other_1) if first_gain > second_gain else (other_0, held_1)


@njit(**LOOP)
def take_step(first, second, first_row, second_row, variance, start, beta, lower, upper, moved, gradients):
    """Move one variable (``second`` < 0) or two along a label whose R_ll is ``variance``.

    Changes ``beta``, ``moved`` and ``gradients``, unless the step is lost in rounding.  Returns whether
    it was taken, the largest |gradient| after it and its row.
    """
    p, q = first, max(second, 0)
    curvature = variance * first_row[p]
    new_q = beta[q]
    if second < 0:
        new_p = _solve_one_variable(curvature, gradients[p], beta[p], lower[p], upper[p])
    else:
        curvatures = (curvature, variance * first_row[q], variance * second_row[q])
        new_p, new_q = solve_two_variables(
            curvatures, (gradients[p], gradients[q]), (beta[p], beta[q]), (lower[p], lower[q]),
            (upper[p], upper[q]),
        )  # fmt: skip
    step_p, step_q = new_p - beta[p], new_q - beta[q]
    is_short_p = abs(step_p) <= _SHORT * (upper[p] - lower[p])
    if is_short_p and abs(step_q) <= _SHORT * (upper[q] - lower[q]):
        return False, abs(gradients[p]), p
    if second >= 0:
        beta[q] = new_q
    beta[p] = new_p
    for row in range(len(moved)):
        moved[row] += step_p * first_row[row] + step_q * second_row[row]
    largest, place = _project_all(start, moved, variance, beta, lower, upper, gradients)
    return True, largest, place


@njit(**LOOP)
def _largest_gradient(targets, scores, beta, lower, upper):
    largest = 0.0
    for row in range(len(targets)):
        gradient = _projected(targets[row] - scores[row], beta[row], lower[row], upper[row])
        largest = _larger(abs(gradient), largest)
    return largest


@njit(**LOOP)
def largest_gradients(targets, scores, beta, lower, upper, maxima):
    """Write the largest |projected gradient| of every label."""
    for label in range(len(maxima)):
        maxima[label] = _largest_gradient(
            targets[label], scores[label], beta[label], lower[label], upper[label]
        )


@njit(**LOOP)
def spread_scores(moved, covariances, targets, scores, beta, lower, upper, maxima):
    """Add R_kl moved to the scores of every label k (equation 35), and update those labels' maxima.

    Labels without covariance with l are not read.
    """
    for label in range(len(covariances)):
        covariance = covariances[label]
        if covariance != 0.0:
            for row in range(len(moved)):
                scores[label, row] += covariance * moved[row]
            maxima[label] = _largest_gradient(
                targets[label], scores[label], beta[label], lower[label], upper[label]
            )
