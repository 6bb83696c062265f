"""What workers do: pure functions of partitions and states, which Dask may call again for what was lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from dask.sizeof import sizeof
from sklearn.base import clone
from sklearn.utils import column_or_1d

from labelweave.array_types import Array
from labelweave.estimators.class_weights import counts_by_class, entries_by_sign, weighted_by_factors
from labelweave.estimators.journal import data_fingerprint
from labelweave.estimators.seen_rows import SeenRows
from labelweave.estimators.targets import (
    TargetForm,
    check_lengths,
    has_many_labels,
    label_form,
    weights_of_entries,
)
from labelweave.features import FeatureMatrix
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.labels.class_probabilities import is_missing
from labelweave.problems import MarginData
from labelweave.problems.independent_margins import label_objectives
from labelweave.problems.margin_dual import OrderedRows
from labelweave.problems.travelling_margins import (
    Piece,
    RowsBlock,
    Seat,
    Traveller,
    TravellingBlock,
    end_of_round,
    first_seat,
    first_traveller,
    in_tree_order,
)
from labelweave.solvers import DualCoordinateAscent
from labelweave.solvers.frame import State


class Sized:
    """Base of what workers keep: tells Dask how large it is, for where tasks go and what spills."""

    def __sizeof__(self) -> int:
        return _bytes(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: aligned(part) for name, part in state.items()})


def aligned(value: Any) -> Any:
    """Copy arrays that a message has brought to odd addresses: NumPy multiplies these otherwise.

    Arrays in the attributes of this library's and of SciPy's objects are put in their places.
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy()
    if type(value).__module__.startswith(("labelweave.", "scipy.")) and hasattr(value, "__dict__"):
        inner = vars(value)
        inner.update({name: aligned(part) for name, part in inner.items()})
    return value


