"""The primal value of linear one-vs-rest hinge machines, from their weights alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp


def primal_value(X: Any, Y: Any, C: float, weights: npt.ArrayLike, block_rows: int = 2048) -> float:
    """Compute sum_l 1/2 ||z_l||^2 + 2 C sum_i max(0, 1 - y_il z_l.x_i) in float64.

    X: features, without the constant one.
    Y: Non-zeros are the positives, all else is negative.
    C: labelweave's C, half of LIBLINEAR's.
    weights: A column for each label; the last row is the bias, which is penalised too.
    block_rows: rows whose scores are held at a time.
    Returns: the objective, summed over labels.
    """
    weights = np.asarray(weights, dtype=np.float64)
    X, Y = sp.csr_array(X, dtype=np.float64), sp.csr_array(Y)
    loss = sum(
        _hinge_sum(X[first : first + block_rows], Y[first : first + block_rows], weights)
        for first in range(0, X.shape[0], block_rows)
    )
    return 0.5 * float(np.vdot(weights, weights)) + 2.0 * C * loss


def _hinge_sum(X: sp.csr_array, Y: sp.csr_array, weights: npt.NDArray[np.float64]) -> float:
    margins = X @ weights[:-1] + weights[-1]
    positives = Y.nonzero()
    margins[positives] *= -1.0
    # margins hold -y * score now, except that y = -1 leaves the score as it is
    return float(np.maximum(1.0 + margins, 0.0).sum())
