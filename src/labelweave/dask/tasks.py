"""Tasks of the workers: pure functions of partitions and states, which Dask may repeat for lost results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from labelweave.dask.chunks import Chunk, Partition
from labelweave.dask.rows import ReadRows, Sized, entries_of, labels_of, stacked
from labelweave.estimators.entry_weights import entries_by_sign, weighted_by_factors
from labelweave.estimators.journal import Journal
from labelweave.estimators.max_margin.fit import MarginSettings, MarginTask
from labelweave.features import make_kernel
from labelweave.features.gram.sources import KernelSource
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance, LabelMean
from labelweave.labels.label_names import weights_of_entries
from labelweave.labels.targets import TargetForm
from labelweave.problems import MarginData, traveling_margins
from labelweave.problems.margin_dual import OrderedRows
from labelweave.problems.traveling_margins import Piece, RowsBlock, RowState, SharedState
from labelweave.solvers import DualCoordinateAscent

RowStates = tuple[RowState, ...]
"""The states of a block at a partition, one per chunk."""


@dataclass(frozen=True)
class Common:
    """Data shared by all partitions of a fit.

    form: of the targets; classes: all of them, if each row has one.
    factors: weights of classes, see :func:`labelweave.estimators.entry_weights.class_factors`.
    upper: 2 C.
    margins (2, L): the required margins of positives and negatives.
    roots (L,): of the variances of labels; None if all are 1.
    covariance: of coupled labels; None if they are independent.
    mean: the prior mean of weights, for labels of variance 1.
    settings: of the ordinary fit, if all rows are in one place.
    """

    form: TargetForm
    upper: float
    margins: Array
    intercept: bool
    dtype: Any
    seed: int
    tol: float
    max_iter: int
    n_features: int
    settings: MarginSettings
    factors: Array | None = None
    roots: Array | None = None
    covariance: LabelCovariance | None = None
    mean: LabelMean | None = None

    def stream(self, *key: int) -> np.random.Generator:
        """Return the random generator of a block, or of a block at a stop."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))

    def of_block(self, labels: Array) -> Array | None:
        """Return the dense covariance of a block of labels; None if they are independent."""
        return None if self.covariance is None else self.covariance.columns(labels).to_dense()


def arranged(
    common: Common, number: int, groups: Sequence[Sequence[ReadRows]], *, is_filed: bool
) -> Partition:
    """Bring rows into the order of solving, grouped by the reads that made them.

    is_filed: whether they go into files.
    """
    return Partition(number, *(_chunk(common, group, is_filed=is_filed) for group in groups))


def _chunk(common: Common, parts: Sequence[ReadRows], *, is_filed: bool) -> Chunk:
    stretches = [_margins_of(rows, common) for rows in parts]
    data = joined(stretches)
    return Chunk(OrderedRows(data, common.dtype, as_table=data.is_walked_as_table), is_filed=is_filed)


def _margins_of(rows: ReadRows, common: Common) -> MarginData:
    labels, weights = labels_of(rows, common.form), rows.weights
    entries = entries_of(rows, labels)
    if common.factors is not None:
        weights, factors = weighted_by_factors(common.factors, labels, common.form, weights)
        entries = entries if factors is None else entries_by_sign(labels, factors, entries)
    upper = weights_of_entries(common.upper * weights, entries)
    return MarginData(
        features=rows.features,
        labels=labels,
        covariance=common.covariance or LabelCovariance.identity(labels.n_labels),
        upper=upper if common.roots is None else np.reshape(upper, (len(labels), -1)) * common.roots,
        margins=common.margins,
        intercept=common.intercept,
        mean=common.mean,
    )


def joined(stretches: Sequence[MarginData]) -> MarginData:
    columns = ([getattr(data, name) for data in stretches] for name in ("features", "labels", "upper"))
    features, labels, upper = map(stacked, columns)
    return replace(stretches[0], features=features, labels=labels, upper=upper)


@dataclass(frozen=True)
class FittedBlock(Sized):
    """A fitted block: weights (k, d) and intercepts (k,) of its labels, objectives and rounds."""

    weights: Array
    intercepts: Array
    primal: float
    dual: float
    rounds: int


def fitted(partition: Partition, block: int, labels: Array, common: Common) -> FittedBlock:
    """Fit a block where all rows are in one place, with the ordinary estimator's solver."""
    rows = partition.rows
    with Workers().running():
        if common.covariance is not None or not _task(rows.data, common).walks_rows:
            return _fitted_by_task(rows, labels, common)
        problem = RowsBlock(rows, labels)
        solver = DualCoordinateAscent(common.tol, common.max_iter)
        state = replace(solver.start(problem), generators=[common.stream(block)])
        result, state = solver.solve(problem, state)
        primal, dual = problem.certify(state.point, 0)
    weights, intercepts = problem.certified[0]
    return FittedBlock(
        _of_labels(weights[None], labels), intercepts[: len(labels)], primal, dual, result.n_iter
    )


