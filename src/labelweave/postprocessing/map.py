"""Best labelings of clique graphs for batches of examples (MAP inference), each with a bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array, Floats, PerLabel
from labelweave.foundation.arrays import Workers, numbers_of, panels
from labelweave.foundation.loops.map.arrays import (
    BUCKET,
    BUCKET_FACTOR,
    PLACE,
    Buckets,
    CliqueArrays,
    Components,
    Limits,
    MapPlan,
    MapWorkspace,
    allocate_workspace,
)
from labelweave.labels.clique_graph import CliqueGraph
from labelweave.labels.clique_graph.graph import elimination_order
from labelweave.labels.label_tables import shown_name

_METHODS = ("auto", "exact", "message_passing")
_SAME = 1e-9  # of the value: a smaller gap is none
_RUN_WIDTH = 12  # of eliminations in an order that is found at run time
_PANEL_ROWS = 32
_LARGEST_SUM = 1e300


class MapResult(NamedTuple):
    """The best labelings found, with upper bounds on the optimal scores.

    Parameters
    ----------
    labels : ndarray of int8, shape (n, L)
        The labels, 0 or 1.
    values : ndarray of float64, shape (n,)
        Their scores.
    bounds : ndarray of float64, shape (n,)
        No labeling of the row scores more than this.
    """

    labels: npt.NDArray[np.int8]
    values: Floats
    bounds: Floats

    @property
    def gaps(self) -> Floats:
        """Upper bounds on the possible improvement in score, shape (n,)."""
        return np.maximum(0.0, self.bounds - self.values)

    @property
    def proven(self) -> npt.NDArray[np.bool_]:
        """Whether the labels are proven best: a gap of at most 1e-9 of the value; shape (n,)."""
        return np.asarray(self.gaps <= _SAME * np.abs(self.values))


class MapInference:
    """Find the labels that maximize the score of a clique graph.

    The score of labels y is ``sum_k unary[k] y_k`` plus, for each clique, the entry of its table that belongs
    to the values of its labels.

    Parameters
    ----------
    graph : CliqueGraph
        The graph.
    method : {"auto", "exact", "message_passing"}, default="auto"
        "auto" solves components of width up to ``exact_width`` exactly, by elimination.  In wider ones it
        first fixes labels whose value is determined and eliminates parts that become separate; branch and
        bound with message passing solves the rest, within a budget.  "exact" refuses wider components.
        "message_passing" is max-product linear programming alone (Globerson and Jaakkola 2007).
    exact_width : int, default=12
        The largest width of an elimination order that is used throughout; the largest tables have
        2 to the power of one more entries.
    max_nodes : int, default=1000
        Maximum number of nodes of branch and bound for a part of an example.
    max_iter : int, default=100
        Maximum number of sweeps of message passing at a node.

    Raises
    ------
    ValueError
        If a parameter is out of range, or a component is too wide for ``method="exact"``.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.postprocessing.map import MapInference
    >>> from labelweave.labels.clique_graph import CliqueGraph
    >>> graph = CliqueGraph(3, [(0, 1), (1, 2)])
    >>> together = np.tile([0.0, 0.0, 0.0, 2.0], 2)  # 2 where both labels of a pair are on
    >>> MapInference(graph).solve([[1.0, -1.5, -1.5]], together).labels
    array([[1, 1, 1]], dtype=int8)
    """

    @checked
    def __init__(
        self,
        graph: CliqueGraph,
        *,
        method: str = "auto",
        exact_width: int = 12,
        max_nodes: int = 1000,
        max_iter: int = 100,
    ) -> None:
        if method not in _METHODS:
            raise ValueError(f"method is {method!r}; it must be one of {', '.join(map(repr, _METHODS))}.")
        if not 0 <= exact_width <= 20:
            raise ValueError(
                f"exact_width is {exact_width}; it must be between 0 and 20 (tables have 2^(width + 1) "
                f"entries)."
            )
        if max_nodes < 1 or max_iter < 1:
            raise ValueError(f"max_nodes is {max_nodes} and max_iter {max_iter}; both must be at least 1.")
        self.graph = graph
        if method == "message_passing":
            orders = component_orders(graph, -1)
            limits = Limits(nodes=1, sweeps=max_iter, width=0, states=0, dead_ends=0)
        else:
            orders = component_orders(graph, exact_width)
            limits = Limits(max_nodes, max_iter, _RUN_WIDTH, 4 << _RUN_WIDTH, dead_ends=1)
        if method == "exact":
            _refuse_wide(graph, orders, exact_width)
        self.plan: MapPlan = compile_plan(graph, orders, limits)
        self._idle: list[MapWorkspace] = []

    def solve(
        self, unary: Any, tables: Any, clamp: Any | None = None, workers: Workers | None = None
    ) -> MapResult:
        """Find the best labels of every row.

        Parameters
        ----------
        unary : array-like of shape (n, L)
            The score of 1 minus the score of 0, for every label.
        tables : array-like of shape (T,) or (n, T)
            The scores of the states of all cliques, concatenated as in ``graph.table_starts``; one vector for
            all rows, or one per row.
        clamp : array-like of shape (L,) or (n, L), or None, default=None
            0 or 1 for labels that are held at that value, -1 for those that are free.
        workers : Workers or None, default=None
            Running threads that share the rows; the result does not depend on their number.

        Returns
        -------
        MapResult
            Labels, values and bounds.  Any of several equally good labelings may be returned.
        """
        from labelweave.foundation.loops.map.solve import eliminate_rows, solve_rows

        own, shared = _checked_scores(self.graph, unary, tables)
        held = _checked_clamp(self.graph, clamp, len(own))
        result = MapResult(np.zeros(own.shape, np.int8), np.zeros(len(own)), np.zeros(len(own)))

        loop = eliminate_rows if self.plan.components.directly.all() else solve_rows

        def solve(workspace: MapWorkspace, rows: slice) -> None:
            loop(self.plan, workspace, rows.start, rows.stop, own, shared, held, *result)

        self._on_panels(solve, len(own), workers)
        return result

    def max_marginals(
        self, unary: Any, tables: Any, clamp: Any | None = None, workers: Workers | None = None
    ) -> Floats:
        """Return the max-marginals (n, L): the best score with a label minus that without; see :meth:`solve`.

        Positive where the best labeling has a 1, unless another is as good; infinite for a fixed label.
        If the budget of a search is exhausted, they are differences of the best scores found.
        """
        from labelweave.foundation.loops.map.solve import margins_of_rows

        own, shared = _checked_scores(self.graph, unary, tables)
        held = _checked_clamp(self.graph, clamp, len(own))
        margins = np.zeros(own.shape)

        def score(workspace: MapWorkspace, rows: slice) -> None:
            margins_of_rows(self.plan, workspace, rows.start, rows.stop, own, shared, held, margins)
            for row in range(rows.start, rows.stop) if len(_searched_labels(self.plan)) else ():
                tables_row, held_row = shared[min(row, len(shared) - 1)], held[min(row, len(held) - 1)]
                _write_turned_margins(self.plan, workspace, own[row], tables_row, held_row, margins[row])

        self._on_panels(score, len(own), workers)
        return margins

    def _on_panels(
        self, work: Callable[[MapWorkspace, slice], None], n_rows: int, workers: Workers | None
    ) -> None:
        def one(rows: slice) -> None:
            try:
                workspace = self._idle.pop()
            except IndexError:
                workspace = allocate_workspace(self.plan)
            work(workspace, rows)
            self._idle.append(workspace)

        (workers or Workers(1)).each(one, panels(n_rows, _PANEL_ROWS))

    def __repr__(self) -> str:
        return f"MapInference({self.graph!r})"


def _refuse_wide(graph: CliqueGraph, orders: list[ComponentOrder], exact_width: int) -> None:
    for component in orders:
        if component.order is None and len(component.labels) > 1:
            width = next(
                whole.width for whole in component_orders(graph, None) if whole.labels == component.labels
            )
            raise ValueError(
                f"The graph has a component of {len(component.labels)} labels and width {width}, above "
                f"exact_width={exact_width}; raise exact_width (up to 20), leave out cliques, or use "
                '"auto" in place of "exact", which says for every example whether its labels are proven best.'
            )


def _checked_scores(graph: CliqueGraph, unary: Any, tables: Any) -> tuple[Floats, Floats]:
    """Check the scores of labels (n, L), and of all states of all cliques: (1, T) or (n, T)."""
    if not (type(unary) is type(tables) is np.ndarray and unary.dtype == tables.dtype == np.float64):
        unary, tables = _numbers(unary, "unary"), _numbers(tables, "tables")
    own, n_entries = np.ascontiguousarray(unary, np.float64), int(graph.table_starts[-1])
    if own.ndim != 2 or own.shape[1] != graph.n_labels:
        raise ValueError(
            f"unary has shape {own.shape}; it must be (rows, {graph.n_labels}), a column per label."
        )
    shared = np.ascontiguousarray(tables, np.float64)
    if shared.shape not in ((n_entries,), (len(own), n_entries)):
        raise ValueError(
            f"tables has shape {shared.shape}; the cliques have {n_entries} states together, so it must be "
            f"({n_entries},), or ({len(own)}, {n_entries}) with a row for each example."
        )
    shared = shared if shared.ndim == 2 else shared[None]
    largest = _LARGEST_SUM / max(1, own.shape[1] + n_entries)
    _refuse_large(own, "unary", largest, graph)
    _refuse_large(shared, "tables", largest, None)
    return own, shared


def _numbers(scores: Any, name: str) -> Any:
    if sp.issparse(scores):
        raise ValueError(f"{name} is a sparse matrix; pass an array, as {name}.toarray() does.")
    return numbers_of(scores, name)


def _refuse_large(scores: Floats, name: str, largest: float, graph: CliqueGraph | None) -> None:
    fine = (scores <= largest) & (scores >= -largest)
    if not fine.all():
        row, column = np.argwhere(~fine)[0]
        place = f"entry {column}" if graph is None else f"label {shown_name(graph.label_names, column)}"
        raise ValueError(
            f"{name} at row {row}, {place} is {scores[row, column]}; scores are finite, and at most "
            f"{largest:.1e} here, so that sums are; scale features, costs or scores, or use clamp to "
            "forbid or force a label."
        )


def _checked_clamp(graph: CliqueGraph, clamp: Any | None, n_rows: int) -> npt.NDArray[np.int8]:
    """Check the fixed labels; return (1, L) or (n, L), with -1 where a label is free."""
    if clamp is None:
        return np.full((1, graph.n_labels), -1, np.int8)
    held = np.atleast_2d(np.asarray(clamp))
    if held.shape not in ((1, graph.n_labels), (n_rows, graph.n_labels)):
        raise ValueError(
            f"clamp has shape {np.shape(clamp)}; it must be ({graph.n_labels},), or ({n_rows}, "
            f"{graph.n_labels}) with a row for each example."
        )
    bad = ~np.isin(held, (-1, 0, 1))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"clamp at row {row}, label {shown_name(graph.label_names, column)} is {held[row, column]}; it "
            "is 0 or 1 for a label that is held and -1 for one that is free."
        )
    return np.ascontiguousarray(held, np.int8)


def _searched_labels(plan: MapPlan) -> npt.NDArray[np.int64]:
    is_searched = np.diff(plan.components.bucket_starts) == 0
    return np.compress(np.repeat(is_searched, np.diff(plan.components.starts)), plan.components.labels)


def _write_turned_margins(
    plan: MapPlan, workspace: MapWorkspace, unary: PerLabel, tables: Array, clamp: PerLabel, margins: PerLabel
) -> None:
    """Write the max-marginals of one example's free labels that have no order: each is turned."""
    from labelweave.foundation.loops.map.solve import solve_rows

    labels = _searched_labels(plan)
    labels = labels[clamp[labels] < 0]
    # the first row is the example itself
    held = np.repeat(clamp[None], len(labels) + 1, axis=0)
    own = np.repeat(unary[None], len(held), axis=0)
    found, values, bounds = np.zeros(own.shape, np.int8), np.zeros(len(own)), np.zeros(len(own))
    solve_rows(plan, workspace, 0, 1, own, tables[None], held, found, values, bounds)
    best = found[0, labels]
    held[np.arange(1, len(held)), labels] = 1 - best
    solve_rows(plan, workspace, 1, len(own), own, tables[None], held, found, values, bounds)
    margins[labels] = np.where(best, 1.0, -1.0) * np.maximum(0.0, values[0] - values[1:])


