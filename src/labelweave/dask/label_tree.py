"""The label-tree classifier on Dask's collections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from threading import Lock
from typing import Any, ClassVar, Literal

import numpy as np
from distributed import Client, Future
from sklearn.base import clone

from labelweave.dask.classifier import PartitionedClassifier
from labelweave.dask.data import ReadData, megabytes_of_workers
from labelweave.dask.parts import joined_rows
from labelweave.dask.rows import ReadRows, Sized, size_in_bytes
from labelweave.dask.tasks import never_stops
from labelweave.dask.waiting import gathered
from labelweave.estimators import LabelTreeClassifier as LocalLabelTreeClassifier
from labelweave.estimators.journal import Journal
from labelweave.estimators.label_tree.fit import (
    LabelVectors,
    TreeRows,
    TreeSettings,
    make_trees,
    tree_problem,
    warn_of_size,
)
from labelweave.estimators.parameters import ClassWeight, FlipRatesLike, RandomState, keep_parameters
from labelweave.estimators.progress import FitArguments, fit_method
from labelweave.foundation.arrays import Workers
from labelweave.labels import Taxonomy
from labelweave.labels.label_tree import LabelTree
from labelweave.problems.margin_blocks import KeptBlock
from labelweave.problems.tree_blocks import ForestBlocks, TreeOutline

_RUN = 4  # neighbouring blocks, often of one node, a task


class LabelTreeClassifier(PartitionedClassifier):
    """:class:`labelweave.LabelTreeClassifier` on Dask's collections, with the same certificate and bits.

    Each worker gets all rows, and workers share the nodes of the trees: some blocks of neighbouring columns
    are a task, the ordinary algorithm bit by bit.  The trees are made by one worker.  The client holds the
    model and no rows.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        The cluster; None is the client made last.
    C : float, default=1.0
        Weight of the losses.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        The loss of an entry.
    tree : Taxonomy, array-like of shape (L, k), DataFrame by label or None, default=None
        The tree, or vectors of labels that are clustered; None for sums of the features of positive rows.
    branching : int, default=128
        The most children of a node.
    leaf_size : int, default=100
        The most labels of a leaf.
    n_trees : int or None, default=None
        Trees from different starts.
    beam : int or None, default=None
        How many nodes of each level ``predict_top`` looks into.
    negatives : {"reached", "all"}, default="reached"
        Rows that labels learn from.
    prune : {"off", "certified", "small"} or float, default="small"
        Which weights are left out.
    fit_intercept : bool, default=True
        Whether columns have intercepts.
    class_weight : {"balanced"}, dict or None, default=None
        Weights of classes, where a row has one.
    flip_rates : FlipRates, (missed, false), "propensity" or None, default=None
        How often labels are recorded wrongly.
    checkpoint : path-like or None, default=None
        A file on the client, written at most every 30 seconds during a fit, and removed after it.
    tol : float, default=0.1
        The relative duality gap to reach.
    max_iter : int, default=1000
        The largest number of sweeps of a block.
    n_jobs : int or None, default=None
        Threads of the client; those of workers are theirs.
    random_state : int, RandomState instance or None, default=0
        Fixes trees and sweeps.
    verbose : bool or int, default=0
        Whether to write to stderr how far a fit is.

    Attributes
    ----------
    label_trees_ : tuple of LabelTree
        The trees.  This and all other fitted attributes are those of the ordinary estimator.
    duality_gap_ : float
        The relative duality gap over all nodes and rows.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from labelweave.dask import LabelTreeClassifier
    >>> from labelweave.datasets import make_text_like
    >>> data = make_text_like(120, 200, 8, random_state=0)
    >>> X, Y = (da.from_array(table.toarray(), chunks=(40, -1)) for table in (data.X, data.Y.positives))
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     model = LabelTreeClassifier(client, leaf_size=2, branching=2).fit(X, Y)
    ...     labels, scores = model.predict_top(X, k=3)
    ...     best = labels.compute()
    >>> best.shape
    (120, 3)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LocalLabelTreeClassifier._parameter_constraints,
        "client": [Client, None],
    }
    _ordinary = LocalLabelTreeClassifier
    _one_machine: ClassVar[dict[str, tuple[Any, ...]]] = {}

    def __init__(
        self, client: Client | None = None, C: float = 1.0, *,
        loss: Literal["squared_hinge", "hinge"] = "squared_hinge",
        tree: Taxonomy | LabelVectors | None = None, branching: int = 128, leaf_size: int = 100,
        n_trees: int | None = None, beam: int | None = None,
        negatives: Literal["reached", "all"] = "reached",
        prune: Literal["off", "certified", "small"] | float = "small", fit_intercept: bool = True,
        class_weight: ClassWeight = None, flip_rates: FlipRatesLike = None,
        checkpoint: str | PathLike[str] | None = None, tol: float = 0.1, max_iter: int = 1000,
        n_jobs: int | None = None, random_state: RandomState = 0, verbose: int = 0,
    ) -> None:  # fmt: skip
        keep_parameters(self, locals())

    def _fit_local(
        self, local: LocalLabelTreeClassifier, client: Client, data: ReadData, *, is_part: bool, start: Any
    ) -> None:
        limit = min(megabytes_of_workers(client), default=np.inf)
        if data.megabytes > limit:
            raise ValueError(
                f"Label trees need all rows on each worker, where they take {data.megabytes:.0f} MB, but its "
                f"memory is limited to {limit:.0f} MB; give workers more, or fewer rows."
            )
        local._form, local.classes_ = data.form, data.form.classes
        held = client.submit(HeldRows.of, clone(local), data.rows, pure=False)
        n_labels = len(data.counts.positives)
        _fit_rows(local, RowsApart(client, held, [facts.mark for facts in data.facts], n_labels))


