"""The logistic loss of many labels a row: ``w log(1 + exp(-y u))``, 0 where y was not observed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from labelweave.array_types import Array
from labelweave.losses.score_loss import Evaluation, Root

__all__ = ["LogisticLoss"]


class LogisticLoss:
    """One binary logistic model a label.

    signs (n, L): 1 and -1, and 0 where unobserved.
    weights (n, fits): the weight of each row in each fit.
    is_separate: whether every label is a group of its own: groups then count labels within fits.
    shape: (n, fits, L), or (n, fits L, 1) for separate labels.
    """

    def __init__(self, signs: npt.NDArray[np.int8], weights: Array, *, is_separate: bool) -> None:
        (n, labels), fits = signs.shape, weights.shape[1]
        self.signs, self.weights, self.is_separate = signs, weights, is_separate
        self.shape = (n, fits * labels, 1) if is_separate else (n, fits, labels)

    def _signs(self, rows: slice, groups: Array) -> Array:
        if self.is_separate:
            return self.signs[rows][:, groups % self.signs.shape[1], None].astype(np.float64)
        return self.signs[rows][:, None, :].astype(np.float64)

    def _weights(self, rows: slice, groups: Array) -> Array:
        fits = groups // self.signs.shape[1] if self.is_separate else groups
        return self.weights[rows][:, fits, None]

    def evaluate(self, scores: Array, rows: slice, groups: Array) -> Evaluation:
        signs, weights = self._signs(rows, groups), self._weights(rows, groups)
        margins = signs * scores
        miss = expit(-margins)  # the probability of the other sign
        seen = weights * np.abs(signs)
        values = np.einsum("ngc,ngc->g", seen, np.logaddexp(0.0, -margins))
        return Evaluation(values, weights * signs * miss, seen * miss * (1.0 - miss))

    def values(self, scores: Array, rows: slice, groups: Array) -> npt.NDArray[np.float64]:
        signs, weights = self._signs(rows, groups), self._weights(rows, groups)
        losses = np.logaddexp(0.0, -signs * scores)
        return np.asarray(np.einsum("ngc,ngc->g", weights * np.abs(signs), losses))

    def curve(self, state: Array, vectors: Array, rows: slice, groups: Array) -> Array:
        return state * vectors

    def mean_curvature(self, state: Array, rows: slice, groups: Array) -> Array:
        return np.diag(state.sum(axis=(0, 1)))

    def row_curvatures(self, state: Array, rows: slice, groups: Array) -> Array:
        return np.asarray(state.sum(axis=2))

    def root(self, state: Array, rows: slice, groups: Array) -> Root:
        return Root(np.sqrt(state), None)
