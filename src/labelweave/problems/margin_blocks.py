"""The max-margin dual of independent labels, solved, pruned and stored block by block.

Memory is that of the data and of the blocks that threads work on.  Stored weights may be 0 for most
features, and be whole multiples of a scale of their label.  No dual variables correspond to such weights, but
any weights w have a primal value, and any dual variables a lower bound of its minimum: with the variables of
the solved block, the relative gap (primal(w) - dual) / abs(primal(w)) holds for the stored weights.
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

_STEPS = np.iinfo(np.int16).max  # steps of a label's scale in its largest weight
_SHORT = 2**16  # labels that two bytes can number


@dataclass(frozen=True)
class KeptBlock:
    """The stored part of a block of labels.

    labels (k,): their numbers.
    counts (k,): the number of stored weights of each.
    features, values (nnz,): features and values, label after label, in units of the label's scale.
    values_before: primal and dual value, and the number of nonzero weights, before pruning.
    primal: of the stored weights.
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
    """The weights of all labels, by feature: CSC arrays in units of one scale per label.

    indptr (d + 1,): the start of the entries of each feature.
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
        """Return the arrays with a label axis, which is last: weights, variables, intercepts and sums."""
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
        """Evaluate weights (d, WIDTH), rounded to whole multiples of a scale if requested."""
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
    """All blocks of independent labels over the same rows, each created on demand.

    data: labels may have variances of their own; the covariance is diagonal.
    is_short: whether weights are stored in two bytes, where the tolerance allows for their rounding.
    """

    def __init__(
        self, data: MarginData, dtype: npt.DTypeLike, workers: Workers, *, is_short: bool = True
    ) -> None:
        data, self.roots = data.of_unit_variances()
        self.ordered, self.workers, self.is_short = OrderedRows(data, dtype), workers, is_short
        _ = self.ordered.exact_rows  # computed before threads need them
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
    """Return the cost of pruning: relative gaps and numbers of weights before and after, over all blocks."""
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
