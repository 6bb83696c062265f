"""The max-margin dual of independent labels, a block of labels at a time: what is fitted, pruned and kept.

Memory is that of the data and of the blocks that threads work on.  Weights that are kept may be 0 in most
features, and be whole multiples of a scale of their label.  No dual variables stand behind such weights, but
any weights w have a primal value, and any dual variables a lower bound of its minimum: with those that the
block was solved to, the relative gap (primal(w) - dual) / abs(primal(w)) holds for the weights that are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.foundation.loops import WIDTH
from labelweave.problems.margin_dual import MarginData, MarginPoint, OrderedRows
from labelweave.problems.swept_margins import IndependentMargins
from labelweave.solvers.frame import State, relative_gap

_STEPS = np.iinfo(np.int16).max  # of a label's scale that its largest weight has
_SHORT = 2**16  # labels that two bytes number


@dataclass(frozen=True)
class KeptBlock:
    """What is kept of a block of labels.

    labels (k,): which they are.
    counts (k,): how many weights of each are kept.
    features, values (nnz,): where and how large they are, label after label, in units of the label's scale.
    values_before: primal and dual value, and the number of weights other than 0, before pruning.
    primal: of the weights as they are kept.
    """

    labels: Array
    counts: Array
    features: Array
    values: Array
    scales: Array
    intercepts: Array
    values_before: tuple[float, float, int]
    primal: float

    @property
    def gap_before(self) -> float:
        return relative_gap(*self.values_before[:2])

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.values_before[1])


State.plain_with(KeptBlock)


@dataclass(frozen=True)
class KeptWeights:
    """The weights of all labels, feature after feature: CSC arrays in units of a scale a label.

    indptr (d + 1,): where the entries of each feature begin.
    labels, values (nnz,): of two bytes each, where numbers of labels and the gaps of all blocks allow it.
    scales, intercepts (L,): of the labels.
    """

    indptr: Array
    labels: Array
    values: Array
    scales: Array
    intercepts: Array


class MarginBlock(IndependentMargins):
    """One block of labels, solved and then pruned."""

    def __init__(self, data: OrderedRows, labels: Array, dtype: npt.DTypeLike) -> None:
        super().__init__(data.some_labels(labels), dtype)
        self.of_all, self.keeps_zeros = labels[self.label_order], False

    def columns(self, point: MarginPoint) -> tuple[Array, ...]:
        """Return what changes with a label: weights, variables, intercepts and sums, labels last."""
        return point.weights[0], point.beta[0], point.intercepts[0], point.moves.totals[0]

    def primal(self, point: MarginPoint) -> Array:
        weights, beta, intercepts, _ = self.columns(point)
        hinge = self.sums(self.label_blocks[0], beta, weights, intercepts)[0]
        return self._primal(hinge, weights, intercepts)

    def _primal(self, hinge: Array, weights: Array, intercepts: Array) -> Array:
        squared = np.einsum("jl,jl->l", weights, weights, dtype=np.float64)
        return np.asarray(hinge + (squared + intercepts.astype(np.float64) ** 2) / 2)

    def kept(
        self, point: MarginPoint, weights: Array, intercepts: Array, before: Any, *, is_short: bool
    ) -> KeptBlock:
        """Measure weights (d, WIDTH), if they are to be short as whole multiples of a scale."""
        scales, values = np.ones(WIDTH), weights.astype(np.float64)
        if is_short:
            scales = np.maximum(np.abs(values).max(axis=0, initial=0.0), 1e-300) / _STEPS
            values = np.rint(values / scales)
        exact, constants = values * scales, intercepts.astype(np.float64)
        beta = self.exact_beta(point, 0)
        hinge = self.sums(self.exact_blocks[0], beta, exact, constants)[0]
        n = len(self.of_all)
        columns = np.ascontiguousarray(values[:, :n].T)
        places, features = np.nonzero(columns)
        found = columns[places, features]
        return KeptBlock(
            labels=self.of_all,
            counts=np.bincount(places, minlength=n),
            features=features.astype(np.int32),
            values=found.astype(np.int16) if is_short else found,
            scales=scales[:n],
            intercepts=constants[:n],
            values_before=before,
            primal=float(self._primal(hinge, exact, constants).sum()),
        )


class MarginBlocks:
    """All blocks of independent labels over the same rows, each made when it is asked for.

    data: labels may have variances of their own; the covariance is diagonal.
    is_short: whether weights are kept in two bytes, where the tolerance has room for their rounding.
    """

    def __init__(
        self, data: MarginData, dtype: npt.DTypeLike, workers: Workers, *, is_short: bool = True
    ) -> None:
        data, self.roots = data.of_unit_variances()
        self.ordered, self.workers, self.is_short = OrderedRows(data, dtype), workers, is_short
        _ = self.ordered.exact_rows  # made before threads ask for them
        order = np.argsort(-data.labels.positive_counts(), kind="stable")
        self.groups = [order[start : start + WIDTH] for start in range(0, len(order), WIDTH)]
        self.n_blocks, self.zero_losses = len(self.groups), _zero_losses(data)

    def block(self, number: int) -> MarginBlock:
        return MarginBlock(self.ordered, self.groups[number], self.ordered.dtype)

    def each_block(self, of_block: Callable[[Any, int], Any], blocks: Iterable[int]) -> list[Any]:
        return self.workers.map(partial(of_block, self), list(blocks))

    def values(self, blocks: Sequence[KeptBlock]) -> tuple[float, float]:
        left = np.concatenate([*self.groups[len(blocks) :], np.empty(0, np.intp)])
        primal = sum(block.primal for block in blocks) + float(self.zero_losses[left].sum())
        return primal, sum(block.values_before[1] for block in blocks)

    def cost(self, blocks: Sequence[KeptBlock]) -> dict[str, float]:
        return cost_of_blocks(blocks, *self.values(blocks))

    def solution(self, blocks: Sequence[KeptBlock]) -> KeptWeights:
        n_labels, d = len(self.zero_losses), self.ordered.data.features.shape[1]
        scales, intercepts = np.ones(n_labels), np.zeros(n_labels)
        counts = np.zeros(n_labels, np.int64)
        for block in blocks:
            scales[block.labels], intercepts[block.labels] = block.scales, block.intercepts
            counts[block.labels] = block.counts
        indptr = np.concatenate([[0], np.cumsum(counts)])
        kind = np.result_type(np.int16, *{block.values.dtype for block in blocks})
        features, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], kind)
        for block in blocks:
            ends = np.cumsum(block.counts)
            for label, start, stop in zip(block.labels, ends - block.counts, ends, strict=True):
                place = slice(indptr[label], indptr[label + 1])
                features[place], values[place] = block.features[start:stop], block.values[start:stop]
        table = sp.csr_array((values, features, indptr), shape=(n_labels, d))
        table.check_format(full_check=True)  # blocks may be from a file
        turned = table.tocsc()
        short = turned.indices.astype(np.uint16 if n_labels <= _SHORT else np.int32)
        of_labels = scales * self.roots, intercepts * self.roots
        return KeptWeights(turned.indptr.astype(np.int64), short, turned.data, *of_labels)


def cost_of_blocks(blocks: Sequence[KeptBlock], primal: float, dual: float) -> dict[str, float]:
    """Say what pruning cost: relative gaps and numbers of weights before and after, of all that is kept."""
    lost = sum(block.primal - block.values_before[0] for block in blocks)
    return {
        "gap_before": relative_gap(primal - lost, dual),
        "gap": relative_gap(primal, dual),
        "largest_gap": max((block.gap for block in blocks), default=np.nan),
        "weights_before": float(sum(block.values_before[2] for block in blocks)),
        "weights": float(sum(len(block.values) for block in blocks)),
    }


def _zero_losses(data: MarginData) -> Array:
    """Sum the losses of each label where all weights are 0, shape (L,)."""
    labels, upper = data.labels, data.upper
    if data.margins.ndim == 3:
        signs = labels.to_signs()
        asked = np.where(signs > 0, *data.margins) * (signs != 0)
        return np.asarray((asked * np.reshape(upper, (len(labels), -1))).sum(axis=0))
    if upper.ndim == 2:
        of_positives = np.asarray(labels.positives.multiply(upper).sum(axis=0)).ravel()
        whole = upper if labels.observed is None else abs(labels.observed).multiply(upper)
        of_all = np.asarray(whole.sum(axis=0)).ravel()
    else:
        of_positives = labels.positives.T @ upper
        of_all = np.full(labels.n_labels, upper.sum())
        if labels.observed is not None:
            of_all = abs(labels.observed).T @ upper
    positive, negative = data.margins
    return np.asarray(positive * of_positives + negative * (of_all - of_positives))
