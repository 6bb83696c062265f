"""How a kernel matrix is held and factorised within a memory budget.

The budget is for what grows with pairs of rows: the matrix, its factors and the
panels in which it is computed.  About thirty arrays of rows x labels come on top.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelweave.foundation.arguments import ParameterError
from labelweave.problems.resources import Resources

_LARGEST_FULL_SPECTRUM = 2500  # rows; eigenvalues of so many take about 4 s
_LARGEST_RANK = 1500
_ROWS_A_RANK = 20
_LABELS_A_RANK = 20  # so that the factor takes about as long as ten rounds
_USUAL_RANK = 100  # at least, where there are rows and memory for it
_SMALLEST_RANK = 4
_PANEL_BYTES = 64e6  # for the blocks in which a matrix is computed that is not kept
_SMALLEST_PANEL_BYTES = 2e5
_FACTOR_COPIES = 2  # of rows x rank, while a low-rank factor is made


@dataclass(frozen=True)
class GramPlan:
    """What to do.

    is_stored: whether the matrix is kept.
    panel_bytes: memory for panels of a matrix that is not kept.
    """

    factorization: str
    is_stored: bool
    rank: int
    panel_bytes: float


def plan_gram(n_rows: int, resources: Resources, is_diagonal: bool, n_labels: int) -> GramPlan:
    """Choose what fits.

    is_diagonal: whether labels are independent, so that a Cholesky factor serves.
    n_labels: labels, since making a factor of rank r costs as much as r / L rounds.
    Raises ValueError if the budget is too small, with the smallest that is not.
    """
    size, budget = np.dtype(resources.dtype).itemsize, resources.budget
    factorization = resources.factorization
    table = float(n_rows) ** 2 * size
    needed = {"cholesky": 2 * table, "eigenvalues": table + 4 * float(n_rows) ** 2 * 8}
    if factorization == "auto":
        exact = "cholesky" if is_diagonal else "eigenvalues"
        small = is_diagonal or n_rows <= _LARGEST_FULL_SPECTRUM
        factorization = exact if small and needed[exact] <= budget else "incomplete_cholesky"
    if factorization in needed:
        _require(needed[factorization], budget, f"factorization={factorization!r} of {n_rows} rows")
        return GramPlan(factorization, is_stored=True, rank=n_rows, panel_bytes=0)
    wanted = max(_USUAL_RANK, min(_LARGEST_RANK, n_rows // _ROWS_A_RANK, _LABELS_A_RANK * n_labels))
    wanted, a_rank = min(n_rows, wanted), float(_FACTOR_COPIES * n_rows * size)
    if table + wanted * a_rank <= budget:
        return GramPlan("incomplete_cholesky", is_stored=True, rank=wanted, panel_bytes=0)
    what = f"blocks and a factor of the kernel matrix of {n_rows} rows"
    _require(_SMALLEST_RANK * a_rank + _SMALLEST_PANEL_BYTES, budget, what)
    panel_bytes = max(_SMALLEST_PANEL_BYTES, min(_PANEL_BYTES, budget / 4))
    rank = int(min(wanted, (budget - panel_bytes) / a_rank))
    return GramPlan("incomplete_cholesky", is_stored=False, rank=rank, panel_bytes=panel_bytes)


def feature_bytes(n_rows: int, n_features: int) -> float:
    """Estimate the memory for dense features and their factor, in double and single precision."""
    return 24.0 * n_rows * (n_features + 1)


def check_feature_bytes(n_rows: int, n_features: int, budget: float) -> None:
    """Refuse features that do not fit.

    Raises ValueError if the budget is too small, with the smallest that is not.
    """
    what = f"the factor of {n_rows} rows of {n_features} features"
    _require(feature_bytes(n_rows, n_features), budget, what)


def _require(needed: float, budget: float, what: str) -> None:
    if needed > budget:
        raise ParameterError(
            f"`memory_budget` is {budget / 1e6:g} MB, too small for {what}; give at least "
            f"{np.ceil(needed / 1e5) / 10:g} MB."
        )
