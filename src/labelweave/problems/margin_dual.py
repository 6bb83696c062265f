"""The dual of linear max-margin multi-label learning (M3L).

The primal of Hariharan et al. (2012), equations 11 to 14, with the label
covariance R, weights Z (one column per label) and a loss that decomposes over
labels (equation 5), is

    min_Z  1/2 tr(Z R^-1 Z^T) + sum_il U_i max(0, m_il - y_il z_l . x_i),

where U_i = 2 C w_i and m_il is half the loss of a mistake on label l: 1 for the
Hamming loss, which the paper counts twice per mistake.  Its dual (equation 25),
in the signed variables beta_il = 2 y_il alpha_il, is

    max_beta  sum_il beta_il y_il m_il - 1/2 tr(B^T K B R),    beta_il between 0 and y_il U_i,

and Z = X^T B R.  The duality gap at (Z(beta), beta) splits over entries:

    sum_il [U_i max(0, m_il - y_il s_il) - beta_il (y_il m_il - s_il)] >= 0,   S = X Z.

With prior weights Z0, Z - Z0 is penalized: the prior score x_i . z0_l is subtracted from the target y_il m_il
of the dual, and Z = Z0 + X^T B R.  The sweeps only use scores of Z, so they start at Z0 and are otherwise
unchanged; sum_il beta_il x_i . z0_l is subtracted from the objectives.

With squared losses, U_i max(0, m_il - y_il s_il)^2, variables have no upper bound, and
beta_il^2 / (4 U_i) is subtracted from the dual.

An unobserved entry has y_il = 0: its variable is 0 and it adds no loss.
Labels are processed in blocks of ``WIDTH``, frequent ones first, so that blocks of
rare labels have few rows that change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array, PerLabel, PerRow, RowsByLabels
from labelweave.foundation.arrays import Workers
from labelweave.foundation.loops import WIDTH
from labelweave.labels.covariance import LabelCovariance
from labelweave.labels.label_matrix import LabelMatrix
from labelweave.labels.label_mean import LabelMean
from labelweave.solvers.frame import State

# squared norms and upper bounds beyond which products of them leave the range of the type, and bounds below
_LARGEST_SINGLE = 1e15
_SMALLEST_SINGLE = 1e-8
_LARGEST_DOUBLE = 1e150
_CACHED_NUMBERS = 2**16


@dataclass(frozen=True)
class MarginData:
    """What defines the problem.

    upper (n,) or (n, L): U, the weights of the hinge losses: 2 C times those of rows or entries.
    squared: whether the hinge losses are squared; labels are independent then.
    margins (2, L) or (2, n, L): the required margin of a positive and of a negative example of each label, or
        of each entry, if it were positive or negative.
    intercept: whether a constant feature 1 is added.
    mean: prior weights, from which those of the labels are penalized; margins already include its intercepts.
    """

    features: FeatureMatrix
    labels: LabelMatrix
    covariance: LabelCovariance
    upper: Array
    margins: Array
    intercept: bool
    mean: LabelMean | None = None
    squared: bool = False

    @property
    def is_walked_as_table(self) -> bool:
        """Whether loops read dense features as an array: for independent labels and plain hinges."""
        return self.covariance.is_diagonal and not self.features.is_sparse and not self.squared

    def rows(self, kept: Array) -> MarginData:
        features, labels = self.features.rows(kept), self.labels[kept]
        margins = self.margins if self.margins.ndim == 2 else self.margins[:, kept]
        return replace(self, features=features, labels=labels, upper=self.upper[kept], margins=margins)

    def some_labels(self, which: Array) -> MarginData:
        """Keep some labels, which are independent of the others, in the given order."""
        upper = self.upper if self.upper.ndim == 1 else self.upper[:, which]
        is_diagonal, mean = self.covariance.is_diagonal, self.mean
        return replace(
            self,
            labels=self.labels.select_labels(which),
            margins=self.margins[..., which],
            covariance=LabelCovariance.identity(len(which))
            if is_diagonal
            else self.covariance.columns(which),
            upper=upper,
            mean=None if mean is None else mean.columns(which),
        )

    def of_unit_variances(self) -> tuple[MarginData, PerLabel]:
        """Rescale uncoupled labels to variance 1; also return the factors (L,) of their weights.

        With z = s v, |z|^2 / s^2 becomes |v|^2, and margins m become m / s.
        """
        roots = np.sqrt(self.covariance.diagonal())
        if self.covariance.is_diagonal:
            return self, roots
        upper = np.reshape(self.upper, (len(self.features), -1)) * roots
        identity = LabelCovariance.identity(self.labels.n_labels)
        return replace(self, covariance=identity, upper=upper, margins=self.margins / roots), roots


class OrderedRows:
    """The data with rows in a random order, drawn once, and in the precision of solving.

    Neighbors in a file are often alike, and coordinate ascent is slow on runs of similar rows
    (RCV1 in its file order, in runs of 64: 29 sweeps to the dual value of 7 in random order); in this order a
    solver may process neighbors together.

    as_table: whether the features, which are then dense, are read as an array.
    rows, exact_rows: the CSR arrays of the features, or a single array, the latter in double precision.
    """

    def __init__(self, data: MarginData, dtype: npt.DTypeLike, *, as_table: bool = False) -> None:
        self.as_table = as_table
        self.order = np.random.default_rng(0).permutation(len(data.features))
        self.data = data = data.rows(self.order)
        norms = _checked_norms(data.features)
        upper = data.upper.max(initial=0.0)
        is_inside = max(norms.max(initial=0.0), upper) < _LARGEST_SINGLE and upper >= _SMALLEST_SINGLE
        self.dtype = np.dtype(dtype if is_inside else np.float64)
        self.rows = self._rows(self.dtype)
        # an empty row has no curvature of its own; a tiny one makes its step finite
        self.squared_norms = np.maximum(norms, 1e-25).astype(self.dtype)

    @cached_property
    def exact_rows(self) -> tuple[Any, ...]:
        return self.rows if self.dtype == np.float64 else self._rows(np.float64)

    def _rows(self, dtype: npt.DTypeLike) -> tuple[Any, ...]:
        if self.as_table:
            return (np.ascontiguousarray(self.data.features.data, dtype),)
        return self.data.features.sparse_rows(dtype)

    def some_labels(self, which: Array) -> OrderedRows:
        """Keep some labels; the features are shared."""
        made = copy(self)
        made.data = self.data.some_labels(which)
        return made


@dataclass(frozen=True)
class LabelBlock:
    """Up to ``WIDTH`` labels, padded with unobserved ones.

    labels (k,): the labels of the first k columns.
    signs (n, WIDTH): +1, -1, or 0 for unobserved.
    margins: required of positives and negatives, (2, WIDTH), or of entries by their sign, (n, 1, WIDTH).
    upper: the weights of rows, (n,), or of entries, (n, WIDTH).
    """

    labels: Array
    signs: Array
    margins: Array
    upper: Array


@dataclass(frozen=True)
class MarginPoint:
    """Dual variables and the corresponding weights, changed in place by sweeps.

    beta (blocks, n, WIDTH): the variables.
    weights (blocks, d, WIDTH): X^T B, times R where labels are coupled.
    gains: the dual gain of the last visit of each row, in each block that is swept separately.
    intercepts (blocks, WIDTH): the weights of the constant feature.
    moves: further state of the intercepts, by the form of the dual.
    """

    beta: Array
    weights: Array
    gains: Array
    intercepts: Array
    moves: Any = None


State.plain_with(MarginPoint)


class MarginDual(ABC):
    """The dual over label blocks; subclasses define how blocks interact.

    data: as passed, or in the order of the rows that other duals share.
    dtype: the type of the variables and weights while solving: float32 is fast, float64 reaches small gaps.
    """

    blocks_are_independent: bool

    def __init__(
        self, data: MarginData | OrderedRows, dtype: npt.DTypeLike, workers: Workers | None = None
    ) -> None:
        self.ordered = data if isinstance(data, OrderedRows) else OrderedRows(data, dtype)
        self.data = data = self.ordered.data
        self.workers = workers or Workers()
        self.row_order, self.dtype, self.rows = self.ordered.order, self.ordered.dtype, self.ordered.rows
        self.squared_norms = self.ordered.squared_norms
        self.n_rows = len(data.features)
        self.label_order = self._ordered_labels()
        self._groups = [self.label_order[s : s + WIDTH] for s in range(0, len(self.label_order), WIDTH)]
        self.signs = np.zeros((len(self._groups), self.n_rows, WIDTH), np.int8)
        for signs, labels in zip(self.signs, self._groups, strict=True):
            signs[:, : len(labels)] = data.labels.select_labels(labels).to_signs()
        self.margins, self.upper, self.label_blocks = self._blocks_of(self.dtype)
        self.n_blocks = len(self.label_blocks) if self.blocks_are_independent else 1
        self.certified: dict[int, tuple[Array, Array]] = {}
        self.known = None if data.mean is None else self._padded(data.mean.weights().T, np.float64)

    def _ordered_labels(self) -> Array:
        """Return the label numbers in block order."""
        return np.argsort(-self.data.labels.positive_counts(), kind="stable")

    def _blocks_of(self, dtype: npt.DTypeLike) -> tuple[Array, Array, list[LabelBlock]]:
        """Lay out margins and weights in a precision: as arrays of all blocks, and by block."""
        asked, by_entry = self.data.margins, self.data.upper.ndim == 2
        if asked.ndim == 3:
            own: Array = np.where(self.data.labels.to_signs() > 0, asked[0], asked[1])
            margins = self._padded(own, dtype)[:, :, None]
        else:
            margins = self._padded(asked, dtype)
        upper = self._padded(self.data.upper, dtype) if by_entry else self.data.upper.astype(dtype)
        uppers = upper if by_entry else repeat(upper)
        return margins, upper, list(map(LabelBlock, self._groups, self.signs, margins, uppers))

    def _padded(self, table: Array, dtype: npt.DTypeLike) -> Array:
        """Split an array (rows, L) into blocks of labels (blocks, rows, WIDTH)."""
        padded = np.zeros((len(self._groups), len(table), WIDTH), dtype)
        for part, labels in zip(padded, self._groups, strict=True):
            part[:, : len(labels)] = table[:, labels]
        return padded

    def start(self, dual: RowsByLabels | None = None) -> MarginPoint:
        """Return the point 0, or that of dual variables, clipped to their bounds.

        Rows without any variable, such as those that an earlier fit did not have, are visited once.
        """
        point = self._at_zero()
        if dual is None:
            return point
        ordered = dual[self.row_order][:, self.label_order]
        for number, block in enumerate(self.label_blocks):
            beta, begin = point.beta[number], number * WIDTH
            beta[:, : len(block.labels)] = ordered[:, begin : begin + len(block.labels)]
            most = np.broadcast_to(self.bounds(block), beta.shape)
            np.clip(beta, np.where(block.signs < 0, -most, 0), np.where(block.signs > 0, most, 0), out=beta)
        self.follow(point)
        self._begin_intercepts(point)
        fresh = np.flatnonzero(~ordered.any(axis=1))
        for number in range(self.n_blocks if len(fresh) else 0):
            self.sweep(point, number, fresh, 0.0)
        return point

    def dual(self, point: MarginPoint) -> RowsByLabels:
        """Return the dual variables, in float64, rows and labels in the order of the data."""
        wide = point.beta.transpose(1, 0, 2).reshape(self.n_rows, -1)
        table = np.empty((self.n_rows, self.data.labels.n_labels))
        table[self.row_order] = wide[:, np.argsort(self.label_order)]
        return table

    def map_blocks(self, of_block: Callable[[int], Any], blocks: Iterable[int]) -> list[Any]:
        if not self.blocks_are_independent:
            return [of_block(block) for block in blocks]
        return self.workers.map(of_block, list(blocks))

    def _at_zero(self) -> MarginPoint:
        """Return the point 0, with one allocation per array, so that the system can use large pages."""
        slabs, d = len(self.label_blocks), self.data.features.shape[1]
        shapes = (slabs, self.n_rows, WIDTH), (slabs, d, WIDTH), (self.n_blocks, self.n_rows), (slabs, WIDTH)
        point = MarginPoint(*(np.zeros(shape, self.dtype) for shape in shapes))
        if self.known is not None:
            point.weights[:] = self.known
        return point

    @abstractmethod
    def follow(self, point: MarginPoint) -> None:
        """Recompute the weights of a point from its variables, in the precision of solving."""

    def _begin_intercepts(self, point: MarginPoint) -> None:  # noqa: B027
        """Initialize the intercepts of a point, where its variables do not determine them."""

    @abstractmethod
    def sweep(self, point: MarginPoint, block: int, rows: Array, threshold: float) -> float:
        """Visit rows of one block in this order, and take steps with a gain above a threshold.

        Returns the sum over rows of their share of the duality gap, each at its visit.
        """

    def round(
        self, point: MarginPoint, block: int, orders: Array, run: int, hot_gain: float, idle_gain: float,
        mean_gain: float,
    ) -> tuple[float, float, int]:  # fmt: skip
        """Sweep; see :meth:`labelweave.solvers.dual_coordinate_ascent.BoxDual.round`."""
        from labelweave.foundation.loops.coordinate_ascent import in_runs, rows_above

        gains, met_gap, visits = self.gains(point, block), 0.0, 0
        for number, order in enumerate(orders):
            rows = rows_above(gains, hot_gain * mean_gain) if number else np.arange(self.n_rows)
            rows = in_runs(rows, order[order < -(-len(rows) // run)], run)
            gap = self.sweep(point, block, rows, idle_gain * mean_gain)
            visits += len(rows)
            if number == 0:
                met_gap, mean_gain = gap, float(gains.mean(dtype=np.float64)) if self.n_rows else 0.0
        return met_gap, mean_gain, visits

    def gains(self, point: MarginPoint, block: int) -> Array:
        return np.asarray(point.gains[block])

    @abstractmethod
    def measure(self, point: MarginPoint, block: int) -> tuple[float, float]:
        """Compute the objectives; see :meth:`labelweave.solvers.dual_coordinate_ascent.BoxDual.measure`."""

    @abstractmethod
    def certify(self, point: MarginPoint, block: int) -> tuple[float, float]:
        """Evaluate exactly, and keep the weights in ``certified``."""

    def solution(self) -> tuple[Array, Array]:
        """Collect the weights of the last certified point: (L, d), without their intercepts, and these."""
        parts = [self.certified[number] for number in range(len(self.label_blocks))]
        places = np.argsort(self.label_order)
        table = np.empty((self.data.features.shape[1], len(places)))
        step = max(1, _CACHED_NUMBERS // max(1, len(parts) * WIDTH))
        for start in range(0, len(table), step):  # reorder the labels of a few features in the cache
            wide = np.concatenate([weights[start : start + step] for weights, _ in parts], axis=1)
            table[start : start + step] = np.take(wide, places, axis=1)
        return table.T, np.concatenate([constants for _, constants in parts])[places]

    @cached_property
    def exact_blocks(self) -> list[LabelBlock]:
        return self._blocks_of(np.float64)[2]

    def bounds(self, block: LabelBlock) -> Array:
        """Return the largest sizes of variables, (n, 1) or (n, WIDTH)."""
        upper = block.upper.reshape(self.n_rows, -1)
        return np.where(upper > 0, np.inf, upper) if self.data.squared else upper

    def exact_beta(self, point: MarginPoint, block: int) -> Array:
        """Return a copy of the variables in double precision, clipped to bounds that rounding may exceed."""
        most = self.bounds(self.exact_blocks[block])
        beta: Array = point.beta[block].astype(np.float64)
        np.clip(beta, -most, most, out=beta)  # the bound 0 on the other side is exact in any precision
        return beta

    def product(self, beta: Array) -> Array:
        """Compute X^T B for one label block, (d, WIDTH), without the constant feature."""
        from labelweave.foundation.loops.coordinate_ascent import scatter_block

        rows = self.rows if beta.dtype == self.dtype else self.ordered.exact_rows
        if self.ordered.as_table:
            return np.ascontiguousarray(rows[0].T @ beta)
        wide = np.zeros((self.data.features.shape[1], WIDTH), beta.dtype)
        scatter_block(*rows, beta, wide)
        return wide

    def around_known(self, beta: Array, number: int) -> Array:
        """Compute X^T B for one label block, and add the prior weights."""
        wide = self.product(beta)
        return wide if self.known is None else (wide + self.known[number]).astype(beta.dtype, copy=False)

    def known_sums(self, number: int, beta: Array) -> Array:
        """Sum beta times the prior scores by label, (WIDTH,); in the precision of the variables."""
        if self.known is None:
            return np.zeros(WIDTH)
        blocks = self.label_blocks if beta.dtype == self.dtype else self.exact_blocks
        known = self.known[number].astype(beta.dtype)
        return np.asarray(self.sums(blocks[number], beta, known, np.zeros(WIDTH, beta.dtype))[2])

    def sums(self, block: LabelBlock, beta: Array, weights: Array, intercept: Array) -> Array:
        """Sum, by label, the losses, the linear part of the dual, and beta * score: (3, WIDTH).

        weights (d, WIDTH), intercept (WIDTH,): of the type of the variables.
        """
        from labelweave.foundation.loops.coordinate_ascent import label_sums, table_sums

        sums = np.zeros((3, WIDTH))
        rows = self.rows if weights.dtype == self.dtype else self.ordered.exact_rows
        of_labels = block.signs, beta, block.upper, block.margins, weights, intercept, sums
        if self.ordered.as_table:
            table_sums(*rows, *of_labels)
        else:
            label_sums(*rows, *of_labels, self.data.squared or None)
        return sums


def _checked_norms(features: FeatureMatrix) -> PerRow:
    with np.errstate(over="ignore"):
        norms = features.squared_norms()
    if not (norms < _LARGEST_DOUBLE).all():
        row = int(np.argmax(norms))
        raise ValueError(
            f"X at row {row} has a squared norm of {norms[row]:.3g}, which is too large; scale the features "
            "so that row norms are near 1."
        )
    return norms
