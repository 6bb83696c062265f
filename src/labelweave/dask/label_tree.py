"""The label-tree classifier on partitions: each worker gets all rows, and workers share the nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from distributed import Client, Future
from sklearn.base import clone

from labelweave.dask.client import in_fit
from labelweave.dask.data import ReadData, megabytes_of_workers
from labelweave.dask.parts import joined_rows
from labelweave.dask.rows import Held, ReadRows, Sized
from labelweave.dask.tasks import never_stops
from labelweave.dask.waiting import gathered
from labelweave.estimators import LabelTreeClassifier
from labelweave.estimators.journal import FitArguments, Journal
from labelweave.estimators.label_tree.fit import TreeSettings, make_trees, tree_problem, warn_of_size
from labelweave.foundation.arrays import Workers
from labelweave.labels.label_tree import LabelTree
from labelweave.problems.margin_blocks import KeptBlock
from labelweave.problems.tree_blocks import ForestBlocks, TreeOutline

_RUN = 4  # neighboring blocks per task, often of one node


def fit_to(model: LabelTreeClassifier, client: Client, data: ReadData, *, is_part: bool, start: Any) -> None:
    """Fit to partitions that workers have read; each worker gets all of them, the client only the model."""
    limit = min(megabytes_of_workers(client), default=np.inf)
    if data.megabytes > limit:
        raise ValueError(
            f"Label trees need all rows on each worker, {data.megabytes:.0f} MB, but a worker's "
            f"memory is limited to {limit:.0f} MB; give workers more memory, or pass fewer rows."
        )
    model._form, model.classes_ = data.form, data.form.classes
    held = client.submit(HeldRows.of, clone(model), data.rows, pure=False)
    rows = RowsApart(client, held, [facts.mark for facts in data.facts], len(data.counts.positives))
    in_fit(model, lambda: model._learn(rows, FitArguments(None, None, None)))


@dataclass(frozen=True)
class Request(Sized):
    """The request of a fit: the trees, where they were built, and how nodes are fitted."""

    settings: TreeSettings
    trees: list[LabelTree]


class HeldRows(Held):
    """All rows, as a worker has them, with the problem of the nodes of trees."""

    @classmethod
    def of(cls, reader: LabelTreeClassifier, parts: Sequence[ReadRows]) -> HeldRows:
        rows = joined_rows(parts)
        given = rows.features, rows.targets, rows.weights, rows.entries
        return cls(reader._rows(reader._read_rows(*given)))

    def stated(self, asked: Request) -> ForestBlocks:
        return tree_problem(asked.trees, self.rows, asked.settings)


def _requested(held: HeldRows, given: Any, names: list[str], settings: TreeSettings) -> Request:
    with Workers().running():
        return Request(settings, make_trees(given, held.rows, names, settings))


def _outlines(held: HeldRows, request: Request) -> tuple[list[TreeOutline], float]:
    with Workers().running():
        forest = held.problem(request)
        return [part.outline() for part in forest.parts], forest.possible_weights()


def _blocks(
    held: HeldRows, request: Request, of_block: Callable[[Any, int], Any], numbers: Sequence[int]
) -> list[KeptBlock]:
    with Workers().running():
        forest = held.problem(request)
        return [of_block(forest, number) for number in numbers]


class RowsApart:
    """Rows on the cluster, with the interface of :class:`~labelweave.estimators.label_tree.fit.TreeRows`."""

    def __init__(self, client: Client, held: Future, marks: list[str], n_labels: int) -> None:
        self.client, self.held, self.n_labels = client, held, n_labels
        self.marks = {"X": marks, "y": [], "weights": []}

    def problem(self, given: Any, names: list[str], settings: TreeSettings) -> ForestApart:
        """Build the trees on a worker; return an outline of their nodes."""
        plain = replace(settings, workers=Workers(), journal=Journal(), on_check=never_stops)
        request = self.client.submit(_requested, self.held, given, names, plain, pure=False)
        ((parts, possible),) = gathered(
            self.client, [self.client.submit(_outlines, self.held, request, pure=False)]
        )
        warn_of_size(self.n_labels, len(parts), possible)
        return ForestApart(parts, self, request)


class ForestApart(ForestBlocks):
    """The nodes of trees whose rows are on the cluster."""

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
