"""Rows in the order of solving, in memory or in files, and the operations of label blocks on them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from labelweave.dask.filed import Filed, keeps_files, key_of_task
from labelweave.dask.rows import Sized, size_in_bytes
from labelweave.foundation.array_types import Array
from labelweave.problems.margin_dual import OrderedRows
from labelweave.problems.traveling_margins import (
    Piece,
    RowState,
    SharedState,
    TravelingBlock,
    TravelingLabels,
)


class Chunk(Sized):
    """Neighboring rows in the order of solving, with the label blocks that visited them.

    is_filed: whether the rows are in a file; then blocks are rebuilt for each visit.
    """

    def __init__(self, rows: OrderedRows, *, is_filed: bool = False) -> None:
        self._kept: OrderedRows | Filed = Filed(rows) if is_filed else rows
        self._blocks: dict[int, TravelingBlock | TravelingLabels] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_blocks": {}}

    def __sizeof__(self) -> int:
        return size_in_bytes(self._kept)

    @property
    def rows(self) -> OrderedRows:
        """The rows, read again if they are in a file."""
        kept = self._kept
        return kept.value if isinstance(kept, Filed) else kept

    def block(self, labels: Array) -> TravelingBlock | TravelingLabels:
        """Return a block of labels over these rows."""
        key = int(labels[0])
        found = self._blocks.get(key)
        if found is None:
            rows = self.rows
            kind = TravelingBlock if rows.data.covariance.is_diagonal else TravelingLabels
            found = kind(rows, labels)
            if not isinstance(self._kept, Filed):
                self._blocks[key] = found
        return found

    def forget(self, labels: Array) -> None:
        """Drop a fitted block."""
        self._blocks.pop(int(labels[0]), None)


@keeps_files
class Partition:
    """Rows that a task visits: pieces of one chunk, or several chunks in turn.

    number: of the partition; key: of the task that made it.
    """

    def __init__(self, number: int, *chunks: Chunk) -> None:
        self.number, self.chunks, self.key = number, chunks, key_of_task()

    def __sizeof__(self) -> int:
        return size_in_bytes([chunk._kept for chunk in self.chunks])

    @property
    def files(self) -> list[Filed]:
        """The files of its rows."""
        return [chunk._kept for chunk in self.chunks if isinstance(chunk._kept, Filed)]

    @property
    def rows(self) -> OrderedRows:
        """The rows of a partition with a single chunk."""
        (chunk,) = self.chunks
        return chunk.rows

    def visit(
        self, labels: Array, shared: SharedState | None, states: Sequence[RowState | None] | None,
        piece: Piece, *, is_full: bool,
    ) -> tuple[SharedState, tuple[Any, ...]]:  # fmt: skip
        """Visit a piece of the rows.

        shared, states: after the previous visit, with one row state per chunk; None at the start.
        Returns both after the visit.
        """
        after = list(states or [None] * len(self.chunks))
        own: Array = np.zeros(1, np.intp)
        if len(self.chunks) > 1:
            order = piece.generator.permutation(len(self.chunks))
            own = np.array_split(order, piece.n_pieces)[piece.number]
            piece = Piece(0, 1, piece.generator)
        for number in own:
            block, state = self.chunks[number].block(labels), after[number]
            shared = block.first_shared() if shared is None else shared
            state = block.first_rows() if state is None else state
            shared, after[number] = block.visit(shared, state, piece, is_full=is_full)
        assert shared is not None, "there is a chunk for every piece"
        return shared, tuple(after)

    def summed(self, method: str, labels: Array, states: Sequence[RowState], *given: Any) -> Array:
        """Sum a method of a block over the chunks, each with its row state."""
        found: Any = 0
        for chunk, state in zip(self.chunks, states, strict=True):
            found = found + getattr(chunk.block(labels), method)(state, *given)
        return np.asarray(found)

    def forget(self, labels: Array) -> None:
        """Drop a fitted block."""
        for chunk in self.chunks:
            chunk.forget(labels)


def neighbors(sizes: Sequence[float], most: float) -> list[list[int]]:
    """Group neighbors as long as their total is at most a size."""
    begins, size = [0], 0.0
    for number, own in enumerate(sizes):
        size += own
        if number and size > most:
            begins.append(number)
            size = own
    return [list(range(*ends)) for ends in pairwise([*begins, len(sizes)])]
