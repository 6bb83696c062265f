"""The max-margin dual on cached kernel rows, for solvers that update blocks of rows or pairs of variables.

It is the dual of :mod:`labelweave.problems.gram_margins`.  Nothing of the size of the kernel matrix is
needed: a step uses only the kernel rows of its block or pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelweave.features.gram import StoredGram, StreamedGram
from labelweave.features.gram.sources import GramSource
from labelweave.features.gram.stored import StoredRows
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array, PerLabel, PerRow, RowsByLabels
from labelweave.foundation.arrays import Workers, panels
from labelweave.foundation.arrays.linear_algebra import as_type, placed
from labelweave.labels.covariance import LabelCovariance
from labelweave.labels.label_matrix import LabelMatrix
from labelweave.solvers.box_dual import Settled
from labelweave.solvers.frame import State

_COLUMNS = 2048  # computed at a time, which bounds the kernel's temporary memory


@dataclass(frozen=True)
class CacheContent:
    """The row numbers in a cache, without their entries, to fill another cache with the same bits.

    row_of, used (slots,): the row of each slot, -1 for none, and the time of its last use.
    batch_of (slots,): the batch that computed it; a product's last bits depend on the batch.
    batches: the rows of each batch that is still partly cached, by number.
    """

    row_of: Array
    used: Array
    batch_of: Array
    batches: list[tuple[int, Array]]
    time: int


class CachedRows:
    """The most recently used rows of ``K + constant``, in one array of a fixed size.

    One cache serves all labels (M3L 2012, section 5.1.3).  If the whole matrix fits, it fills up completely.

    budget_bytes: memory for rows, including the block returned last.
    block_rows: the maximum number of rows per request.
    Raises ValueError if the budget is too small for a block, with the smallest sufficient one.
    """

    def __init__(
        self,
        source: GramSource,
        constant: float,
        budget_bytes: float,
        dtype: npt.DTypeLike,
        block_rows: int = 2,
        workers: Workers | None = None,
    ) -> None:
        self.source, self.constant, self.workers = source, constant, workers or Workers()
        self.dtype, self.n_rows = np.dtype(dtype), source.n_rows
        n_slots = self._slots_within(budget_bytes, min(block_rows, self.n_rows))
        self._table = np.empty((n_slots, self.n_rows), self.dtype)
        self._slot_of = np.full(self.n_rows, -1)
        self._row_of = np.full(n_slots, -1)
        self._used = np.zeros(n_slots, np.int64)  # time of last use; 0 is never
        self._batch_of = np.full(n_slots, -1)
        self._batches: dict[int, Array] = {}
        self._time = 0
        self.hits = self.misses = 0

    def _slots_within(self, budget: float, block_rows: int) -> int:
        row_bytes = self.n_rows * self.dtype.itemsize
        n_slots = int(min(self.n_rows, budget // row_bytes - block_rows))
        if n_slots < block_rows:
            least = 2 * block_rows * row_bytes
            raise ParameterError(
                f"`memory_budget` is {budget / 1e6:g} MB, too small for {block_rows} rows of the kernel "
                f"matrix of {self.n_rows} rows and a copy; pass at least {np.ceil(least / 1e4) / 100:g} MB."
            )
        return n_slots

    @property
    def n_slots(self) -> int:
        return len(self._table)

    @property
    def is_held(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self._slot_of >= 0)

    def content(self) -> CacheContent:
        self._drop_batches()
        slots = self._row_of.copy(), self._used.copy(), self._batch_of.copy()
        return CacheContent(*slots, list(self._batches.items()), self._time)

    def _drop_batches(self) -> None:
        held = set(self._batch_of[self._row_of >= 0].tolist())
        self._batches = {number: rows for number, rows in self._batches.items() if number in held}

    def refill(self, content: CacheContent) -> None:
        """Cache the rows that another cache of the same matrix had, unless they are cached already."""
        if content.time == self._time and np.array_equal(content.row_of, self._row_of):
            return
        self._row_of[:], self._slot_of[:] = -1, -1
        kept_rows = [content.row_of, *(rows for _, rows in content.batches)]
        if any(rows.max(initial=-1) >= self.n_rows or rows.min(initial=0) < -1 for rows in kept_rows):
            raise ValueError(f"the cached rows of the kernel matrix are not among its {self.n_rows} rows")
        for number, missing in content.batches:
            kept = np.flatnonzero((content.batch_of == number) & (content.row_of >= 0))
            places = np.searchsorted(missing, content.row_of[kept])
            self._table[kept] = self._computed(missing)[places]
        self._row_of[:], self._used[:] = content.row_of, content.used
        self._batch_of[:], self._time = content.batch_of, content.time
        self._batches = dict(content.batches)
        held = np.flatnonzero(self._row_of >= 0)
        self._slot_of[self._row_of[held]] = held

    def row(self, index: int) -> PerRow:
        """Return one row, valid until as many other rows are requested as there are slots."""
        slot = int(self._slot_of[index])
        if slot < 0:
            slot = int(self._fill(np.array([index]))[0])
        else:
            self.hits += 1
        self._time += 1
        self._used[slot] = self._time
        return np.asarray(self._table[slot])

    def rows(self, indices: Array) -> Array:
        """Copy at most ``block_rows`` different rows; missing ones are computed together."""
        self._time += 1
        slots = self._slot_of[indices]
        self._used[slots[slots >= 0]] = self._time  # protects them from eviction
        missing = np.unique(indices[slots < 0])
        self.hits += len(indices) - len(missing)
        if len(missing):
            self._used[self._fill(missing)] = self._time
        return np.asarray(self._table[self._slot_of[indices]])

    def _fill(self, missing: Array) -> Array:
        """Compute rows in place of the least recently used ones; return their slots."""
        slots = np.argpartition(self._used, len(missing) - 1)[: len(missing)]
        given_up = self._row_of[slots]
        self._slot_of[given_up[given_up >= 0]] = -1
        self._row_of[slots] = -1  # until computed, so that an interrupt leaves no wrong row
        self._table[slots] = self._computed(missing)
        self._row_of[slots] = missing
        if len(self._batches) >= 2 * self.n_slots:  # rarely, as it checks all batches
            self._drop_batches()
        number = 1 + next(reversed(self._batches), -1)  # they are in ascending order
        self._batch_of[slots], self._batches[number] = number, missing
        self._slot_of[missing] = slots
        self.misses += len(missing)
        return slots

    def _computed(self, missing: Array) -> Array:
        rows = np.empty((len(missing), self.n_rows), self.dtype)

        def one(columns: slice) -> None:
            rows[:, columns] = self.source.block(missing, columns, self.dtype)
            rows[:, columns] += np.asarray(self.constant, self.dtype)

        self.workers.each(one, panels(self.n_rows, _COLUMNS))
        return rows


_BLOCK_ROWS = 128
_FEWEST_BLOCK_ROWS = 8
_MOST_SWEEPS = 16
_PANEL_BYTES = 2e5  # the least memory for computing a matrix
_MANY = 0.75  # update scores with all rows of a block if more than this share of them changed

State.plain_with(CacheContent)


@dataclass(frozen=True)
class Resources:
    """Memory, threads and precision of a fit.

    budget: bytes for what grows with the number of row pairs.
    seed: determines the pivots of an incomplete factor.
    """

    workers: Workers
    dtype: npt.DTypeLike
    budget: float
    factorization: str = "auto"
    seed: int = 0


@dataclass(frozen=True)
class MarginBox:
    """Targets and bounds of the dual variables, each of shape (n, L).

    targets: T: sign times margin, 0 where unobserved.
    lower, upper: the bounds; one of them is 0.
    """

    targets: Array
    lower: Array
    upper: Array

    @classmethod
    def make(
        cls, labels: LabelMatrix, weights: Array, margins: Array, known: RowsByLabels | None = None
    ) -> MarginBox:
        """Return the box of a label matrix.

        weights: U, the weights of the losses, of rows or of entries.
        margins (2, L) or (2, n, L): the required margins of positives and of negatives.
        known (n, L): prior scores, which are subtracted from the targets.
        """
        signs = labels.to_signs().astype(np.float64)
        positive, negative = signs > 0, signs < 0
        targets = np.where(positive, margins[0], 0.0) - np.where(negative, margins[1], 0.0)
        if known is not None:
            targets -= np.where(signs != 0, known, 0.0)
        bound = weights if weights.ndim == 2 else weights[:, None]
        return cls(*map(placed, (targets, -bound * negative, bound * positive)))

    def parts(self, dtype: npt.DTypeLike = np.float64) -> tuple[Array, Array, Array]:
        return as_type(self.targets, dtype), as_type(self.lower, dtype), as_type(self.upper, dtype)


class BlockMargins:
    """The dual of :class:`~labelweave.solvers.block_ascent.BlockDual`.

    constant: added to every entry of K.
    covariance: R; dense unless it is the identity.
    resources: threads, precision, and memory for kernel rows.
    gram: the kernel matrix with the constant, where it is kept.
    Raises ValueError if the memory budget is too small.
    """

    def __init__(
        self,
        box: MarginBox,
        source: GramSource,
        constant: float,
        covariance: LabelCovariance,
        resources: Resources,
        gram: StoredGram | None = None,
    ) -> None:
        self.box, self.covariance, self.workers = box, covariance, resources.workers
        self.dtype, self.n_rows = np.dtype(resources.dtype), source.n_rows
        self.drifts = self.dtype != np.float64
        fitting = int(resources.budget / (2 * self.n_rows * self.dtype.itemsize))
        self.block_rows = min(self.n_rows, max(_FEWEST_BLOCK_ROWS, min(_BLOCK_ROWS, fitting)))
        cache = constant, resources.budget, self.dtype, self.block_rows, self.workers
        self.rows = CachedRows(source, *cache) if gram is None else StoredRows(gram)
        self.cache_content, self.refill = self.rows.content, self.rows.refill
        self.exact = StreamedGram(source, constant, np.float64, self.workers)
        self.targets, self.lower, self.upper = box.parts(self.dtype)
        self.table = None if covariance.is_diagonal else covariance.to_dense().astype(self.dtype)

    def start(self, dual: RowsByLabels | None = None) -> tuple[Array, Array]:
        beta, scores = np.zeros_like(self.targets), np.zeros_like(self.targets)
        if dual is not None:
            beta[:] = np.clip(dual, self.lower, self.upper)
            scores[:] = self.settled(beta).boxed_scores
        return beta, scores

    def rows_at_hand(self) -> Array | None:
        """Return the rows whose kernel rows are in the cache; None where all rows fit."""
        if self.rows.n_slots == self.n_rows:
            return None
        return np.flatnonzero(self.rows.is_held)

    def ascend(self, beta: RowsByLabels, scores: RowsByLabels, rows: Array) -> None:
        """Update the variables of different rows, at most ``block_rows``, in their order, then all scores."""
        from labelweave.foundation.loops.kernel_ascent import ascend_block, ascend_coupled_block

        kernel = self.rows.rows(rows)
        inner, moving = np.ascontiguousarray(kernel[:, rows]), beta[rows]
        moved = np.empty_like(moving)
        box = (self.targets[rows], scores[rows], moving, self.lower[rows], self.upper[rows])
        if self.table is None:
            ascend_block(inner, *box, moved, _MOST_SWEEPS)
        else:
            ascend_coupled_block(inner, *box, moved, _MOST_SWEEPS, self.table)
        beta[rows] = moving
        self._follow(scores, kernel, moved)

    def _follow(self, scores: Array, kernel: Array, moved: Array) -> None:
        """Add ``kernel^T moved`` to the scores."""
        is_moved = moved.any(axis=1)
        if is_moved.mean() < _MANY:
            kernel, moved = kernel[is_moved], moved[is_moved]

        def one(panel: slice) -> None:
            scores[panel] += kernel[:, panel].T @ moved

        if len(moved):
            self.workers.each(one, panels(self.n_rows))

    def measure(self, beta: RowsByLabels, scores: RowsByLabels, shares: PerRow) -> tuple[float, float]:
        from labelweave.foundation.loops.kernel_ascent import row_shares

        box = self.box if beta.dtype == np.float64 else self
        tables = (box.targets, scores, beta, box.lower, box.upper)
        linear, quadratic, losses = row_shares(*tables, shares)
        return quadratic / 2 + losses, linear - quadratic / 2

    def settled(self, beta: RowsByLabels) -> Settled:
        box = self.box
        exact = np.clip(beta.astype(np.float64), box.lower, box.upper)
        scores = np.ascontiguousarray(self.covariance.matmul(self.exact.product(exact)))
        return Settled(*box.parts(), exact, scores, exact, scores)


def holds_matrix(n_rows: int, dtype: npt.DTypeLike, budget: float) -> bool:
    """Whether a kernel matrix fits, with memory for the blocks in which it is computed."""
    return float(n_rows) ** 2 * np.dtype(dtype).itemsize + _PANEL_BYTES <= budget


class WorkingSetMargins:
    """The dual of :class:`~labelweave.solvers.WorkingSetDual`.

    constant: added to every entry of K.
    resources: threads, and memory for kernel rows; numbers are always float64.
    Raises ValueError if the memory budget is too small.
    """

    def __init__(
        self,
        box: MarginBox,
        source: GramSource,
        constant: float,
        covariance: LabelCovariance,
        resources: Resources,
    ) -> None:
        self.covariance = covariance
        self.exact = StreamedGram(source, constant, np.float64, resources.workers)
        self.rows: CachedRows | None = None
        self.kernel_row: Callable[[int], Array]
        if 8.0 * source.n_rows**2 <= resources.budget:  # the matrix is far cheaper than all its rows
            table = StoredGram.from_source(source, constant, np.float64, resources.workers).table
            self.kernel_row = table.__getitem__
        else:
            self.rows = CachedRows(source, constant, resources.budget, np.float64, workers=resources.workers)
            self.kernel_row = self.rows.row
        self.targets, self.lower, self.upper = map(np.asfortranarray, box.parts())
        self.kernel_diagonal = source.diagonal() + constant

    def start(self, dual: RowsByLabels | None = None) -> tuple[Array, Array]:
        beta, scores = np.zeros_like(self.targets), np.zeros_like(self.targets)
        if dual is not None:
            beta[:] = np.clip(dual, self.lower, self.upper)
            scores[:] = self.settled(beta).kept_scores
        return beta, scores

    def covariance_column(self, label: int) -> PerLabel:
        every = np.arange(self.targets.shape[1])
        return np.ascontiguousarray(self.covariance.block(every, np.array([label]))[:, 0])

    def measure(self, beta: RowsByLabels, scores: RowsByLabels) -> tuple[float, float]:
        from labelweave.foundation.loops.kernel_ascent import row_shares

        tables = (self.targets, scores, beta, self.lower, self.upper)
        shares = np.empty(beta.shape[1])
        linear, quadratic, losses = row_shares(*(table.T for table in tables), shares)
        return quadratic / 2 + losses, linear - quadratic / 2

    def settled(self, beta: RowsByLabels) -> Settled:
        point = (beta.copy(order="F"), np.asfortranarray(self.covariance.matmul(self.exact.product(beta))))
        return Settled(self.targets, self.lower, self.upper, *point, *point)
