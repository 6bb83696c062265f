"""What workers do: pure functions of partitions and states, which Dask may call again for what was lost."""

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
from labelweave.estimators.targets import TargetForm, weights_of_entries
from labelweave.features import make_kernel
from labelweave.features.gram.sources import KernelSource
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance, LabelMean
from labelweave.problems import MarginData
from labelweave.problems.margin_dual import OrderedRows
from labelweave.problems.travelling_margins import (
    Piece,
    RowsBlock,
    Seat,
    Traveller,
    block_objectives,
    end_of_round,
    in_tree_order,
    spread_by,
)
from labelweave.solvers import DualCoordinateAscent

Seats = tuple[Seat, ...]
"""The seats of a block at a partition, chunk by chunk."""


@dataclass(frozen=True)
class Common:
    """What is the same for all partitions of a fit.

    form: of the targets; classes: all of them, where a row has one.
    factors: weights of classes, see :func:`labelweave.estimators.entry_weights.class_factors`.
    upper: 2 C.
    margins (2, L): those asked of positives and negatives.
    roots (L,): of the variances of labels; None if all are 1.
    covariance: of labels that it couples; None where they are independent.
    mean: what weights are drawn to, of labels of variance 1.
    settings: of the ordinary fit, where all rows are in one place.
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
        """Give the random numbers of a block, or of a block at a stop."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))

    def of_block(self, labels: Array) -> Array | None:
        """Write out the covariance of a block of labels; None where they are independent."""
        return None if self.covariance is None else self.covariance.columns(labels).to_dense()


def arranged(
    common: Common, number: int, groups: Sequence[Sequence[ReadRows]], *, is_filed: bool
) -> Partition:
    """Bring rows into the order of solving, group by group those that one or more reads gave.

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
    """Put rows under one another."""
    columns = ([getattr(data, name) for data in stretches] for name in ("features", "labels", "upper"))
    features, labels, upper = map(stacked, columns)
    return replace(stretches[0], features=features, labels=labels, upper=upper)


@dataclass(frozen=True)
class FittedBlock(Sized):
    """A block at its end: weights (k, d) and intercepts (k,) of its labels, objectives and rounds."""

    weights: Array
    intercepts: Array
    primal: float
    dual: float
    rounds: int


def fitted(partition: Partition, block: int, labels: Array, common: Common) -> FittedBlock:
    """Fit a block where all rows are together, by the solver that the ordinary estimator takes."""
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
    """Pose the ordinary fit."""
    source = KernelSource(make_kernel("linear"), data.features)
    return MarginTask(data, source, data.features, common.settings, Journal())


def _fitted_by_task(rows: OrderedRows, labels: Array, common: Common) -> FittedBlock:
    """Fit labels that a covariance couples, or a block by global steps."""
    data, order = rows.data.rows(np.argsort(rows.order)), labels
    if len(labels) < data.labels.n_labels or common.covariance is None:
        data, order = data.some_labels(np.sort(labels)), np.argsort(np.argsort(labels))
    fit = _task(data, common).solve()
    assert fit.weights is not None, "linear features have weights"
    constants = fit.intercepts - (0 if data.mean is None else data.mean.intercepts)
    last = fit.result.trace[-1]
    return FittedBlock(fit.weights[order], constants[order], last.primal, last.dual, fit.result.n_iter)


def _of_labels(weights: Array, labels: Array) -> Array:
    """Give the weights of a block a row a label, from (slabs, d, WIDTH)."""
    by_label = weights.transpose(0, 2, 1).reshape(-1, weights.shape[1])
    return np.ascontiguousarray(by_label[: len(labels)])


def never_stops(*_: Any) -> bool:
    """Let a fit of the ordinary estimator go on, as a callback of it."""
    return False


class Visit(NamedTuple):
    """Which rows of a partition a block visits.

    round: of the block; is_full: whether all rows are visited in it.
    piece: which of so many pieces of the rows.
    """

    round: int
    is_full: bool
    piece: int
    n_pieces: int


def visit(
    partition: Partition, visit: Visit, block: int, labels: Array, common: Common, traveller: Any, seats: Any
) -> tuple[Traveller, Seats]:
    """Let a block of labels visit a partition.

    traveller, seats: those of the visits before, which may come as their pairs; None of a block that begins.
    Returns both after the visit.
    """
    if isinstance(traveller, tuple):
        traveller = traveller[0]
    piece = Piece(visit.piece, visit.n_pieces, common.stream(block, 1 + partition.number, visit.round))
    return partition.visit(labels, traveller, seats, piece, is_full=visit.is_full)


def begun(partition: Partition, labels: Array) -> Traveller:
    """Let a block begin."""
    return partition.chunks[0].block(labels).first_traveller()


def round_ended(last: Any, labels: Array, common: Common, *, was_full: bool) -> Traveller:
    """Do what is due when a block has visited all rows; its last visit may come as the pair."""
    traveller = last[0] if isinstance(last, tuple) else last
    with Workers().running():
        return end_of_round(
            traveller, was_full=was_full, intercept=common.intercept, covariance=common.of_block(labels)
        )


def met_gap(traveller: Traveller) -> float:
    """Give the gap that a block met in its last full round."""
    return traveller.met_gap


def summed(partition: Partition, labels: Array, method: str, *given: Any) -> Array:
    """Add what a method of a block gives over a partition, for what is given and its seats, the last one."""
    *more, seats = given
    return partition.summed(method, labels, seats, *more)


def values_in_use(traveller: Traveller, labels: Array, common: Common, *sums: Array) -> tuple[float, float]:
    """Put primal and dual value of a block together."""
    return _values(traveller, labels, common, in_tree_order(sums), traveller.moves.totals)


def _values(
    traveller: Traveller, labels: Array, common: Common, sums: Array, totals: Array
) -> tuple[float, float]:
    with Workers().running():
        covariance, intercept = common.of_block(labels), common.intercept
        return block_objectives(traveller, sums, totals, intercept=intercept, covariance=covariance)


def exact_weights(product: Array, labels: Array, common: Common) -> Array:
    """Give the weights that follow X^T B, in float64."""
    with Workers().running():
        return spread_by(common.of_block(labels), product)


def exact_sums(partition: Partition, labels: Array, weights: Array, constants: Array, seats: Seats) -> Array:
    """Sum losses, products and variables over a partition in double precision: (4, slabs, WIDTH)."""
    found = partition.summed("exact_sums", labels, seats, weights, constants)
    partition.forget(labels)
    return found


def exact_constants(traveller: Traveller, labels: Array, common: Common) -> Array:
    """Give the intercepts in float64: (slabs, WIDTH)."""
    return spread_by(common.of_block(labels), traveller.pulls)


def settled(
    weights: Array, constants: Array, traveller: Traveller, labels: Array, rounds: int, common: Common,
    *sums: Array,
) -> FittedBlock:  # fmt: skip
    """Put a block together with its certificate."""
    whole = in_tree_order(sums)
    primal, dual = _values(traveller, labels, common, whole[:3], whole[3])
    own, known = _of_labels(weights, labels), common.mean
    own = own if known is None else own + known.columns(labels).weights()
    return FittedBlock(own, constants.ravel()[: len(labels)], primal, dual, rounds)