# Table entries of an elimination for each label and each of its cliques, above which it pays to look for dead
# ends first (measured).
_LITTLE_WORK = 100
_SECONDS_A_STATE, _SECONDS_A_CLIQUE = 7.5e-8, 6.5e-7  # of an elimination's tables; of a node


class ComponentOrder(NamedTuple):
    """A connected component and the order in which to eliminate its labels, if it has one.

    order: each label with the labels that are its neighbors by then.
    """

    labels: tuple[int, ...]
    order: list[tuple[int, list[int]]] | None

    @property
    def width(self) -> int:
        return max((len(around) for _, around in self.order or ()), default=0)


def component_orders(graph: CliqueGraph, width: int | None) -> list[ComponentOrder]:
    """Find min-fill orders of all components; those wider than ``width`` get none, None is no limit."""
    neighbors = graph.neighbors()
    found = []
    for labels in graph.components:
        place = {label: number for number, label in enumerate(labels)}
        around = [{place[other] for other in neighbors[label]} for label in labels]
        order = elimination_order(around, width) if len(labels) > 1 else None
        named = order and [(labels[one], [labels[other] for other in others]) for one, others in order]
        found.append(ComponentOrder(labels, named))
    return found


def expected_seconds(graph: CliqueGraph, orders: list[ComponentOrder], max_nodes: int) -> float:
    """Estimate how long a row takes: measured on complete graphs of 9 to 60 labels.

    An elimination takes time by its tables.  Branch and bound without an order needs more nodes the more
    labels there are, up to its budget, and at each some sweeps over all cliques.
    """
    homes = {label: number for number, part in enumerate(orders) for label in part.labels}
    cliques = np.bincount([homes[clique[0]] for clique in graph.cliques], minlength=len(orders))
    total = 0.0
    for part, n_cliques in zip(orders, cliques, strict=True):
        if part.order is None:
            total += _SECONDS_A_CLIQUE * n_cliques * min(max_nodes, 2.0 ** (len(part.labels) / 3))
        else:
            total += _SECONDS_A_STATE * sum(2.0 ** (len(around) + 1) for _, around in part.order)
    return total


