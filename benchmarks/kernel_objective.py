"""Primal and dual values of one-vs-rest kernel machines, from their coefficients alone.

The scores of label l are ``s = K b + t`` with the RBF kernel K between the training
rows, coefficients b and bias t.  The values are those of

    min over z, t:  1/2 ||z||^2 [+ t^2 / 2] + c sum_i max(0, 1 - y_i s_i),

where the term in brackets is there if the bias is regularised, as labelweave's is
and the peers' is not.  The peers' dual point is b itself: it must lie within
``0 <= y_i b_i <= c`` and sum to 0, and its value is ``sum_i y_i b_i - 1/2 b^T K b``.
The kernel is computed here, in float64, by scikit-learn, block by block.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.peers.exchange import PeerProblem

_ROUNDING = 1e-6


class LabelValues(NamedTuple):
    """Primal and dual value of every label; the dual is NaN where the bias is regularised."""

    primal: npt.NDArray[np.float64]
    dual: npt.NDArray[np.float64]

    def gaps(self) -> npt.NDArray[np.float64]:
        """Compute the relative gap of every label."""
        return (self.primal - self.dual) / self.primal


def label_values(
    problem: PeerProblem, coefficients: npt.ArrayLike, *, bias_is_free: bool, block_rows: int = 2048
) -> LabelValues:
    """Compute the objectives of every label.

    problem: the rows, their labels, gamma and c.
    coefficients: A column for each label; the last row is the bias.
    bias_is_free: whether the bias is outside the norm; then the coefficients are a dual point.
    block_rows: rows of the kernel that are held at a time.
    """
    table = np.asarray(coefficients, dtype=np.float64)
    rows, bias = np.ascontiguousarray(table[:-1]), table[-1]
    signs = np.where(problem.Y.toarray() > 0, 1.0, -1.0)
    quadratic, loss = np.zeros((2, table.shape[1]))
    for first in range(0, len(rows), block_rows):
        part = slice(first, first + block_rows)
        scores = rbf_kernel(problem.X[part], problem.X, gamma=problem.gamma) @ rows
        quadratic += (rows[part] * scores).sum(axis=0)
        loss += np.maximum(1.0 - signs[part] * (scores + bias), 0.0).sum(axis=0)
    primal = 0.5 * quadratic + problem.penalty * loss
    if not bias_is_free:
        return LabelValues(primal + 0.5 * bias**2, np.full_like(primal, np.nan))
    _check_dual_point(signs * rows, rows.sum(axis=0), problem.penalty)
    return LabelValues(primal, (signs * rows).sum(axis=0) - 0.5 * quadratic)


def _check_dual_point(variables: Any, sums: Any, penalty: float) -> None:
    slack = _ROUNDING * penalty
    if variables.min() < -slack or variables.max() > penalty + slack:
        raise RuntimeError("A peer's dual variables are outside their bounds; its gap cannot be computed.")
    if np.abs(sums).max() > slack * len(variables):
        raise RuntimeError("A peer's dual variables do not balance; its gap cannot be computed.")
