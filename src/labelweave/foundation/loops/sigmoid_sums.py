"""Sums over rows for logistic curves of scores, one curve a label."""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import LOOP, njit


@njit(**LOOP)
def _line_sums(scores, signs, weights, curve, targets):
    """Return the loss of a curve, its gradient and its second derivatives."""
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
    """Add up loss, gradient and second derivatives of the curve of every label.

    signs (b, n): +1, -1, or 2 q - 1 of targets q, and, for what is unobserved, whose scores (b, n) are not
        read, 0.
    curves (b, 2): slope and intercept of the log-odds.
    targets (b, 2): the probabilities asked for in negative and in positive rows.
    sums (b, 6): gets the loss, its gradient by slope and intercept, and the second derivatives by slope
        twice, slope and intercept, intercept twice.
    """
    for line in range(len(scores)):
        curve = (curves[line, 0], curves[line, 1])
        found = _line_sums(scores[line], signs[line], weights, curve, targets[line])
        for place in range(len(found)):  # an assignment of them all takes Numba four seconds more to compile
            sums[line, place] = found[place]
