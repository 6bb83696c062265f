"""The steps of the weighted approximate-rank loss, slowly."""

import math
from typing import NamedTuple

import numpy as np

_LAST = 2**64 - 1


class Settings(NamedTuple):
    """The length of steps, the margin of a positive, and the longest vector."""

    rate: float
    margin: float
    max_norm: float


class SplitMix:
    """The random numbers of the compiled loop."""

    def __init__(self, state):
        self.state = int(state)

    def draw(self, below):
        self.state = (self.state + 0x9E3779B97F4A7C15) & _LAST
        bits = self.state
        bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _LAST
        bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _LAST
        bits ^= bits >> 31
        return int((bits >> 11) * 2.0**-53 * below)


def visit(row, positive, X, signs, W, H, squares, settings, random):
    """Visit one positive entry; ``squares`` are AdaGrad's sums of W and H. Changes all four."""
    negatives = np.flatnonzero(signs[row] < 0)
    embedding = X[row] @ W
    limit = H[positive] @ embedding - settings.margin
    for trial in range(1, len(negatives) + 1):
        negative = negatives[random.draw(len(negatives))]
        short = H[negative] @ embedding - limit
        if short > 0:
            weight = math.fsum(1 / r for r in range(1, len(negatives) // trial + 1))
            difference = H[positive] - H[negative]
            step(H, positive, weight * embedding, squares[1], settings)
            step(H, negative, -weight * embedding, squares[1], settings)
            for feature in np.flatnonzero(X[row]):
                gradient = weight * X[row, feature] * difference
                step(W, feature, gradient, squares[0], settings)
            return weight * short
    return 0.0


def step(factors, which, ascent, squares, settings):
    squares[which] += np.mean(ascent**2)
    factors[which] += settings.rate / math.sqrt(squares[which] + 1e-30) * ascent
    factors[which] *= min(1.0, settings.max_norm / max(np.linalg.norm(factors[which]), 1e-300))