def compile_plan(graph: CliqueGraph, orders: list[ComponentOrder], limits: Limits) -> MapPlan:
    """Lay a graph out for the compiled loops; ``limits`` are for components without an order."""
    buckets = BucketBuilder(graph)
    bucket_starts, directly = [0], []
    joined = [component for component in orders if len(component.labels) > 1]
    for component in joined:
        work, size = buckets.add(component.order or [])
        bucket_starts.append(len(buckets.rows))
        directly.append(0 < work <= _LITTLE_WORK * size)
    components = Components(
        starts=_ends([len(component.labels) for component in joined]),
        labels=_integers([label for component in joined for label in component.labels]),
        bucket_starts=_integers(bucket_starts),
        directly=_integers(directly),
    )
    return MapPlan(_clique_arrays(graph), components, buckets.arrays(), limits)


def _integers(values: Any) -> npt.NDArray[np.int64]:
    return np.ascontiguousarray(values, np.int64)


def _ends(sizes: list[int]) -> npt.NDArray[np.int64]:
    return _integers(np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]))


def _clique_arrays(graph: CliqueGraph) -> CliqueArrays:
    labels = _integers([label for clique in graph.cliques for label in clique])
    cliques = np.repeat(np.arange(graph.n_cliques), [len(clique) for clique in graph.cliques])
    starts = _ends([len(clique) for clique in graph.cliques])
    order = np.argsort(labels, kind="stable")
    return CliqueArrays(
        starts=starts,
        labels=labels,
        table_starts=_integers(graph.table_starts),
        label_starts=_ends(np.bincount(labels, minlength=graph.n_labels).tolist()),
        places=_records(
            zip(cliques[order], (np.arange(len(labels)) - starts[cliques])[order], strict=True), PLACE
        ),
    )


