"""The form of the max-margin dual that fits a label covariance."""

from __future__ import annotations

import numpy.typing as npt

from labelweave.problems.coupled_margins import CoupledMargins
from labelweave.problems.independent_margins import IndependentMargins
from labelweave.problems.margin_dual import MarginData, MarginDual

__all__ = ["make_margin_dual"]


def make_margin_dual(data: MarginData, dtype: npt.DTypeLike) -> MarginDual:
    """Choose the form of the dual that the label covariance allows.

    Parameters
    ----------
    data : MarginData
        The problem.
    dtype : dtype
        float32 or float64.

    Returns
    -------
    MarginDual
        With independent blocks when the covariance is the identity.
    """
    return (IndependentMargins if data.covariance.is_diagonal else CoupledMargins)(data, dtype)
