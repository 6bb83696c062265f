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
from labelweave.problems.travelling_margins import (
    Piece,
    RowState,
    SharedState,
    TravellingBlock,
    TravellingLabels,
)


class Chunk(Sized):
    """Neighboring rows in the order of solving, with the label blocks that visited them.

    is_filed: whether the rows are in a file; then blocks are rebuilt for each visit.
    """

    def __init__(self, rows: OrderedRows, *, is_filed: bool = False) -> None:
        self._kept: OrderedRows | Filed = Filed(rows) if is_filed else rows
        self._blocks: dict[int, TravellingBlock | TravellingLabels] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_blocks": {}}

    def __sizeof__(self) -> int:
        return size_in_bytes(self._kept)

    @property
    def rows(self) -> OrderedRows:
        """The rows, read again if they are in a file."""
        kept = self._kept
        return kept.value if isinstance(kept, Filed) else kept

    def block(self, labels: Array) -> TravellingBlock | TravellingLabels:
        """Return a block of labels over these rows."""
        key = int(labels[0])
        found = self._blocks.get(key)
        if found is None:
            rows = self.rows
            kind = TravellingBlock if rows.data.covariance.is_diagonal else TravellingLabels
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
        self, labels: Array, traveller: SharedState | None, seats: Sequence[RowState | None] | None,
        piece: Piece, *, is_full: bool,
    ) -> tuple[SharedState, tuple[Any, ...]]:  # fmt: skip
        """Let a block visit a piece of the rows.

        traveller, seats: after the previous visit, with one seat per chunk; None at the start.
        Returns both after the visit.
        """
        after = list(seats or [None] * len(self.chunks))
        own: Array = np.zeros(1, np.intp)
        if len(self.chunks) > 1:
            order = piece.generator.permutation(len(self.chunks))
            own = np.array_split(order, piece.n_pieces)[piece.number]
            piece = Piece(0, 1, piece.generator)
        for number in own:
            block, seat = self.chunks[number].block(labels), after[number]
            traveller = block.first_traveller() if traveller is None else traveller
            seat = block.first_seat() if seat is None else seat
            traveller, after[number] = block.visit(traveller, seat, piece, is_full=is_full)
        assert traveller is not None, "there is a chunk for every piece"
        return traveller, tuple(after)

    def summed(self, method: str, labels: Array, seats: Sequence[RowState], *given: Any) -> Array:
        """Sum a method of a block over the chunks, each with its seat."""
        found: Any = 0
        for chunk, seat in zip(self.chunks, seats, strict=True):
            found = found + getattr(chunk.block(labels), method)(seat, *given)
        return np.asarray(found)

    def forget(self, labels: Array) -> None:
        """Drop a fitted block."""
        for chunk in self.chunks:
            chunk.forget(labels)


def neighbours(sizes: Sequence[float], most: float) -> list[list[int]]:
    """Group neighbors as long as their total is at most a size."""
    begins, size = [0], 0.0
    for number, own in enumerate(sizes):
        size += own
        if number and size > most:
            begins.append(number)
            size = own
    return [list(range(*ends)) for ends in pairwise([*begins, len(sizes)])]
