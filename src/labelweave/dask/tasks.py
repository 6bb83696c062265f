"""What workers do: pure functions of partitions and states, which Dask may call again for what was lost."""

from __future__ import annotations

import pickle
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from distributed import get_worker

from labelweave.array_types import Array
from labelweave.arrays import Workers
from labelweave.dask.rows import ReadRows, Sized, entries_of, labels_of, size_in_bytes
from labelweave.estimators.class_weights import entries_by_sign, weighted_by_factors
from labelweave.estimators.journal import Journal
from labelweave.estimators.max_margin.fit import MarginSettings, MarginTask
from labelweave.estimators.targets import TargetForm, weights_of_entries
from labelweave.features import FeatureMatrix, make_kernel
from labelweave.features.gram.sources import KernelSource
from labelweave.labels import LabelCovariance, LabelMatrix, LabelMean
from labelweave.problems import MarginData
from labelweave.problems.margin_dual import OrderedRows
from labelweave.problems.travelling_margins import (
    Piece,
    RowsBlock,
    Seat,
    Traveller,
    TravellingBlock,
    TravellingLabels,
    block_objectives,
    end_of_round,
    in_tree_order,
    spread_by,
)
from labelweave.solvers import DualCoordinateAscent


@dataclass(frozen=True)
class Common:
    """What is the same for all partitions of a fit.

    form: of the targets; classes: all of them, where a row has one.
    factors: weights of classes, see :func:`labelweave.estimators.class_weights.class_factors`.
    upper: 2 C.
    margins (2, L): those asked of positives and negatives.
    roots (L,): of the variances of labels; None if all are 1.
    covariance: of labels that it couples; None where they are independent.
    mean: what weights are drawn to, of labels of variance 1.
    settings: of the ordinary fit, for coupled labels all of whose rows are in one place.
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
    factors: Array | None = None
    roots: Array | None = None
    covariance: LabelCovariance | None = None
    mean: LabelMean | None = None
    settings: MarginSettings | None = None

    def itself(self) -> Common:
        """Give it, as the task that it comes from where it was lost."""
        return self

    def stream(self, *key: int) -> np.random.Generator:
        """Give the random numbers of a block, or of a block at a stop."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))

    def of_block(self, labels: Array) -> Array | None:
        """Write out the covariance of a block of labels; None where they are independent."""
        return None if self.covariance is None else self.covariance.columns(labels).to_dense()


class Partition(Sized):
    """Rows with the label blocks that visited, which are made again where they are missing.

    number: of the partition.
    """

    def __init__(self, rows: OrderedRows, number: int) -> None:
        self.rows, self.number = rows, number
        self._blocks: dict[int, TravellingBlock | TravellingLabels] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_blocks": {}}

    def __sizeof__(self) -> int:
        return size_in_bytes(self.rows)

    def block(self, labels: Array) -> TravellingBlock | TravellingLabels:
        """Give a block of labels over these rows."""
        key = int(labels[0])
        found = self._blocks.get(key)
        if found is None:
            found = self._blocks[key] = _block(self.rows, labels)
        return found

    def forget(self, labels: Array) -> None:
        """Drop a block that has been fitted."""
        self._blocks.pop(int(labels[0]), None)


def _block(rows: OrderedRows, labels: Array) -> TravellingBlock | TravellingLabels:
    kind = TravellingBlock if rows.data.covariance.is_diagonal else TravellingLabels
    return kind(rows, labels)


class FiledPartition:
    """A partition in a file of its worker, which every visit reads, where rows are more than memory.

    Dask writes what it spills anew each time that it was read: 4 GB on two workers took 140 s a round, most
    of it writing.  The file is written once, and goes with this object.
    """

    def __init__(self, rows: OrderedRows, number: int) -> None:
        self.__setstate__({"rows": rows, "number": number})

    def __getstate__(self) -> dict[str, Any]:
        return {"rows": self.rows, "number": self.number}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.number = state["number"]
        handle, self._path = tempfile.mkstemp(".rows", "labelweave-", _folder_of_worker())
        weakref.finalize(self, Path(self._path).unlink, missing_ok=True)
        with open(handle, "wb") as file:
            pickle.dump(state["rows"], file, pickle.HIGHEST_PROTOCOL)

    @property
    def rows(self) -> OrderedRows:
        """The rows, read anew."""
        with open(self._path, "rb") as file:
            rows: OrderedRows = pickle.load(file)
        return rows

    def block(self, labels: Array) -> TravellingBlock | TravellingLabels:
        """Give a block of labels over these rows, for one visit."""
        return _block(self.rows, labels)

    def forget(self, labels: Array) -> None:
        """Nothing is kept of a block."""


def _folder_of_worker() -> str | None:
    try:
        return str(get_worker().local_directory)
    except ValueError:  # a message is read, not a task done
        return None


