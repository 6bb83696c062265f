"""Scaling of features, as a part of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri

from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import panels
from labelweave.model_files import StoredParameters, storable
from labelweave.model_files.schema import Maybe, Numbers, OneOf

_MOST_QUANTILES = 1000
_MOST_ROWS = 20_000  # used for quantiles
_CELLS_AT_ONCE = 32_768  # searched among quantiles at once, so that they stay in the processor's cache
_AT_AN_END = 1e-7  # distance from the lowest or highest quantile, as in scikit-learn
_ENDS = ndtri(_AT_AN_END - np.spacing(1)), ndtri(1 - (_AT_AN_END - np.spacing(1)))


def _has_its_parts(state: dict[str, Any]) -> bool:
    has = {name for name in ("center", "factor", "quantiles") if state[name] is not None}
    quantiles = state["quantiles"]
    if quantiles is not None and (len(quantiles) < 1 or (np.diff(quantiles, axis=0) < 0).any()):
        return False
    parts = {"unit": set(), "standard": {"center", "factor"}, "quantile": {"center", "factor", "quantiles"}}
    return has == parts[state["kind"]]


@storable(
    "FeatureScaling",
    {
        "kind": OneOf(("standard", "quantile", "unit")),
        "center": Maybe(Numbers("d")),
        "factor": Maybe(Numbers("d")),
        "quantiles": Maybe(Numbers("q d")),
    },
    {"it has the parts of its kind, with ascending quantiles": _has_its_parts},
)
@dataclass(frozen=True)
class FeatureScaling(StoredParameters):
    """The scaling of every row before a model sees it.

    "standard": columns minus their mean, divided by their standard deviation (sparse ones: not centered,
    divided by their root mean square).  "quantile": columns mapped through their empirical distribution to
    normal quantiles (dense ones only).  Both are also divided by one number, so that rows have root mean
    square length 1: C and other penalties then have the same meaning for any number of features.  "unit":
    every row divided by its length.

    Parameters
    ----------
    kind : {"standard", "quantile", "unit"}
        The kind of scaling.
    center, factor : ndarray of shape (d,), or None
        The result is ``(x - center) * factor``.
    quantiles : ndarray of shape (q, d), or None
        The columns' quantiles, for "quantile".
    """

    kind: str
    center: Array | None = None
    factor: Array | None = None
    quantiles: Array | None = None

    @classmethod
    def fit(cls, kind: str, features: FeatureMatrix) -> Self:
        """Fit to the columns, quantiles on at most 20,000 rows; raise ValueError for sparse quantiles."""
        if kind == "unit":
            return cls(kind)
        if kind == "quantile" and len(features) > _MOST_ROWS:
            chosen = np.random.default_rng(0).choice(len(features), _MOST_ROWS, replace=False)
            features = features.rows(np.sort(chosen))
        quantiles = _quantiles(features) if kind == "quantile" else None
        table = features if quantiles is None else FeatureMatrix(_to_normal(features.data, quantiles))
        center = np.zeros(table.shape[1]) if table.is_sparse else table.data.mean(axis=0, dtype=np.float64)
        spread = _spread(table, center)
        used = np.maximum(np.count_nonzero(spread), 1)
        if kind == "standard":
            factor = 1.0 / (np.where(spread > 0, spread, 1.0) * np.sqrt(used))
        else:
            length = np.sqrt(np.square(spread).sum())
            factor = np.full(len(spread), 1.0 / length if length > 0 else 1.0)
        return cls(kind, center, factor, quantiles)

    def __call__(self, features: FeatureMatrix) -> FeatureMatrix:
        """Scale rows; their precision stays, and they become dense where zeros move."""
        data, names, factor = features.data, cast(Any, features.names), cast(Array, self.factor)
        is_unit = self.kind == "unit"
        if is_unit:
            lengths = np.sqrt(features.squared_norms())
            factor = 1.0 / np.where(lengths > 0, lengths, 1.0)[:, None]
        elif features.is_sparse and (self.quantiles is not None or np.any(self.center)):
            data = data.toarray()
        if sp.issparse(data):
            scaled = data.copy()
            factors = np.repeat(factor, np.diff(data.indptr)) if is_unit else factor[data.indices]
            scaled.data = (data.data * factors).astype(data.dtype)
        else:
            table = data if self.quantiles is None else _to_normal(data, self.quantiles)
            scaled = ((table if is_unit else table - self.center) * factor).astype(data.dtype)
        return FeatureMatrix(scaled, names)

    def takes(self, n_features: int) -> bool:
        return self.factor is None or len(self.factor) == n_features


def _spread(table: FeatureMatrix, center: Array) -> Array:
    """Compute the columns' standard deviations, 0 if only rounding is left; around 0 if sparse."""
    if table.is_sparse:
        squares = table.data.astype(np.float64).power(2).mean(axis=0)
        return np.asarray(np.sqrt(np.asarray(squares).ravel()))
    spread: Array = table.data.std(axis=0, dtype=np.float64)
    return np.where(spread > 1e-12 * np.abs(center), spread, 0.0)