def _task(data: MarginData, common: Common) -> MarginTask:
    """Build the ordinary fitting task."""
    source = KernelSource(make_kernel("linear"), data.features)
    return MarginTask(data, source, data.features, common.settings, Journal())


def _fitted_by_task(rows: OrderedRows, labels: Array, common: Common) -> FittedBlock:
    """Fit labels coupled by a covariance, or a block by global steps."""
    data, order = rows.data.rows(np.argsort(rows.order)), labels
    if len(labels) < data.labels.n_labels or common.covariance is None:
        data, order = data.some_labels(np.sort(labels)), np.argsort(np.argsort(labels))
    fit = _task(data, common).solve()
    assert fit.weights is not None, "linear features have weights"
    constants = fit.intercepts - (0 if data.mean is None else data.mean.intercepts)
    last = fit.result.trace[-1]
    return FittedBlock(fit.weights[order], constants[order], last.primal, last.dual, fit.result.n_iter)


def _of_labels(weights: Array, labels: Array) -> Array:
    """Return the weights of a block, one row per label, from (slabs, d, WIDTH)."""
    by_label = weights.transpose(0, 2, 1).reshape(-1, weights.shape[1])
    return np.ascontiguousarray(by_label[: len(labels)])


def never_stops(*_: Any) -> bool:
    """Never stop a fit, as its callback."""
    return False


class Visit(NamedTuple):
    """The rows of a partition that a block visits.

    round: of the block; is_full: whether all rows are visited in it.
    piece: which of the pieces of the rows.
    """

    round: int
    is_full: bool
    piece: int
    n_pieces: int


def visit(
    partition: Partition, visit: Visit, block: int, labels: Array, common: Common, shared: Any, states: Any
) -> tuple[SharedState, RowStates]:
    """Visit a partition with a block of labels.

    shared, states: after the previous visits, maybe as their pairs; None for a block that starts.
    Returns both after the visit.
    """
    if isinstance(shared, tuple):
        shared = shared[0]
    piece = Piece(visit.piece, visit.n_pieces, common.stream(block, 1 + partition.number, visit.round))
    return partition.visit(labels, shared, states, piece, is_full=visit.is_full)


def begun(partition: Partition, labels: Array) -> SharedState:
    return partition.chunks[0].block(labels).first_shared()


def round_ended(last: Any, labels: Array, common: Common, *, was_full: bool) -> SharedState:
    """Finish a round after a block has visited all rows; its last visit may come as the pair."""
    shared = last[0] if isinstance(last, tuple) else last
    with Workers().running():
        return traveling_margins.end_of_round(
            shared, was_full=was_full, intercept=common.intercept, covariance=common.of_block(labels)
        )


def met_gap(shared: SharedState) -> float:
    """Return the gap that a block encountered in its last full round."""
    return shared.met_gap


def summed(partition: Partition, labels: Array, method: str, *given: Any) -> Array:
    """Sum a method of a block over a partition, with the states of the rows as the last argument."""
    *more, states = given
    return partition.summed(method, labels, states, *more)


def values_in_use(shared: SharedState, labels: Array, common: Common, *sums: Array) -> tuple[float, float]:
    """Combine the primal and dual value of a block."""
    return _values(shared, labels, common, traveling_margins.in_tree_order(sums), shared.moves.totals)


def _values(
    shared: SharedState, labels: Array, common: Common, sums: Array, totals: Array
) -> tuple[float, float]:
    with Workers().running():
        covariance, intercept = common.of_block(labels), common.intercept
        return traveling_margins.block_objectives(
            shared, sums, totals, intercept=intercept, covariance=covariance
        )


def exact_weights(product: Array, labels: Array, common: Common) -> Array:
    """Return the weights that follow from X^T B, in float64."""
    with Workers().running():
        return traveling_margins.spread_by(common.of_block(labels), product)


def exact_sums(
    partition: Partition, labels: Array, weights: Array, constants: Array, states: RowStates
) -> Array:
    """Sum losses, products and variables over a partition in double precision: (4, slabs, WIDTH)."""
    found = partition.summed("exact_sums", labels, states, weights, constants)
    partition.forget(labels)
    return found


def exact_constants(shared: SharedState, labels: Array, common: Common) -> Array:
    """Return the intercepts in float64: (slabs, WIDTH)."""
    return traveling_margins.spread_by(common.of_block(labels), shared.pulls)


def settled(
    weights: Array, constants: Array, shared: SharedState, labels: Array, rounds: int, common: Common,
    *sums: Array,
) -> FittedBlock:  # fmt: skip
    """Assemble a block with its certificate."""
    whole = traveling_margins.in_tree_order(sums)
    primal, dual = _values(shared, labels, common, whole[:3], whole[3])
    own, known = _of_labels(weights, labels), common.mean
    own = own if known is None else own + known.columns(labels).weights()
    return FittedBlock(own, constants.ravel()[: len(labels)], primal, dual, rounds)