class BucketBuilder:
    """Collects the buckets of one component after another."""

    def __init__(self, graph: CliqueGraph) -> None:
        self.graph = graph
        self.rows: list[dict[str, int]] = []
        self.separators: list[int] = []
        self.factors: list[tuple[int, ...]] = []
        self.maps: list[npt.NDArray[np.uint32]] = []
        self._map_end = self._beliefs = self._messages = 0
        self._cliques_of: list[list[int]] = [[] for _ in range(graph.n_labels)]
        for clique, labels in enumerate(graph.cliques):
            self._cliques_of[labels[0]].append(clique)

    def add(self, order: list[tuple[int, list[int]]]) -> tuple[int, int]:
        """Append the buckets of a component.

        order: its labels in the order of elimination, each with the labels that are its neighbors by then.
        work: the table entries that elimination reads.
        size: the number of labels and of their places in cliques.
        """
        before, first = self._map_end, len(self.rows)
        position = {label: step for step, (label, _) in enumerate(order)}
        owned = self._owned(position)
        waiting: list[list[int]] = [[] for _ in order]
        for step, (label, around) in enumerate(order):
            separator = sorted(around, key=position.__getitem__)
            self._append(label, separator, owned[step], waiting[step])
            if separator:
                waiting[position[separator[0]]].append(first + step)
        size = len(order) + sum(len(self.graph.cliques[clique]) for some in owned for clique in some)
        return self._map_end - before, size

    def _owned(self, position: dict[int, int]) -> list[list[int]]:
        owned: list[list[int]] = [[] for _ in position]
        for label in position:
            for clique in self._cliques_of[label]:
                owned[min(position[other] for other in self.graph.cliques[clique])].append(clique)
        return owned

    def _append(self, label: int, separator: list[int], cliques: list[int], children: list[int]) -> None:
        start, factors = len(self.separators), len(self.factors)
        end = factors + len(cliques) + len(children)
        values = label, len(separator), self._beliefs, self._messages, factors, end, start, -1
        self.rows.append(dict(zip(BUCKET.names or (), values, strict=True)))
        self.separators += separator
        self._beliefs += 2 << len(separator)
        self._messages += 1 << len(separator)
        scope = [label, *separator]
        for clique in cliques:
            start = int(self.graph.table_starts[clique])
            self._add_factor(scope, self.graph.cliques[clique], start, is_message=False)
        for child in children:
            row = self.rows[child]
            row["parent_factor"] = len(self.factors)
            members = self.separators[row["separator"] :][: row["width"]]
            self._add_factor(scope, members, row["message"], is_message=True)

    def _add_factor(self, scope: list[int], members: Sequence[int], source: int, is_message: bool) -> None:
        """Map each state of a bucket to that of some of its labels."""
        self.factors.append((source, int(is_message), self._map_end, len(self.rows) - 1))
        states = np.arange(1 << len(scope), dtype=np.uint32)
        index = np.zeros_like(states)
        for bit, member in enumerate(members):
            index |= ((states >> np.uint32(scope.index(member))) & np.uint32(1)) << np.uint32(bit)
        self.maps.append(index)
        self._map_end += len(index)

    def arrays(self) -> Buckets:
        return Buckets(
            rows=_records((row.values() for row in self.rows), BUCKET),
            separators=np.array(self.separators, np.int64),
            factors=_records(self.factors, BUCKET_FACTOR),
            maps=np.concatenate([*self.maps, np.zeros(0, np.uint32)]),
        )


def _records(values: Iterable[Iterable[int]], kind: np.dtype[np.void]) -> npt.NDArray[np.void]:
    return np.array([tuple(value) for value in values], kind)
