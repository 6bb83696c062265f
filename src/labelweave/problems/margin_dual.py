"""The dual of linear max-margin multi-label learning (M3L).

The primal of Hariharan et al. (2012), equations 11 to 14, with the label
covariance R, weights Z (one column a label) and a loss that decomposes over
labels (equation 5), is

    min_Z  1/2 tr(Z R^-1 Z^T) + sum_il U_i max(0, m_il - y_il z_l . x_i),

where U_i = 2 C w_i and m_il is half the loss of a mistake on label l: 1 for the
Hamming loss, whose paper form counts a mistake twice.  Its dual (equation 25),
in the signed variables beta_il = 2 y_il alpha_il, is

    max_beta  sum_il beta_il y_il m_il - 1/2 tr(B^T K B R),    beta_il between 0 and y_il U_i,

and Z = X^T B R.  The duality gap at (Z(beta), beta) splits over entries:

    sum_il [U_i max(0, m_il - y_il s_il) - beta_il (y_il m_il - s_il)] >= 0,   S = X Z.

An unobserved entry has y_il = 0: its variable is 0 and it adds no loss.
Labels are taken in blocks of ``WIDTH``, frequent ones first, so that blocks of
rare labels have few rows that move.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from labelweave._loops.coordinate_ascent import label_sums, scatter_block
from labelweave._loops.wide_rows import WIDTH
from labelweave.array_types import Array, PerRow
from labelweave.features import FeatureMatrix
from labelweave.labels.covariance import LabelCovariance
from labelweave.labels.label_matrix import LabelMatrix

__all__ = ["LabelBlock", "MarginData", "MarginDual"]


# squared norms and upper bounds beyond which products of them leave the range of the type
_LARGEST_SINGLE = 1e15
_LARGEST_DOUBLE = 1e150


@dataclass(frozen=True)
class MarginData:
    """What defines the problem.

    upper: U_i = 2 C w_i, the weight of a row's hinge losses.
    margins (2, L): the margin asked of a positive and of a negative example of each label.
    intercept: whether a constant feature 1 is added.
    Shapes: features (n, d), labels (n, L).
    """

    features: FeatureMatrix
    labels: LabelMatrix
    covariance: LabelCovariance
    upper: PerRow
    margins: Array
    intercept: bool


@dataclass(frozen=True)
class LabelBlock:
    """The variables of up to ``WIDTH`` labels, padded with unobserved ones.

    labels (k,): which labels stand in the first k columns.
    signs (n, WIDTH): +1, -1, or 0 for unobserved.
    margins (2, WIDTH): the margins asked of positives and negatives.
    Shapes: beta (n, WIDTH).
    """

    labels: Array
    signs: Array
    beta: Array
    margins: Array


class MarginDual(ABC):
    """The dual over label blocks; subclasses say how blocks interact.

    dtype: the type of the variables and weights while solving: float32 is fast, float64 reaches small gaps.
    """

    n_blocks: int
    blocks_are_independent: bool

    def __init__(self, data: MarginData, dtype: npt.DTypeLike) -> None:
        self.data = data
        norms = _checked_norms(data.features)
        largest = max(norms.max(initial=0.0), data.upper.max(initial=0.0))
        self.dtype = np.dtype(dtype if largest < _LARGEST_SINGLE else np.float64)
        self.rows = data.features.sparse_rows(self.dtype)
        # an empty row has no curvature of its own; a tiny one keeps its step finite
        self.squared_norms = np.maximum(norms, 1e-9).astype(self.dtype)
        self.upper = data.upper.astype(self.dtype)
        self.n_rows = len(data.features)
        self._allocate_blocks()
        nothing = (np.zeros((0, WIDTH)), np.zeros(WIDTH))
        self.certified: list[tuple[Array, Array]] = [nothing] * len(self.label_blocks)

    def _allocate_blocks(self) -> None:
        frequent_first = np.argsort(-self.data.labels.positive_counts(), kind="stable")
        groups = [frequent_first[s : s + WIDTH] for s in range(0, len(frequent_first), WIDTH)]
        self.signs = np.zeros((len(groups), self.n_rows, WIDTH), np.int8)
        self.beta = np.zeros((len(groups), self.n_rows, WIDTH), self.dtype)
        self.margins = np.zeros((len(groups), 2, WIDTH), self.dtype)
        for number, labels in enumerate(groups):
            self.signs[number, :, : len(labels)] = self.data.labels.select_labels(labels).to_signs()
            self.margins[number, :, : len(labels)] = self.data.margins[:, labels]
        self.label_blocks = [
            LabelBlock(labels, *parts)
            for labels, *parts in zip(groups, self.signs, self.beta, self.margins, strict=True)
        ]

    @abstractmethod
    def sweep(self, block: int, rows: Array, threshold: float) -> float:
        """Visit rows of one block; see :meth:`labelweave.solvers.BoxDual.sweep`."""

    @abstractmethod
    def gains(self, block: int) -> Array:
        """Give the gains; see :meth:`labelweave.solvers.BoxDual.gains`."""

    @abstractmethod
    def measure(self, block: int) -> tuple[float, float]:
        """Compute the objectives; see :meth:`labelweave.solvers.BoxDual.measure`."""

    @abstractmethod
    def certify(self, block: int) -> tuple[float, float]:
        """Measure exactly and keep the weights; see :meth:`labelweave.solvers.BoxDual.certify`."""

    def solution(self) -> tuple[Array, Array]:
        """Collect the weights that :meth:`certify` kept.

        coefficients (L, d): Z transposed, without its intercept row.
        Shapes: intercepts (L,).
        """
        n_labels = self.data.labels.n_labels
        coefficients = np.empty((n_labels, self.data.features.shape[1]))
        intercepts = np.empty(n_labels)
        for block, (wide, constants) in zip(self.label_blocks, self.certified, strict=True):
            coefficients[block.labels] = wide[:, : len(block.labels)].T
            intercepts[block.labels] = constants[: len(block.labels)]
        return coefficients, intercepts

    @cached_property
    def exact_rows(self) -> tuple[Array, Array, Array]:
        """The rows in double precision."""
        return self.rows if self.dtype == np.float64 else self.data.features.sparse_rows(np.float64)

    def exact(self, block: LabelBlock) -> LabelBlock:
        """State a label block in double precision, its variables within their bounds to the last bit.

        block: the labels, as they are while solving.
        Returns A copy; rounding may have carried a variable just past its bound.
        """
        upper = self.data.upper[:, None]
        beta = block.beta.astype(np.float64)
        np.clip(beta, -upper, upper, out=beta)  # the bound 0 on the other side is exact in any precision
        margins = np.zeros(block.margins.shape)
        margins[:, : len(block.labels)] = self.data.margins[:, block.labels]
        return LabelBlock(block.labels, block.signs, beta, margins)

    def product(self, block: LabelBlock) -> Array:
        """Compute X^T B for one label block in double precision.

        block: the labels, in double precision.
        Returns (d, WIDTH): the product, without the constant feature.
        """
        wide = np.zeros((self.data.features.shape[1], WIDTH))
        scatter_block(*self.exact_rows, block.beta, wide)
        return wide

    def sums(self, block: LabelBlock, weights: Array, intercept: Array) -> Array:
        """Sum, by label, the hinge losses, beta * target and beta * score.

        weights (d, WIDTH): their weights, of the type of the block's variables.
        intercept (WIDTH,): their intercepts, of the same type.
        Shapes: result (3, WIDTH).
        """
        sums = np.zeros((3, WIDTH))
        same = weights.dtype == self.dtype
        rows, upper = (self.rows, self.upper) if same else (self.exact_rows, self.data.upper)
        label_sums(*rows, block.signs, block.beta, upper, block.margins, weights, intercept, sums)
        return sums


def _checked_norms(features: FeatureMatrix) -> Array:
    with np.errstate(over="ignore"):
        norms = features.squared_norms()
    if not (norms < _LARGEST_DOUBLE).all():
        row = int(np.argmax(norms))
        raise ValueError(
            f"X at row {row} has a squared norm of {norms[row]:.3g}, too large to compute with; scale the "
            "features so that the norms of rows are near 1."
        )
    return norms
