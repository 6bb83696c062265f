"""The squared loss of many labels a row: ``w/2 (u - t)^2``, t = 1 or 0, nothing where t is unobserved."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelweave.array_types import Array
from labelweave.losses.score_loss import Evaluation, Root

__all__ = ["SquaredLoss"]


class SquaredLoss:
    """Half the squared distance of the scores to the labels.

    signs (n, L): 1 and -1, and 0 where unobserved.
    weights (n, fits): the weight of each row in each fit.
    is_separate: whether every label is a group of its own: groups then count labels within fits.
    negative_weight: what the weights of negative labels are multiplied with.
    shape: (n, fits, L), or (n, fits L, 1) for separate labels.
    """

    def __init__(
        self,
        signs: npt.NDArray[np.int8],
        weights: Array,
        *,
        is_separate: bool,
        negative_weight: float = 1.0,
    ) -> None:
        (n, labels), fits = signs.shape, weights.shape[1]
        self.signs, self.weights, self.is_separate = signs, weights, is_separate
        self.negative_weight = negative_weight
        self.shape = (n, fits * labels, 1) if is_separate else (n, fits, labels)

    def _entries(self, rows: slice, groups: Array) -> tuple[Array, Array]:
        """Give targets and weights, of shapes that broadcast to that of scores."""
        if self.is_separate:
            labels = self.signs.shape[1]
            signs, fits = self.signs[rows][:, groups % labels, None], groups // labels
        else:
            signs, fits = self.signs[rows][:, None, :], groups
        scale = np.where(signs < 0, self.negative_weight, signs)
        return (signs > 0).astype(np.float64), scale * self.weights[rows][:, fits, None]

    def evaluate(self, scores: Array, rows: slice, groups: Array) -> Evaluation:
        targets, weights = self._entries(rows, groups)
        residuals = targets - scores
        values = 0.5 * np.einsum("ngc,ngc,ngc->g", weights, residuals, residuals)
        residuals *= weights
        return Evaluation(values, residuals, weights)

    def values(self, scores: Array, rows: slice, groups: Array) -> npt.NDArray[np.float64]:
        targets, weights = self._entries(rows, groups)
        return np.asarray(0.5 * np.einsum("ngc,ngc->g", weights, np.square(targets - scores)))

    def curve(self, state: Array, vectors: Array, rows: slice, groups: Array) -> Array:
        return state * vectors

    def mean_curvature(self, state: Array, rows: slice, groups: Array) -> Array:
        return np.diag(state.sum(axis=(0, 1)))

    def row_curvatures(self, state: Array, rows: slice, groups: Array) -> Array:
        return np.asarray(state.sum(axis=2))

    def root(self, state: Array, rows: slice, groups: Array) -> Root:
        return Root(np.sqrt(state), None)