@fit_method
def _fit_rows(local: LocalLabelTreeClassifier, rows: RowsApart) -> LocalLabelTreeClassifier:
    """Fit the ordinary estimator to rows elsewhere."""
    local._learn(rows, FitArguments(None, None, None))
    return local


@dataclass(frozen=True)
class Request(Sized):
    """What a fit was asked for: the trees, where they were made, and how nodes are fitted."""

    settings: TreeSettings
    trees: list[LabelTree]


class HeldRows(Sized):
    """All rows, as a worker has them, and the problem of the nodes once it was asked for."""

    def __init__(self, rows: TreeRows) -> None:
        self.rows, self._lock = rows, Lock()
        self._forest: tuple[Request, ForestBlocks] | None = None

    @classmethod
    def of(cls, reader: LocalLabelTreeClassifier, parts: Sequence[ReadRows]) -> HeldRows:
        """Put the rows of all partitions below one another."""
        rows = joined_rows(parts)
        return cls(reader._rows(rows.features, rows.targets, rows.weights, rows.entries))

    def forest(self, request: Request) -> ForestBlocks:
        """State the problem of all nodes, once in a process."""
        with self._lock:
            if self._forest is None or self._forest[0] is not request:
                self._forest = request, tree_problem(request.trees, self.rows, request.settings)
            return self._forest[1]

    def __sizeof__(self) -> int:
        return size_in_bytes(vars(self.rows))

    def __getstate__(self) -> dict[str, Any]:
        return {"rows": self.rows, "_forest": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._lock = Lock()


def _requested(held: HeldRows, given: Any, names: list[str], settings: TreeSettings) -> Request:
    with Workers().running():
        return Request(settings, make_trees(given, held.rows, names, settings))


def _outlines(held: HeldRows, request: Request) -> tuple[list[TreeOutline], float]:
    with Workers().running():
        forest = held.forest(request)
        return [part.outline() for part in forest.parts], forest.possible_weights()


def _blocks(
    held: HeldRows, request: Request, of_block: Callable[[Any, int], Any], numbers: Sequence[int]
) -> list[KeptBlock]:
    with Workers().running():
        forest = held.forest(request)
        return [of_block(forest, number) for number in numbers]


class RowsApart:
    """Rows on the cluster, as :class:`~labelweave.estimators.label_tree.fit.TreeRows` has them in memory."""

    def __init__(self, client: Client, held: Future, marks: list[str], n_labels: int) -> None:
        self.client, self.held, self.n_labels = client, held, n_labels
        self.marks = {"X": marks, "y": [], "weights": []}

    def problem(self, given: Any, names: list[str], settings: TreeSettings) -> ForestApart:
        """Make the trees on a worker; give what is known of their nodes here."""
        plain = replace(settings, workers=Workers(), journal=Journal(), on_check=never_stops)
        request = self.client.submit(_requested, self.held, given, names, plain, pure=False)
        ((parts, possible),) = gathered(
            self.client, [self.client.submit(_outlines, self.held, request, pure=False)]
        )
        warn_of_size(self.n_labels, len(parts), possible)
        return ForestApart(parts, self, request)


class ForestApart(ForestBlocks):
    """The nodes of trees whose rows are elsewhere."""

    def __init__(self, parts: Sequence[TreeOutline], rows: RowsApart, request: Future) -> None:
        super().__init__(parts)
        self._rows, self._request = rows, request

    def each_block(self, of_block: Callable[[Any, int], Any], blocks: Iterable[int]) -> list[Any]:
        numbers, client = list(blocks), self._rows.client
        runs = [numbers[start : start + _RUN] for start in range(0, len(numbers), _RUN)]
        futures = [
            client.submit(_blocks, self._rows.held, self._request, of_block, run, pure=False) for run in runs
        ]
        return [block for found in gathered(client, futures) for block in found]