def arranged(
    common: Common, number: int, *parts: ReadRows, is_filed: bool = False
) -> Partition | FiledPartition:
    """Bring the rows of one or more partitions into the order of solving.

    is_filed: whether they go into a file.
    """
    stretches = [_margins_of(rows, common) for rows in parts]
    data = stretches[0] if len(stretches) == 1 else joined(stretches)
    kind = FiledPartition if is_filed else Partition
    return kind(OrderedRows(data, common.dtype), number)


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
    parts = [data.features.data for data in stretches]
    is_sparse = any(map(sp.issparse, parts))
    rows = sp.vstack(parts, format="csr") if is_sparse else np.concatenate(parts)
    return replace(
        stretches[0],
        features=FeatureMatrix(rows),
        labels=LabelMatrix.stacked([data.labels for data in stretches]),
        upper=np.concatenate([data.upper for data in stretches]),
    )


@dataclass(frozen=True)
class FittedBlock(Sized):
    """A block at its end: weights (k, d) and intercepts (k,) of its labels, objectives and rounds."""

    weights: Array
    intercepts: Array
    primal: float
    dual: float
    rounds: int


def fitted(partition: Partition, block: int, labels: Array, common: Common) -> FittedBlock:
    """Fit a block where all rows are together, which is the ordinary algorithm."""
    with Workers().running():
        if common.covariance is not None:
            return _fitted_together(partition.rows, labels, common)
        problem = RowsBlock(partition.rows, labels)
        solver = DualCoordinateAscent(common.tol, common.max_iter)
        state = replace(solver.start(problem), generators=[common.stream(block)])
        result, state = solver.solve(problem, state)
        primal, dual = problem.certify(state.point, 0)
    weights, intercepts = problem.certified[0]
    return FittedBlock(
        _of_labels(weights[None], labels), intercepts[: len(labels)], primal, dual, result.n_iter
    )


def _fitted_together(rows: OrderedRows, labels: Array, common: Common) -> FittedBlock:
    """Fit labels that a covariance couples as the ordinary estimator does, by the solver that suits them."""
    assert common.settings is not None, "coupled labels have them"
    kernel = make_kernel("linear", "scale", 3, 1.0)
    data = rows.data.rows(np.argsort(rows.order))
    source = KernelSource(kernel, data.features)
    fit = MarginTask(data, source, data.features, common.settings, Journal()).solve()
    assert fit.weights is not None, "linear features have weights"
    constants = fit.intercepts - (0 if data.mean is None else data.mean.intercepts)
    last = fit.result.trace[-1]
    return FittedBlock(fit.weights[labels], constants[labels], last.primal, last.dual, fit.result.n_iter)


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
    partition: Partition, visit: Visit, block: int, labels: Array, common: Common, traveller: Any, seat: Any
) -> tuple[Traveller, Seat]:
    """Let a block of labels visit a partition.

    traveller, seat: those of the visits before, which may come as their pairs; None of a block that begins.
    Returns both after the visit.
    """
    rows = partition.block(labels)
    if isinstance(traveller, tuple):
        traveller = traveller[0]
    traveller = rows.first_traveller() if traveller is None else traveller
    seat = rows.first_seat() if seat is None else seat
    piece = Piece(visit.piece, visit.n_pieces, common.stream(block, 1 + partition.number, visit.round))
    return rows.visit(traveller, seat, piece, is_full=visit.is_full)


def round_ended(last: tuple[Traveller, Seat], labels: Array, common: Common, *, was_full: bool) -> Traveller:
    """Do what is due when a block has visited all rows."""
    with Workers().running():
        return end_of_round(
            last[0], was_full=was_full, intercept=common.intercept, covariance=common.of_block(labels)
        )


def met_gap(traveller: Traveller) -> float:
    """Give the gap that a block met in its last full round."""
    return traveller.met_gap


def sums_in_use(partition: Partition, labels: Array, traveller: Traveller, seat: Seat) -> Array:
    """Sum losses and products over a partition, at the weights in use: (3, slabs, WIDTH)."""
    return partition.block(labels).sums_in_use(traveller, seat)


def values_in_use(traveller: Traveller, labels: Array, common: Common, *sums: Array) -> tuple[float, float]:
    """Put primal and dual value of a block together."""
    return _values(traveller, labels, common, in_tree_order(sums), traveller.moves.totals)


def _values(
    traveller: Traveller, labels: Array, common: Common, sums: Array, totals: Array
) -> tuple[float, float]:
    with Workers().running():
        covariance, intercept = common.of_block(labels), common.intercept
        return block_objectives(traveller, sums, totals, intercept=intercept, covariance=covariance)


def exact_product(partition: Partition, labels: Array, seat: Seat) -> Array:
    """Compute a partition's share of X^T B, in float64: (slabs, d, WIDTH)."""
    return partition.block(labels).exact_product(seat)


def exact_weights(product: Array, labels: Array, common: Common) -> Array:
    """Give the weights that follow X^T B, in float64."""
    with Workers().running():
        return spread_by(common.of_block(labels), product)


def exact_sums(partition: Partition, labels: Array, weights: Array, constants: Array, seat: Seat) -> Array:
    """Sum losses, products and variables over a partition in double precision: (4, slabs, WIDTH)."""
    found = partition.block(labels).exact_sums(seat, weights, constants)
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
