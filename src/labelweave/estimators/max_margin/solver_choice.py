"""The choice of solver for the max-margin dual: which is predicted to be faster."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.problems import MarginData

_SINGLE_PRECISION_TOL = 1e-5  # rounding in single precision hides gaps below this
_SINGLE_PRECISION_BOUND = 1e5  # ... and gaps below the largest dual variable divided by this
# ADMM took 16 and 19 rounds on Animals with Attributes (85 labels, a share of 0.36 positive), and 18 to 79 on
# sets of rarer labels; blocks 140, and 58 to 117
_MANY_LABELS, _BALANCED = 40, 0.25
_NARROW = 16  # columns; products with fewer are as slow, limited by memory bandwidth
_BLOCK_SWEEPS = 8000  # operations per entry in the sweeps of a block
_ENTRY_WORK = 400  # operations per entry in the passes of a global step
_SOLVES = 4.0  # cost of a global step, in products
_SPECTRUM = 20.0  # operations for eigenvalues, in rows cubed
_USUAL_ROUNDS = 25  # global steps to a gap of 1e-3
# explicit features, in multiplications of a global step: the cost of a round of coordinate ascent per column,
# a constant number of columns more, and the cost per coupled label; passes of a step, in columns
# too, and its calls; global steps to 1e-3, of which 24 to 670 were counted
_ROUND_WORK, _VISIT, _ACROSS, _PASSES, _CALLS, _USUAL_DENSE_ROUNDS = 2.7, 300, 60, 200, 4e6, 150


FACTORIZATIONS = ("cholesky", "eigenvalues", "incomplete_cholesky")  # of alternating directions
SOLVERS = (
    "auto", "coordinate_ascent", "alternating_directions", "block_ascent", "working_set", *FACTORIZATIONS,
)  # fmt: skip


def few_global_steps_do(data: MarginData) -> bool:
    """Whether ADMM is predicted to end soon: many labels, neither rare nor frequent, uncoupled."""
    labels = data.labels
    share = labels.positive_counts().sum() / max(1, labels.observed_counts().sum())
    is_many = labels.n_labels >= _MANY_LABELS and data.covariance.is_diagonal
    return bool(is_many and min(share, 1 - share) >= _BALANCED)


def choose_precision(asked: str, tol: float, largest_upper: float) -> Any:
    """Choose the arithmetic of coordinate ascent by the gap and the largest bound of a variable."""
    largest = max(largest_upper / _SINGLE_PRECISION_BOUND, _SINGLE_PRECISION_TOL)
    auto = np.float32 if tol >= largest else np.float64
    return auto if asked == "auto" else np.dtype(asked)


def rounds_of_the_rival(n: int, n_labels: int, tol: float, *, is_coupled: bool) -> float:
    """Estimate the time of alternating directions in rounds of block ascent, both by their operations.

    A round of blocks updates the scores of all rows for a quarter of them, and sweeps over the blocks.
    """
    columns = max(n_labels, _NARROW)
    block_round = n / 4 * columns * (2.0 * n + _BLOCK_SWEEPS)
    factor = (_SPECTRUM if is_coupled else 1 / 3) * float(n) ** 3
    rounds = _USUAL_ROUNDS * max(1.0, -np.log10(float(tol)) / 3)
    return float((factor + rounds * n * columns * (_SOLVES * n + _ENTRY_WORK)) / block_round)


def rounds_of_global_steps(data: MarginData, tol: float) -> float:
    """Estimate the time of alternating directions on explicit features in rounds of coordinate ascent."""
    features, n_labels = data.features, data.labels.n_labels
    (n, d), rank = features.shape, min(features.shape)
    padded = -(-n_labels // _NARROW) * _NARROW
    width = features.data.nnz / max(n, 1) if features.is_sparse else d
    across = 0 if data.covariance.is_diagonal else _ACROSS * padded
    a_round = _ROUND_WORK * n * padded * (width + _VISIT + across) + _CALLS * padded / _NARROW
    rounds = _USUAL_DENSE_ROUNDS * max(1.0, -np.log10(float(tol)) / 3)
    factor = float(n) * d * rank + _SPECTRUM * float(rank) ** 3
    return float((factor + rounds * (_SOLVES * n * n_labels * (rank + _PASSES) + _CALLS)) / a_round)