def _bytes(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if hasattr(value, "indptr"):
        return int(value.data.nbytes + value.indices.nbytes + value.indptr.nbytes)
    if isinstance(value, list | tuple):
        return sum(map(_bytes, value))
    inner = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return sum(map(_bytes, inner.values()))


sizeof.register(State, _bytes)


@dataclass(frozen=True)
class ReadRows(Sized):
    """A partition as it was read.

    targets: many labels a row, or the class of each, of which there is no form.
    """

    features: FeatureMatrix
    targets: LabelMatrix | Array
    weights: Array
    form: TargetForm | None


@dataclass(frozen=True)
class Facts:
    """What the client knows of a partition.

    form: how many labels a row looked; None for classes.
    classes: those that occur; None for labels.
    largest_weight, largest_norm: of rows; the norm squared.
    entries: stored features; largest: the largest size of one.
    mark: a digest of the data.
    """

    n_rows: int
    n_features: int
    names: Array | None
    form: TargetForm | None
    label_names: Array | None
    classes: Array | None
    largest_weight: float
    largest_norm: float
    entries: int
    largest: float
    mark: str

    @classmethod
    def of(cls, rows: ReadRows | ValueError | None) -> Facts | ValueError | None:
        """Look at a partition; None of one without rows."""
        if not isinstance(rows, ReadRows):
            return rows
        features, targets = rows.features, rows.targets
        labels = targets if isinstance(targets, LabelMatrix) else None
        if labels is not None and labels.doubts is not None:
            return ValueError(
                "y has labels by probability, which models on a cluster do not read yet; give labels of 0 "
                "and 1, or fit the estimator of labelweave without dask."
            )
        classes = None if isinstance(targets, LabelMatrix) else _classes_of(targets)
        y = [labels.positives, labels.observed] if labels is not None else np.asarray(targets).astype(np.str_)
        return cls(
            n_rows=len(features),
            n_features=features.shape[1],
            names=features.names,
            form=rows.form,
            label_names=None if labels is None else labels.names,
            classes=classes,
            largest_weight=float(rows.weights.max()),
            largest_norm=float(features.squared_norms().max(initial=0.0)),
            entries=int(features.data.nnz if features.is_sparse else features.data.size),
            largest=features.largest_entry(),
            mark=data_fingerprint(features.data, y, rows.weights),
        )


def _classes_of(targets: Array) -> Array:
    if targets.dtype.kind == "f":
        return np.unique(targets[~np.isnan(targets)])
    if targets.dtype.kind != "O":
        return np.unique(targets)
    return np.unique(targets[[not is_missing(entry) for entry in targets]])


@dataclass(frozen=True)
class Common:
    """What is the same for all partitions of a fit.

    form: of the targets; classes: all of them, where a row has one.
    factors: weights of classes, see :func:`labelweave.estimators.class_weights.class_factors`.
    upper: 2 C.
    margins (2, L): those asked of positives and negatives.
    roots (L,): of the variances of labels; None if all are 1.
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

    def itself(self) -> Common:
        """Give it, as the task that it comes from where it was lost."""
        return self

    def stream(self, *key: int) -> np.random.Generator:
        """Give the random numbers of a block, or of a block at a stop."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))


class Partition(Sized):
    """Rows with the label blocks that visited, which are made again where they are missing.

    number: of the partition.
    """

    def __init__(self, rows: OrderedRows, number: int) -> None:
        self.rows, self.number = rows, number
        self._blocks: dict[int, TravellingBlock] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_blocks": {}}

    def __sizeof__(self) -> int:
        return _bytes(self.rows)

    def block(self, labels: Array) -> TravellingBlock:
        """Give a block of labels over these rows."""
        key = int(labels[0])
        found = self._blocks.get(key)
        if found is None:
            found = self._blocks[key] = TravellingBlock(self.rows, labels)
        return found

    def forget(self, labels: Array) -> None:
        """Drop a block that has been fitted."""
        self._blocks.pop(int(labels[0]), None)


def read_rows(reader: Any, X: Any, y: Any, weight: Any, number: int) -> ReadRows | ValueError | None:
    """Read a partition as the ordinary estimator does.

    Returns None if it has no rows, and an error that names it where it makes no sense: errors that tasks
    raise are written to the logs of workers, and which partition's comes first is chance.
    """
    if X.shape[0] == 0:
        return None
    reader = clone(reader)
    try:
        features = reader._read_features(X, reset=True)
        names = getattr(reader, "feature_names_in_", None)
        features.names = None if names is None else np.asarray(names, np.str_)
        has_labels = has_many_labels(y)
        targets: Any = LabelMatrix.from_any(y) if has_labels else column_or_1d(y)
        check_lengths(len(features), len(targets))
        weights = np.ones(len(features)) if weight is None else _weights(weight, len(features))
    except ValueError as error:
        return ValueError(f"Partition {number}: {error}")
    form = label_form(y, targets) if has_labels else None
    return ReadRows(features, targets, weights, form)


def _weights(given: Any, n_rows: int) -> Array:
    weights = np.asarray(given, np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}; give one number for each of {n_rows} rows."
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight has an entry that is negative or not finite; give numbers from 0 on.")
    return weights


@dataclass(frozen=True)
class Counts:
    """How often labels occur, (L,) each.

    positives, observed: rows that have each label, and that say anything of it.
    weights: of the rows in which it is positive, and negative.
    """

    positives: Array
    observed: Array
    weights: tuple[Array, Array]

    @classmethod
    def of(cls, rows: ReadRows, form: TargetForm) -> Counts:
        """Count in a partition."""
        labels = labels_of(rows, form)
        weights = counts_by_class(labels, rows.weights)
        return cls(labels.positive_counts(), labels.observed_counts(), weights)

    def __add__(self, other: Counts) -> Counts:
        pairs = zip(self.weights, other.weights, strict=True)
        positive, negative = (first + second for first, second in pairs)
        positives, observed = self.positives + other.positives, self.observed + other.observed
        return Counts(positives, observed, (positive, negative))


def labels_of(rows: ReadRows, form: TargetForm) -> LabelMatrix:
    """Give the labels of a partition, of all classes where a row has one."""
    if isinstance(rows.targets, LabelMatrix):
        return rows.targets
    return SeenRows(rows.features, rows.targets, rows.weights, None, form.classes).targets()[0]


def weights_of(rows: ReadRows) -> Array:
    """Give the weights of the rows of a partition."""
    return rows.weights


def arranged(common: Common, number: int, *parts: ReadRows) -> Partition:
    """Bring the rows of one or more partitions into the order of solving."""
    stretches = [_margins_of(rows, common) for rows in parts]
    data = stretches[0] if len(stretches) == 1 else joined(stretches)
    return Partition(OrderedRows(data, common.dtype), number)


def _margins_of(rows: ReadRows, common: Common) -> MarginData:
    labels, weights, entries = labels_of(rows, common.form), rows.weights, None
    if common.factors is not None:
        weights, factors = weighted_by_factors(common.factors, labels, common.form, weights)
        entries = None if factors is None else entries_by_sign(labels, factors, None)
    upper = weights_of_entries(common.upper * weights, entries)
    return MarginData(
        features=rows.features,
        labels=labels,
        covariance=LabelCovariance.identity(labels.n_labels),
        upper=upper if common.roots is None else np.reshape(upper, (len(labels), -1)) * common.roots,
        margins=common.margins,
        intercept=common.intercept,
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
    problem = RowsBlock(partition.rows, labels)
    solver = DualCoordinateAscent(common.tol, common.max_iter)
    state = replace(solver.start(problem), generators=[common.stream(block)])
    result, state = solver.solve(problem, state)
    primal, dual = problem.certify(state.point, 0)
    weights, intercepts = problem.certified[0]
    return FittedBlock(_of_labels(weights, labels), intercepts[: len(labels)], primal, dual, result.n_iter)


def _of_labels(weights: Array, labels: Array) -> Array:
    return np.ascontiguousarray(weights[:, : len(labels)].T)


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
    if traveller is None:
        traveller = first_traveller(common.n_features, common.dtype)
    if seat is None:
        seat = first_seat(rows.n_rows, common.dtype)
    piece = Piece(visit.piece, visit.n_pieces, common.stream(block, 1 + partition.number, visit.round))
    return rows.visit(traveller, seat, piece, is_full=visit.is_full)


def round_ended(last: tuple[Traveller, Seat], common: Common, *, was_full: bool) -> Traveller:
    """Do what is due when a block has visited all rows."""
    return end_of_round(last[0], was_full=was_full, intercept=common.intercept)


def met_gap(traveller: Traveller) -> float:
    """Give the gap that a block met in its last full round."""
    return traveller.met_gap


def sums_in_use(partition: Partition, labels: Array, traveller: Traveller, seat: Seat) -> Array:
    """Sum losses and products over a partition, at the weights in use: (3, WIDTH)."""
    return partition.block(labels).sums_in_use(traveller, seat)


def values_in_use(traveller: Traveller, common: Common, *sums: Array) -> tuple[float, float]:
    """Put primal and dual value of a block together."""
    constants, totals = traveller.intercepts.astype(np.float64), traveller.moves.totals[0]
    return _values(in_tree_order(sums), constants, totals, common)


def _values(sums: Array, constants: Array, totals: Array, common: Common) -> tuple[float, float]:
    primal, dual = label_objectives(sums, constants, totals, intercept=common.intercept)
    return float(primal.sum()), float(dual.sum())


def exact_product(partition: Partition, labels: Array, seat: Seat) -> Array:
    """Compute a partition's share of the weights that follow the variables, in float64: (d, WIDTH)."""
    return partition.block(labels).exact_product(seat)


def exact_sums(
    partition: Partition, labels: Array, weights: Array, traveller: Traveller, seat: Seat
) -> Array:
    """Sum losses, products and variables over a partition in double precision: (4, WIDTH)."""
    constants = traveller.intercepts.astype(np.float64)
    found = partition.block(labels).exact_sums(seat, weights, constants)
    partition.forget(labels)
    return found


def settled(
    weights: Array, traveller: Traveller, labels: Array, rounds: int, common: Common, *sums: Array
) -> FittedBlock:
    """Put a block together with its certificate."""
    constants = traveller.intercepts.astype(np.float64)
    whole = in_tree_order(sums)
    primal, dual = _values(whole[:3], constants, whole[3], common)
    return FittedBlock(_of_labels(weights, labels), constants[: len(labels)], primal, dual, rounds)
