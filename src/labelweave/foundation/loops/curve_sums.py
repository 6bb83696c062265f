"""Sums over rows for logistic curves, one per label: between 0 and 1, or between two asymptotes."""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import LOOP, njit

_LEAST = 1e-12


@njit(**LOOP)
def _line_sums(scores, signs, weights, curve, targets):
    slope, intercept = curve
    loss = g_slope = g_intercept = h_slope = h_both = h_intercept = 0.0
    for i in range(len(scores)):
        if signs[i] == 0:
            continue
        s = float(scores[i])
        x = slope * s + intercept
        tail = np.exp(-abs(x))
        p = 1.0 / (1.0 + tail) if x >= 0 else tail / (1.0 + tail)
        if signs[i] == 1 or signs[i] == -1:
            target = targets[1] if signs[i] > 0 else targets[0]
        else:
            target = targets[0] + 0.5 * (1.0 + signs[i]) * (targets[1] - targets[0])
        # log(1 + e^x) - target x, without overflow
        loss += weights[i] * (max(x, 0.0) + np.log1p(tail) - target * x)
        residual, curvature = weights[i] * (p - target), weights[i] * p * (1.0 - p)
        g_slope += residual * s
        g_intercept += residual
        h_slope += curvature * s * s
        h_both += curvature * s
        h_intercept += curvature
    return loss, g_slope, g_intercept, h_slope, h_both, h_intercept


@njit(**LOOP)
def sigmoid_sums(scores, signs, weights, curves, targets, sums):
    """Compute loss, gradient and second derivatives of the curve of every label.

    signs (b, n): +1, -1, or 2 q - 1 for targets q, and 0 for unobserved entries, whose scores (b, n) are not
        read.
    curves (b, 2): slope and intercept of the log-odds.
    targets (b, 2): the target probabilities of negative and of positive rows.
    sums (b, 6): gets the loss, its gradient with respect to slope and intercept, and the second derivatives:
        slope twice, slope and intercept, intercept twice.
    """
    for line in range(len(scores)):
        curve = (curves[line, 0], curves[line, 1])
        found = _line_sums(scores[line], signs[line], weights, curve, targets[line])
        for place in range(len(found)):  # one assignment of all takes Numba four more seconds to compile
            sums[line, place] = found[place]


@njit(**LOOP)
def _noisy_line_sums(scores, evidence, signs, curve):
    slope, pull, intercept, missed, false = curve
    span = 1.0 - missed - false
    loss = g_slope = g_pull = g_intercept = g_missed = g_false = 0.0
    for i in range(len(scores)):
        if signs[i] == 0:
            continue
        x = slope * scores[i] + pull * evidence[i] + intercept
        tail = np.exp(-abs(x))
        truth = 1.0 / (1.0 + tail) if x >= 0 else tail / (1.0 + tail)
        other = 1.0 - truth if x >= 0 else 1.0 / (1.0 + tail)
        if signs[i] > 0:
            given = max(false + span * truth, _LEAST)
            by_given = -1.0 / given
        else:
            given = max(missed * truth + (1.0 - false) * other, _LEAST)
            by_given = 1.0 / given
        loss -= np.log(given)
        by_x = by_given * span * truth * other
        g_slope += by_x * scores[i]
        g_pull += by_x * evidence[i]
        g_intercept += by_x
        g_missed -= by_given * truth
        g_false += by_given * other
    return loss, g_slope, g_pull, g_intercept, g_missed, g_false


@njit(**LOOP)
def noisy_curve_sums(scores, evidence, signs, curves, sums):
    """Compute the log loss of recorded labels, and its derivatives.

    scores, evidence (L, n): the predictors of every row.
    signs (L, n): +1 and -1 as recorded, 0 for unobserved entries.
    curves (L, 5): slopes for scores and evidence, intercept, the fraction of true labels that are recorded as
        absent and that of false ones that are recorded as present.
    sums (L, 6): gets the loss, and its derivatives with respect to all five.
    """
    for line in range(len(scores)):
        one = curves[line]
        found = _noisy_line_sums(
            scores[line], evidence[line], signs[line], (one[0], one[1], one[2], one[3], one[4])
        )
        for place in range(len(found)):
            sums[line, place] = found[place]
