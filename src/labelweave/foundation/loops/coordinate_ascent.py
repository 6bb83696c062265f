"""Sweeps of dual coordinate ascent over a block of ``WIDTH`` labels.

One example is processed at a time, with all labels of the block in one vector.
In the notation of the M3L paper (journal version, sections 4 and 6), the signed
dual variable is ``beta_il = 2 y_il alpha_il``; it lies between 0 and
``y_il upper_i``, with ``upper_i = 2 C w_i``.  ``signs`` holds y, 0 where a label
is unobserved, so that both bounds are 0 and the variable does not move.
The required margin of label l for a positive (negative) example is ``margins[0, l]``
(``margins[1, l]``), that of an entry ``margins[row, 0, l]``: half the loss of the paper's equation (5).

Rows of ``weights`` are features.  The intercept is a separate vector.

Rows of sparse features are CSR arrays.  Those of dense features are a ``table``, visited in tiles of
``TILE`` rows, whose scores are one product and whose steps move the weights in another one.  Steps are still
sequential, each using the previous ones through the dot products of the tile's rows.  A row of the table is
read once for all rows of a tile, whose sums stay in vector registers.  With prefetching of the next rows that
is 69 of the processor's 78 GFLOP/s in float32 (Zen 3, 384 columns, rows in memory), compared with 20 for
sparse rows that are processed one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from labelweave.foundation.loops import WIDTH
from labelweave.foundation.loops.compiling import njit
from labelweave.foundation.loops.margin_steps import add_entry_sums, box_step, margins_of
from labelweave.foundation.loops.sparse_products import add_rows, add_to_rows, prefetch
from labelweave.foundation.loops.vector_code import Code, Vector, require_one_type

TILE = 4
_LINE = 64  # bytes
_INT64 = ir.IntType(64)


class _Tile:
    """Some rows, the table whose row k belongs to column k of these, and a vector for each of them."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.builder, self.code = builder, Code(context, builder, signature.args[0].dtype)
        rows, numbers, table, vectors = (
            cgutils.create_struct_proxy(kind)(context, builder, value=array)
            for kind, array in zip(signature.args, args, strict=True)
        )
        _, self.width = cgutils.unpack_tuple(builder, rows.shape)
        self.table, self.vectors, self.rows = table.data, vectors.data, []
        for place in range(2 * TILE):
            number = builder.load(builder.gep(numbers.data, [_INT64(place)]))
            self.rows.append(builder.gep(rows.data, [builder.mul(number, self.width)]))

    def parts(self) -> Iterator[list[int]]:
        """Return places whose vectors fill half of the 16 registers of processors without AVX-512."""
        size = TILE * 32 // self.code.number.bitwidth
        return (list(range(first, first + size)) for first in range(0, TILE, size))

    def columns(self) -> Iterator[tuple[Any, Any, Vector]]:
        """Start a loop over the columns; yield its number, the address of the table's row, and that row."""
        builder, zero, step = self.builder, _INT64(0), _INT64(_LINE // self.code.align)
        with cgutils.for_range_slice(builder, zero, self.width, step, _INT64) as (start, _):
            for row in self.rows[TILE:]:
                self.code.prefetch(builder.gep(row, [start]))
            after = builder.add(start, step)
            stop = builder.select(builder.icmp_signed("<", after, self.width), after, self.width)
            with cgutils.for_range_slice(builder, start, stop, _INT64(1), _INT64) as (column, _):
                address = builder.gep(self.table, [builder.mul(column, _INT64(WIDTH))])
                yield column, address, self.code.load(address)

    def entry(self, place: int, column: Any) -> Vector:
        return self.code.repeat(self.builder.load(self.builder.gep(self.rows[place], [column])))

    def vector(self, place: int) -> Any:
        return self.code.row(self.vectors, place)


@intrinsic
def add_tile(typing_context, rows, numbers, table, sums):
    """Compute sums[k] += rows[numbers[k]] @ table for ``TILE`` places k; prefetches as many more."""
    require_one_type(rows, table, sums)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile = _Tile(context, builder, signature, args)
        for places in tile.parts():
            slots = {place: cgutils.alloca_once(builder, tile.code.type) for place in places}
            for place, slot in slots.items():
                builder.store(tile.code.load(tile.vector(place)).value, slot)
            for column, _, row in tile.columns():
                for place, slot in slots.items():
                    total = Vector(tile.code, builder.load(slot)) + tile.entry(place, column) * row
                    builder.store(total.value, slot)
            for place, slot in slots.items():
                tile.code.store(Vector(tile.code, builder.load(slot)), tile.vector(place))
        return context.get_dummy_value()

    return types.void(rows, numbers, table, sums), codegen


@intrinsic
def add_to_tile(typing_context, rows, numbers, table, changes):
    """Compute table += sum over ``TILE`` places k of rows[numbers[k]]^T changes[k]; prefetches as well."""
    require_one_type(rows, table, changes)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile = _Tile(context, builder, signature, args)
        for places in tile.parts():
            changes = {place: tile.code.load(tile.vector(place)) for place in places}
            for column, address, total in tile.columns():
                for place, change in changes.items():
                    total = total + tile.entry(place, column) * change  # noqa: PLW2901
                tile.code.store(total, address)
        return context.get_dummy_value()

    return types.void(rows, numbers, table, changes), codegen


_SMALL_NORM = 1e-3  # below this, rows would take far too long steps with a fixed intercept
SWEEPS_WITH_CONSTANT_FEATURE = 3
LARGEST_STIFFNESS = 10.0
LARGEST_SHARE = 0.1  # fraction of its block's duality gap that an intercept may have ...
LAGGING_SWEEPS = 2  # ... in this many full sweeps
CAREFUL = {"nogil": True, "cache": True, "error_model": "numpy"}
LOOP = CAREFUL | {"fastmath": True}


@njit(nogil=True, cache=True)
def in_runs(rows, runs, length):
    """Return the rows run by run: run r is ``rows[r * length : (r + 1) * length]``."""
    ordered = np.empty_like(rows)
    filled = 0
    for run in runs:
        for place in range(run * length, min((run + 1) * length, len(rows))):
            ordered[filled] = rows[place]
            filled += 1
    return ordered


@njit(nogil=True, cache=True)
def rows_above(gains, threshold):
    """Return the rows whose gain is above the threshold, in order."""
    rows = np.empty(len(gains), np.int64)
    found = 0
    for row in range(len(gains)):
        rows[found] = row
        found += gains[row] > threshold
    return rows[:found]


@njit(**LOOP)
def prefetch_example(indptr, indices, values, row):
    for position in range(indptr[row], indptr[row + 1], 16):
        prefetch(indices, position)
        prefetch(values, position)


@njit(**LOOP)
def _add_to_nonzeros(weights, indices, values, start, stop, change):
    for position in range(start, stop):
        row, value = weights[indices[position]], values[position]
        for label in range(WIDTH):
            move = value * change[label]
            row[label] += move if row[label] != 0 else weights.dtype.type(0)


@njit(**LOOP)
def _cross_products(table, numbers, products):
    """Compute the dot products of each row of a tile with the rows after it."""
    a, b, c, d = table[numbers[0]], table[numbers[1]], table[numbers[2]], table[numbers[3]]
    zero = table.dtype.type(0)
    ab, ac, ad, bc, bd, cd = zero, zero, zero, zero, zero, zero
    for column in range(len(a)):
        ab += a[column] * b[column]
        ac += a[column] * c[column]
        ad += a[column] * d[column]
        bc += b[column] * c[column]
        bd += b[column] * d[column]
        cd += c[column] * d[column]
    products[0, 1], products[0, 2], products[0, 3] = ab, ac, ad
    products[1, 2], products[1, 3], products[2, 3] = bc, bd, cd


@njit(**LOOP)
def _score_tile(rows, first, table, weights, intercept, numbers, scores):
    """Score the tile of rows that starts at a position in ``rows``; return its number of rows.

    ``numbers`` become those of its rows and of the next tile's, padded with the last one.
    """
    for place in range(2 * TILE):
        numbers[place] = rows[min(first + place, len(rows) - 1)]
    for place in range(TILE):
        for label in range(WIDTH):
            scores[place, label] = intercept[label]
    add_tile(table, numbers, weights, scores)
    return min(TILE, len(rows) - first)


@njit(**LOOP)
def sweep_table(
    rows, table, squared_norms, signs, beta, upper, margins, weights, intercept, intercept_share,
    has_intercept, totals, free, gains, threshold,
):  # fmt: skip
    """Visit the given rows of a table once, tile by tile; see :func:`sweep_independent`."""
    scores, changes = np.empty((TILE, WIDTH), weights.dtype), np.empty((TILE, WIDTH), weights.dtype)
    inverse_norms, share = np.empty(WIDTH, weights.dtype), np.empty(WIDTH, weights.dtype)
    uncounted, products = np.zeros(WIDTH, weights.dtype), np.empty((TILE, TILE), weights.dtype)
    numbers = np.empty(2 * TILE, np.int64)
    one = weights.dtype.type(1)
    largest = intercept_share.max()
    total_gap = 0.0
    for first in range(0, len(rows), TILE):
        count = _score_tile(rows, first, table, weights, intercept, numbers, scores)
        _cross_products(table, numbers, products)
        is_moved = False
        for place in range(TILE):
            row, change = numbers[place], changes[place]
            gain = weights.dtype.type(0)
            if place < count:
                is_small = has_intercept and squared_norms[row] < _SMALL_NORM
                fixed = one / squared_norms[row]
                following = one / (squared_norms[row] + (one if is_small else largest))
                for label in range(WIDTH):
                    share[label] = one if is_small else intercept_share[label]
                    inverse_norms[label] = following if share[label] > 0 else fixed
                gain, gap = box_step(
                    scores[place], signs[row], margins_of(margins, row), beta[row], upper[row],
                    inverse_norms, change, uncounted if is_small else free, None,
                )  # fmt: skip
                gains[row] = gain
                total_gap += gap
            if place >= count or not gain > threshold:
                for label in range(WIDTH):
                    change[label] = 0
                continue
            is_moved = True
            for label in range(WIDTH):
                beta[row, label] += change[label]
                intercept[label] += share[label] * change[label]
                totals[label] += change[label]
            for later in range(place + 1, count):
                product = products[place, later]
                for label in range(WIDTH):
                    scores[later, label] += (product + share[label]) * change[label]
        if is_moved:
            add_to_tile(table, numbers, weights, changes)
    return total_gap


@njit(**LOOP)
def sweep_independent(
    rows, indptr, indices, values, squared_norms, signs, beta, upper, margins, weights,
    intercept, intercept_share, has_intercept, totals, free, gains, threshold, keeps_zeros, squared,
):  # fmt: skip
    """Visit the given rows once, for labels of the block that do not interact (R diagonal there).

    ``intercept_share[l]`` is the fraction of every step that the intercept of label l follows: 0 if it is
    fixed in the sweep, or a value shared by all others; it always follows the steps of (nearly) empty rows
    if ``has_intercept``.  Rows whose gain is not above ``threshold`` are skipped.  With
    ``keeps_zeros`` weights of 0 stay 0, as if those features did not exist.  ``squared_error``: None for
    hinge losses.
    Updates ``totals`` (the sum of beta), adds to ``free`` (the inverse norms of
    variables between their bounds, except for the nearly empty rows), writes each row's gain; returns
    the sum of the encountered gaps.
    """
    scores = np.empty(WIDTH, weights.dtype)
    change = np.empty(WIDTH, weights.dtype)
    inverse_norms = np.empty(WIDTH, weights.dtype)
    share = np.empty(WIDTH, weights.dtype)
    uncounted = np.zeros(WIDTH, weights.dtype)
    one = weights.dtype.type(1)
    largest = intercept_share.max()
    total_gap = 0.0
    for position in range(len(rows)):
        row = rows[position]
        if position + 2 < len(rows):
            later = rows[position + 2]
            prefetch_example(indptr, indices, values, later)
            prefetch(beta, later * WIDTH)
            prefetch(signs, later * WIDTH)
        start, stop = indptr[row], indptr[row + 1]
        fixed = one / squared_norms[row]
        is_small = has_intercept and squared_norms[row] < _SMALL_NORM
        following = one / (squared_norms[row] + (one if is_small else largest))
        for label in range(WIDTH):
            scores[label] = intercept[label]
            share[label] = one if is_small else intercept_share[label]
            inverse_norms[label] = following if share[label] > 0 else fixed
        add_rows(weights, indices, values, start, stop, scores)
        counted = uncounted if is_small else free
        gain, gap = box_step(
            scores, signs[row], margins_of(margins, row), beta[row], upper[row], inverse_norms, change,
            counted, squared,
        )  # fmt: skip
        gains[row] = gain
        total_gap += gap
        if gain > threshold:
            for label in range(WIDTH):
                beta[row, label] += change[label]
                intercept[label] += share[label] * change[label]
                totals[label] += change[label]
            if keeps_zeros:
                _add_to_nonzeros(weights, indices, values, start, stop, change)
            else:
                add_to_rows(weights, indices, values, start, stop, change)
    return total_gap


@njit(**CAREFUL)
def move_intercepts(intercept, moves, sweeps, was_full, met_gap, has_intercept):
    """Move intercepts that are fixed in sweeps by Newton steps, after a full or partial sweep.

    ``moves``: the arrays of :class:`labelweave.problems.swept_margins.Moves` for the block, without
    ``sweeps``, their number including this one.
    """
    share, stiffness, before, totals, free, curvature, lagging, given_up = moves
    for label in range(WIDTH):
        gradient = totals[label] - intercept[label]
        if was_full:
            # gradient^2 / 2 is an intercept's own part of the duality gap, in addition to the rows' parts
            lagging[label] += gradient**2 / 2 > LARGEST_SHARE * met_gap
            given_up[label] |= lagging[label] > LAGGING_SWEEPS
            curvature[label] = free[label]
        free[label] = 0
        if not has_intercept or sweeps < SWEEPS_WITH_CONSTANT_FEATURE:
            continue
        turned = gradient * before[label] < 0
        if turned and abs(gradient) > 0.7 * abs(before[label]) and not given_up[label]:
            stiffness[label] *= 2
        given_up[label] |= stiffness[label] > LARGEST_STIFFNESS
        before[label] = gradient
        step = gradient if given_up[label] else gradient / (1 + stiffness[label] * curvature[label])
        intercept[label] += intercept.dtype.type(step)
        share[label] = given_up[label]


@njit(**CAREFUL)
def round_independent(
    orders, run, hot_gain, idle_gain, mean_gain, data, points, moves, sweeps, has_intercept, keeps_zeros,
    squared,
):  # fmt: skip
    """Sweep all rows and then, ``len(orders) - 1`` times, those whose last gain was not small.

    ``orders`` (sweeps, runs): the order of the runs of ``run`` rows in each sweep.  ``hot_gain``,
    ``idle_gain``: multiples of the mean gain above which rows are visited again, and steps are taken.
    ``data``: the arrays of rows, their squared norms, signs, upper bounds and margins; ``points``: beta,
    weights, intercepts and gains.  Returns the first sweep's encountered gap, the mean gain, and the visits.
    """
    indptr, indices, values, squared_norms, signs, upper, margins = data
    beta, weights, intercept, gains = points
    n_rows, visits, met_gap = len(gains), 0, 0.0
    hot, rows = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
    for sweep in range(len(orders)):
        n_hot, found = 0, 0
        for row in range(n_rows):
            hot[n_hot] = row
            n_hot += sweep == 0 or gains[row] > hot_gain * mean_gain
        for place in range(orders.shape[1]):
            first = orders[sweep, place] * run
            for chosen in range(first, min(first + run, n_hot)):
                rows[found] = hot[chosen]
                found += 1
        gap = sweep_independent(
            rows[:found], indptr, indices, values, squared_norms, signs, beta, upper, margins, weights,
            intercept, moves[0], has_intercept, moves[3], moves[4], gains, idle_gain * mean_gain, keeps_zeros,
            squared,
        )  # fmt: skip
        visits += found
        move_intercepts(intercept, moves, sweeps + sweep + 1, found == n_rows, gap, has_intercept)
        if sweep == 0:
            met_gap, mean_gain = gap, 0.0
            for row in range(n_rows):
                mean_gain += gains[row]
            mean_gain /= max(n_rows, 1)
    return met_gap, mean_gain, visits


@njit(**LOOP)
def scatter_block(indptr, indices, values, beta, weights):
    """Add X^T beta to the weights, skipping rows whose variables are all zero."""
    change = np.empty(WIDTH, weights.dtype)
    for row in range(len(indptr) - 1):
        any_at_all = False
        for label in range(WIDTH):
            change[label] = beta[row, label]
            any_at_all |= beta[row, label] != 0
        if any_at_all:
            add_to_rows(weights, indices, values, indptr[row], indptr[row + 1], change)


@njit(**LOOP)
def label_sums(indptr, indices, values, signs, beta, upper, margins, weights, intercept, sums, squared):
    """Sum the results of :func:`add_entry_sums` over all rows into the rows of ``sums``, per label."""
    scores = np.empty(WIDTH, weights.dtype)
    for row in range(len(indptr) - 1):
        for label in range(WIDTH):
            scores[label] = intercept[label]
        add_rows(weights, indices, values, indptr[row], indptr[row + 1], scores)
        asked = margins_of(margins, row)
        add_entry_sums(scores, signs[row], asked, beta[row], upper[row], sums, squared)


@njit(**LOOP)
def table_sums(table, signs, beta, upper, margins, weights, intercept, sums):
    """Compute the same sums for the rows of a table."""
    rows, numbers = np.arange(len(table)), np.empty(2 * TILE, np.int64)
    scores = np.empty((TILE, WIDTH), weights.dtype)
    for first in range(0, len(table), TILE):
        count = _score_tile(rows, first, table, weights, intercept, numbers, scores)
        for row in range(first, first + count):
            asked = margins_of(margins, row)
            add_entry_sums(scores[row - first], signs[row], asked, beta[row], upper[row], sums, None)
