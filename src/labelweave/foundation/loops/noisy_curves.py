"""Sums over rows for logistic curves between a floor and a ceiling, one curve a label."""

from __future__ import annotations

import numpy as np

from labelweave.foundation.loops.compiling import LOOP, njit

_LEAST = 1e-12


@njit(**LOOP)
def _line_sums(scores, evidence, signs, curve):
    """Return the log loss of one label and its derivatives by all that makes its curve."""
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
    """Add up the log loss of labels as they were recorded, and its derivatives.

    scores, evidence (L, n): what is known of every row.
    signs (L, n): +1 and -1 as recorded, 0 for what is unobserved.
    curves (L, 5): slopes by scores and by evidence, intercept, the share of true labels that are recorded as
        absent and that of false ones that are recorded as present.
    sums (L, 6): gets the loss, and its derivatives by all five.
    """
    for line in range(len(scores)):
        one = curves[line]
        found = _line_sums(
            scores[line], evidence[line], signs[line], (one[0], one[1], one[2], one[3], one[4])
        )
        for place in range(len(found)):
            sums[line, place] = found[place]
