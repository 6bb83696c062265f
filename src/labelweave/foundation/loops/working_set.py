"""Two-variable steps of the kernelised M3L solver, along one label at a time.

M3L, journal version, section 5.1 and algorithms 1 and 2, in signed variables
``beta_il = 2 y_il alpha_il``.  The dual is ``<T, beta> - 1/2 tr(beta^T K beta R)``
between ``lower`` and ``upper``; its gradients are ``T - scores``, with
``scores = K beta R``.  Along label l, ``moved`` is the paper's u (equation 36): K times
the change of that label's variables since the visit began.  The gradients there are
``start - R_ll moved``, and no other label is touched until the visit is over.

A gradient is *projected* (equation 31) when it is 0 where the variable's bound forbids the move.
Whole arrays are (labels, rows), the rows of a label beside each other.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from labelweave.foundation.loops.compiling import njit
from labelweave.foundation.loops.coordinate_ascent import LOOP

_SAFE = 1 - 1e-6  # a pair is left out when K_pq^2 is above this share of K_pp K_qq
_NONE = 1e-9  # a gradient below this share of the first variable's is 0 but for rounding
_SHORT = 4e-16  # a step below this share of the distance between its bounds is rounding
_BLOCK = 512  # rows whose largest number is found before its place is looked for


@intrinsic
def _larger(typing_context, first, second):
    """Return the larger number, in a form that LLVM vectorises; Numba's own ``max`` is a branch."""
    signature = types.float64(types.float64, types.float64)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        is_larger = builder.fcmp_ordered(">", *args, flags=("fast",))
        return builder.select(is_larger, *args, flags=("fast",))

    return signature, codegen


@njit(**LOOP)
def _place_of(magnitude, values, block):
    """Return the first place of a magnitude, known to be in the block that begins at ``block``."""
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
        # no "and": a branch would keep the loop from being vectorised
        counts = (abs(gradient) > _NONE * abs(gradient_p)) & (square < _SAFE * product)
        bound = best / (product - square if counts else 1.0) if counts else 0.0
        bounds[row] = bound
        largest = _larger(bound, largest)
    return largest


@njit(**LOOP)
def choose_second(first, kernel_row, diagonal, gradients, bounds):
    """Return the row q that maximises equation 30 with the given first row, or -1 if there is none.

    Only rows that can move and whose 2 x 2 matrix with the first is safely positive definite count.
    ``bounds`` receives the values of equation 30 times 2 R_ll, 0 for rows that do not count.
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
    """Return the new value of one variable."""
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
    """Return the new values of two variables that maximise the dual between their bounds (algorithm 2).

    ``curvatures`` holds Q_11, Q_12, Q_22 of a positive definite Q; the others are pairs.  The
    maximum of a concave function over a box lies on a side that its free maximum is beyond.
    Values at a bound are that bound exactly.
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
    """Add R_kl moved to the scores of every label k (equation 35), and renew those labels' maxima.

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
