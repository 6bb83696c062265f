"""The structured margin of rows in partitions: rows stay, weights of labels and cliques visit them.

In a pass the weights visit the partitions in turn, several times per round if there is more than one;
each visit is a pass of block-coordinate Frank-Wolfe over some of its rows, exact at the weights after all
previous visits: the same ascent as in memory, with the rows in another order.  With one partition
it is the ordinary pass, bit by bit.  Objectives, moments of the distributions, and completed labels are
sums over partitions, computed in pairs, or parts of a table.

If inference is slow, all partitions search for the worst labelings of their rows at once, at the weights
at the start of a pass; the steps toward them, one after the other, remain exact.

The client has the dual point: tasks receive and return the parts of their rows, so that
a fit loses nothing with a worker, and its states are the ordinary ones.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from distributed import Future

from labelweave.dask.features import PartitionedFeatures
from labelweave.dask.graphs import order_of_round
from labelweave.dask.parts import Kept
from labelweave.dask.rows import Held, ReadRows, Sized
from labelweave.dask.waiting import scattered
from labelweave.estimators.label_graph.choice import seconds_a_row
from labelweave.estimators.label_graph.fit import GraphData
from labelweave.foundation.array_types import Array, Floats, RowsByLabels
from labelweave.foundation.arrays import Workers
from labelweave.foundation.loops.structured import MarginRows
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.problems.structured_margin import CliquePenalty, StructuredMargin, StructuredRows
from labelweave.problems.structured_margin.margin_model import WorstLabelings
from labelweave.problems.structured_margin.structured_margin import DualMarginPoint
from labelweave.problems.traveling_margins import in_tree_order

_SEEDS = 2**31 - 1
_SLOW = 1e-4  # seconds for the best labeling of a row, compared with about 1e-5 for its steps
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Question(Sized):
    """The problem for all rows: a graph with the penalty of its weights, and the inference."""

    graph: CliqueGraph
    penalty: CliquePenalty
    alpha: float
    inference: dict[str, Any]


class PointRows(NamedTuple):
    """The part of a dual point for some rows, see ``DualMarginPoint``."""

    targets: RowsByLabels
    means: RowsByLabels
    vertices: Array
    shares: Floats
    gaps: Array

    @classmethod
    def of(cls, point: DualMarginPoint, rows: slice) -> PointRows:
        """Extract the part from a point of all rows."""
        return cls(*(getattr(point, name)[rows] for name in cls._fields))

    def put_back(self, point: DualMarginPoint, rows: slice) -> None:
        """Write the part into a point of all rows."""
        for name, part in zip(self._fields, self, strict=True):
            getattr(point, name)[rows] = part


class PassState(NamedTuple):
    """The state that travels from visit to visit.

    sums (d, L + states), round_shares: see ``DualMarginPoint``.
    stream: the position of the random stream.
    met_gap: the gaps of rows at their visits.
    """

    sums: Floats
    round_shares: Floats
    stream: dict[str, Any]
    met_gap: float = 0.0


class PieceOfRows(NamedTuple):
    """Which piece of the rows is visited; the seed draws the pieces."""

    piece: int
    n_pieces: int
    seed: int

    def rows(self, n_rows: int) -> Array | None:
        """Return the numbers of the rows; None for all."""
        if self.n_pieces == 1:
            return None
        order = np.random.RandomState(self.seed).permutation(n_rows)
        return np.array_split(order, self.n_pieces)[self.piece]


class WorkerMargin(StructuredMargin):
    """The problem of the rows of a partition.

    found: the worst labelings of all rows, if they were found before, otherwise None.
    """

    found: WorstLabelings | None = None

    def worst_labelings(self, point: Any, rows: Array, products: Array) -> WorstLabelings:
        """Return stored labelings, or find them; see :meth:`StructuredMargin.worst_labelings`."""
        if self.found is None:
            return super().worst_labelings(point, rows, products)
        return WorstLabelings._make(part[rows] for part in self.found)

    def knowing(self, found: WorstLabelings | None) -> WorkerMargin:
        """Return the same problem with worst labelings that were found."""
        made = copy(self)
        made.found = found
        return made


class HeldMargin(Held):
    """The rows of a partition on a worker, with their structured margin problem."""

    @classmethod
    def of(cls, rows: ReadRows, constant: float, arrays: MarginRows, loss: str) -> HeldMargin:
        """Make it of what was read, and what the passes read in addition to the features."""
        features = rows.features.astype(np.float64)
        features = features.with_constant(constant) if constant else features
        return cls(StructuredRows.part(features, MarginRows(*map(np.array, arrays)), loss))

    def stated(self, asked: Question) -> WorkerMargin:
        given = asked.graph, asked.penalty, asked.alpha, asked.inference
        return WorkerMargin(self.rows, *given, Workers())


def _point(problem: StructuredMargin, state: PointRows, sums: Any, round_shares: Any) -> DualMarginPoint:
    """Make a copy of a point to work on: tasks do not change their arguments."""
    arrays = {name: np.array(part) for name, part in state._asdict().items()}
    shares = np.array(round_shares)
    return problem.point_at(np.array(sums), shares, **arrays)


def _searched(held: HeldMargin, asked: Question, state: PointRows, begin: PassState) -> WorstLabelings:
    with Workers().running():
        problem = held.problem(asked)
        point = _point(problem, state, begin.sums, begin.round_shares)
        rows = np.arange(problem.n_rows)
        parts = [
            problem.worst_labelings(point, some, held.rows.multiply(some, point.sums))
            for some in np.array_split(rows, -(-len(rows) // _ROWS_AT_ONCE))
        ]
        return WorstLabelings._make(map(np.concatenate, zip(*parts, strict=True)))


def _visited(
    held: HeldMargin, asked: Question, state: PointRows | tuple[PointRows, PassState], shared: PassState,
    found: WorstLabelings | None, piece: PieceOfRows, most_sweeps: int,
) -> tuple[PointRows, PassState]:  # fmt: skip
    """Visit some rows; their state may come with the shared one after the previous visit."""
    state = state if isinstance(state, PointRows) else state[0]
    with Workers().running():
        problem, random = held.problem(asked).knowing(found), np.random.RandomState(0)
        random.set_state(shared.stream)
        point = _point(problem, state, shared.sums, shared.round_shares)
        met = problem.passed(point, random, most_sweeps, piece.rows(problem.n_rows))
        stream = random.get_state(legacy=False)
        moved = PassState(point.sums, point.round_shares, stream, shared.met_gap + met)
        return PointRows.of(point, slice(None)), moved


def _of_point(
    held: HeldMargin, asked: Question, state: PointRows, weights: tuple[Any, Any], of_point: Any, *given: Any
) -> Array:
    """Call a function of a partition's problem and its point."""
    with Workers().running():
        problem = held.problem(asked)
        return np.asarray(of_point(problem, _point(problem, state, *weights), *given))