def _quantiles(features: FeatureMatrix) -> Array:
    if features.is_sparse:
        raise ParameterError(
            "`scaling='quantile'` is for dense features, but X is sparse; use 'unit', 'standard' or 'auto', "
            "or pass X.toarray()."
        )
    count = min(_MOST_QUANTILES, len(features))
    return np.asarray(np.quantile(features.data.astype(np.float64), np.linspace(0, 1, count), axis=0))


def _to_normal(data: Array, quantiles: Array) -> Array:
    """Map all columns at once to normal quantiles, like scikit-learn's QuantileTransformer."""
    # scikit-learn clips values within 1e-7 of an end, so ranges below 1 are scaled above it
    lowest, highest = quantiles[0], quantiles[-1]
    is_small = (highest > lowest) & (highest - lowest < 1)
    unit = np.exp2(np.floor(np.log2(np.where(is_small, highest - lowest, 1.0))))
    normal: Array = np.clip(data.astype(np.float64), lowest, highest)
    for rows in panels(len(normal), max(1, _CELLS_AT_ONCE // max(1, normal.shape[1]))):
        shares, table = _shares(normal[rows], quantiles, unit), normal[rows] / unit
        shares[table + _AT_AN_END > highest / unit] = 1.0
        shares[table - _AT_AN_END < lowest / unit] = 0.0
        normal[rows] = np.clip(ndtri(shares), *_ENDS)
    return normal


def _shares(table: Array, quantiles: Array, unit: Array) -> Array:
    """Interpolate between quantiles; a value equal to several of them gets the middle of their fractions."""
    levels, columns = np.linspace(0, 1, len(quantiles)), np.arange(quantiles.shape[1])
    places = _places(table, quantiles, np.less_equal) - 1, _places(table, quantiles, np.less)
    below, above = (quantiles[place, columns] / unit for place in places)
    before, after = (levels[place] for place in places)
    with np.errstate(over="ignore"):  # between subnormal numbers, where scikit-learn returns NaN
        slopes = (after - before) / np.where(above > below, above - below, np.inf)
    slopes, table = np.minimum(slopes, np.finfo(np.float64).max), table / unit
    return 0.5 * (slopes * (table - below) + before - (slopes * (above - table) - after))


def _places(table: Array, quantiles: Array, stands_before: np.ufunc) -> Array:
    """Count the quantiles of its column below each number, by bisection: shape (n, d)."""
    size, width = quantiles.shape
    entries, places = quantiles.ravel(), np.tile(np.arange(width), (len(table), 1))
    while size > 1:
        half = size // 2
        places += half * width * stands_before(entries.take(places + (half - 1) * width), table)
        size -= half
    return np.asarray(places // width + stands_before(entries.take(places), table))
