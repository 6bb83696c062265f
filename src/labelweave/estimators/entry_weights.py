"""Weights of single entries of the labels, and costs of mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.array_types import PerLabel, PerRow, RowsByLabels
from labelweave.labels import LabelMatrix

__all__ = ["costs_by_label", "read_entry_weights", "weights_of_entries"]


def read_entry_weights(entry_weight: Any, labels: LabelMatrix) -> RowsByLabels | sp.coo_array | None:
    """Check weights of entries: dense, or sparse, where an entry that is not stored has the weight 1.

    Raises ValueError if the shape is not that of the labels, or a weight is negative or not finite.
    """
    if entry_weight is None:
        return None
    sparse = sp.issparse(entry_weight)
    weights: Any = (
        sp.coo_array(entry_weight, dtype=np.float64) if sparse else np.asarray(entry_weight, np.float64)
    )
    if weights.shape != labels.shape:
        raise ValueError(
            f"entry_weight has shape {weights.shape}, but there are {labels.shape[0]} rows and "
            f"{labels.shape[1]} labels; give one weight an entry."
        )
    values = weights.data if sparse else weights.ravel()
    bad = np.flatnonzero(~np.isfinite(values) | (values < 0))
    if len(bad):
        first = int(bad[0])
        row, label = (part[first] for part in weights.coords) if sparse else divmod(first, weights.shape[1])
        raise ValueError(
            f"entry_weight at row {row}, label {label} is {values[first]}; weights must be finite and not "
            "negative."
        )
    return weights


def weights_of_entries(weights: PerRow, entries: RowsByLabels | sp.coo_array | None) -> PerRow | RowsByLabels:
    """Multiply the weights of rows by those of entries; without these the rows' own are given."""
    if entries is None:
        return weights
    if not isinstance(entries, sp.coo_array):
        return weights[:, None] * entries
    table = np.repeat(weights[:, None], entries.shape[1], axis=1)
    entries.sum_duplicates()
    table[entries.coords] *= entries.data
    return table


def costs_by_label(name: str, cost: Any, n_labels: int) -> PerLabel:
    """Check the cost of a kind of mistake: one for all labels, or one each.

    Raises ValueError if there are as many as labels neither, or one is negative or not finite.
    """
    costs = np.asarray(cost, dtype=np.float64)
    if costs.ndim > 0 and costs.shape != (n_labels,):
        raise ValueError(
            f"{name} has shape {costs.shape}; give one number, or one for each of {n_labels} labels."
        )
    if not np.isfinite(costs).all() or (costs < 0).any():
        raise ValueError(f"{name} is {cost}; costs must be finite numbers >= 0.")
    return np.broadcast_to(costs, (n_labels,)).astype(np.float64)