def _recomputed(problem: StructuredMargin, point: DualMarginPoint) -> Array:
    problem.recompute(point)
    return point.sums


def _moment_sums(problem: StructuredMargin, point: DualMarginPoint, name: str, given: Any) -> Array:
    return np.asarray(getattr(problem.moments(point), name)(*given))


class PartitionedMarginData(StructuredRows):
    """The client's summary of rows on the cluster, and the data that workers hold of them."""

    def __init__(
        self, features: PartitionedFeatures, labels: Any, weights: Array, costs: RowsByLabels, loss: str
    ) -> None:
        super().__init__(features, labels, weights, costs, loss)
        self.parts, self.visits, self._constant = features.parts, features.visits, features.constant
        self.held = Kept(self._make_held)

    def _make_held(self) -> list[Future]:
        client = self.parts.client
        sent = scattered(client, [self.arrays_of(rows) for rows in self.parts.slices])
        pairs = zip(self.parts.futures, sent, strict=True)
        return [
            client.submit(HeldMargin.of, part, self._constant, own, self.loss, pure=False)
            for part, own in pairs
        ]


class PartitionedMargin(StructuredMargin):
    """The problem whose dual point is improved by passes over rows on the cluster."""

    data: PartitionedMarginData

    def __post_init__(self) -> None:
        super().__post_init__()
        asked = Question(self.graph, self.penalty, self.alpha, self.inference)
        self._asked = Kept.of(self.data.parts.client, [asked])
        self._is_slow = seconds_a_row(self.graph, self.inference)[0] > _SLOW

    def passed(self, point: Any, random: Any, most_sweeps: int) -> float:  # type: ignore[override]
        """Visit all rows with the weights; see the module docstring."""
        counts = self.data.visits if len(self.data.visits) > 1 else [1]
        order, seeds = [0], [0]
        if len(counts) > 1:
            order = order_of_round(int(random.randint(_SEEDS)), 0, 0, counts)
            seeds = random.randint(_SEEDS, size=len(counts)).tolist()
        begin = PassState(point.sums, point.round_shares, random.get_state(legacy=False))
        sent = self._sent(point, begin)
        *states, end = self.data.parts.done(lambda: self._passing(sent, order, seeds, most_sweeps))
        for state, rows in zip(states, self.data.parts.slices, strict=True):
            state.put_back(point, rows)
        point.sums[:], point.round_shares[:] = end.sums, end.round_shares
        self.rescale(point)
        random.set_state(end.stream)
        return float(end.met_gap)

    def _sent(self, point: DualMarginPoint, weights: Any) -> Kept:
        """Send weights, and each partition's part of a point."""
        states = [PointRows.of(point, rows) for rows in self.data.parts.slices]
        return Kept.of(self.data.parts.client, [weights, *states])

    def _passing(self, sent: Kept, order: list[int], seeds: list[int], most_sweeps: int) -> list[Future]:
        """Start the visits of a pass; return the final states of the rows, and the shared one."""
        submit = partial(self.data.parts.client.submit, pure=False)
        held, (asked,), (shared, *states) = self._at_hand(sent)
        counts, done = np.bincount(order).tolist(), [0] * len(seeds)
        found: list[Any] = [None] * len(seeds)
        if self._is_slow and len(seeds) > 1:
            own = zip(held, states, strict=True)
            found = [submit(_searched, part, asked, state, shared) for part, state in own]
        for at in order:
            piece = PieceOfRows(done[at], counts[at], seeds[at])
            known = held[at], asked, states[at]
            states[at] = submit(_visited, *known, shared, found[at], piece, most_sweeps)
            shared = submit(operator.itemgetter(1), states[at])  # without the state of the rows
            done[at] += 1
        return [*(submit(operator.itemgetter(0), state) for state in states), shared]

    def _at_hand(self, sent: Kept) -> tuple[list[Future], ...]:
        return self.data.held.futures(), self._asked.futures(), sent.futures()

    def each(self, sent: Kept, of_point: Callable[..., Any], *given: Any) -> list[Array]:
        """Call a function of each partition's problem and point; return the results."""

        def send() -> list[Future]:
            held, (asked,), (weights, *states) = self._at_hand(sent)
            submit = partial(self.data.parts.client.submit, _of_point, pure=False)
            pairs = zip(held, states, strict=True)
            return [submit(part, asked, state, weights, of_point, *given) for part, state in pairs]

        return list(self.data.parts.done(send))

    def at(self, point: DualMarginPoint) -> Kept:
        return self._sent(point, (point.sums, point.round_shares))

    def hinge_loss(self, point: Any) -> tuple[float, float]:
        """Sum over partitions; see :meth:`StructuredMargin.hinge_loss`."""
        loss, missed = in_tree_order(self.each(self.at(point), StructuredMargin.hinge_loss)).tolist()
        return loss, missed

    def best_targets(self, point: Any) -> RowsByLabels:
        """Complete labels where the rows are."""
        return np.concatenate(self.each(self.at(point), StructuredMargin.best_targets))

    def recompute(self, point: DualMarginPoint) -> None:
        """Recompute z as a sum over partitions."""
        self._write_means(point)
        point.sums[:] = in_tree_order(self.each(self.at(point), _recomputed))

    def moments(self, point: DualMarginPoint) -> Any:
        """Return an object that sums moments of the current distributions over partitions."""
        return PartitionedMoments(self, point)


class PartitionedMoments:
    """Columns of z, as in ``DualMoments``, summed over partitions."""

    def __init__(self, problem: PartitionedMargin, point: DualMarginPoint) -> None:
        self.data, self._problem, self._sent = problem.data, problem, problem.at(point)

    def _summed(self, name: str, *given: Any) -> Array:
        found: Array = in_tree_order(self._problem.each(self._sent, _moment_sums, name, given))
        return found

    def label_sums(self) -> Array:
        """Compute the columns of the labels (d, L)."""
        return self._summed("label_sums")

    def clique_sums(self, clique: tuple[int, ...]) -> Array:
        """Compute the columns of a clique (d, states)."""
        return self._summed("clique_sums", clique)

    def sign_sums(self, sets: Array) -> Array:
        """Compute the columns (d, K) of the products of the signs of K sets of labels (K, m)."""
        return self._summed("sign_sums", sets)


class PartitionedGraphData(GraphData):
    """Training rows whose features are on the cluster."""

    __slots__ = ()

    def posed(self) -> Callable[..., StructuredMargin]:
        """Return a function that builds the problem of a graph over these rows."""
        return partial(PartitionedMargin, PartitionedMarginData(*self[:5]))  # type: ignore[arg-type]
