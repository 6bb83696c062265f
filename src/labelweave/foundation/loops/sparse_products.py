"""Compiled products of sparse rows with dense tables: sums of table rows, and dot products with them.

Numba keeps the sums of such a loop in memory; here up to 128 columns of a sum stay in vector registers over
all table rows of a sparse row's entries.  A partial vector is read and written under a mask,
never beyond the end.  Tables of ``WIDTH`` columns, one or two cache lines per row, have their own steps for
loops that read and write single rows.

The loops take a run of sparse rows: ``indptr`` may be a part of a longer one, and row i has the entries
indptr[i] to indptr[i + 1], or a part of them.  A table may have unused columns, so that its rows
can start at cache lines.  ``far`` means that it is too large for the caches: its rows are prefetched some
entries ahead, into the second-level cache, since the first one allows fewer outstanding lines (16 against
24 GB/s measured).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from labelweave.foundation.loops import WIDTH
from labelweave.foundation.loops.compiling import INNER, njit
from labelweave.foundation.loops.vector_code import Code, Vector, require_one_type

_INT64 = ir.IntType(64)
_CHAINS = 4  # independent sums, to hide the latency of additions
_AHEAD = 24  # entries; 8 and 16 measured slower, 48 no faster
_LINE = 64  # bytes
_TILE = 4 * WIDTH  # float64 sums fill the 16 registers of processors without AVX-512, float32 sums half
_WIDE = 24 * WIDTH  # columns from which reading whole table rows contiguously is faster


def _int64(number: int) -> Any:
    return ir.Constant(_INT64, number)


class _TableRows:
    """The rows of a table at the entries of a sparse matrix."""

    values: Any

    def __init__(self, context: Any, builder: Any, kinds: tuple[Any, Any], arrays: tuple[Any, Any]) -> None:
        self.code = Code(context, builder, kinds[0].dtype)
        self.builder, self.index_type = builder, kinds[1].dtype
        self.table, (_, self.stride) = self.array(kinds[0], arrays[0])
        self.indices, (length,) = self.array(kinds[1], arrays[1])
        self.last = builder.sub(length, _int64(1))

    @classmethod
    def of_width(cls, context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Read a table of ``WIDTH`` columns, indices, values, two ends and a vector, with its address."""
        made: Any = cls(context, builder, signature.args[:2], args[:2])
        made.stride, made.values = _int64(WIDTH), made.code.pointer(signature.args[2], args[2])
        return made, made.code.pointer(signature.args[5], args[5])

    def factor(self, position: Any) -> Vector:
        return self.code.repeat(self.builder.load(self.builder.gep(self.values, [position])))

    def array(self, kind: Any, array: Any) -> tuple[Any, list[Any]]:
        made = cgutils.create_struct_proxy(kind)(self.code.context, self.builder, value=array)
        return made.data, cgutils.unpack_tuple(self.builder, made.shape)

    def row(self, position: Any) -> Any:
        index = self.builder.load(self.builder.gep(self.indices, [position]))
        index = self.code.context.cast(self.builder, index, self.index_type, types.int64)
        return self.builder.gep(self.table, [self.builder.mul(index, self.stride)])

    def row_ahead(self, position: Any) -> Any:
        """Return the address of the row of a later entry."""
        return self.row(self.earlier(self.builder.add(position, _int64(_AHEAD)), self.last))

    def ask_for(self, address: Any, width: int) -> None:
        for column in range(0, width, _LINE // self.code.align):
            self.code.prefetch(self.builder.gep(address, [_int64(column)]))

    def earlier(self, first: Any, second: Any) -> Any:
        return self.builder.select(self.builder.icmp_signed("<", first, second), first, second)

    def sums(self, number: int) -> list[Any]:
        """Allocate stack slots of vectors, initially 0; LLVM turns them into registers."""
        slots = [cgutils.alloca_once(self.builder, self.code.type) for _ in range(number)]
        for slot in slots:
            self.builder.store(self.code.constant(0.0).value, slot)
        return slots

    def add_to(self, slot: Any, term: Vector) -> None:
        self.builder.store((self.value(slot) + term).value, slot)

    def value(self, slot: Any) -> Vector:
        return Vector(self.code, self.builder.load(slot))


class _ColumnSums(_TableRows):
    """Sums of a few vectors of columns over the entries of one sparse row."""

    vectors: int = 1
    places: Any = None  # of the last vector, None for all
    column: Any = _int64(0)
    far: Any = cgutils.false_bit  # whether to ask for rows ahead

    def add_entry(self, position: Any, slots: list[Any]) -> None:
        builder, value = self.builder, self.factor(position)
        row = builder.gep(self.row(position), [self.column])
        with builder.if_then(self.far):  # LLVM splits it into two loops
            self.ask_for(builder.gep(self.row_ahead(position), [self.column]), self.vectors * WIDTH)
        for number, slot in enumerate(slots):
            self.add_to(slot, value * self.loaded(row, number))

    def add_entries(self, start: Any, stop: Any, address: Any, adds: Any) -> list[Vector]:
        """Sum the entries, in several chains if there are few vectors."""
        builder, chains = self.builder, max(1, _CHAINS // self.vectors)
        slots = [self.sums(self.vectors) for _ in range(chains)]
        with builder.if_then(adds):
            for number, slot in enumerate(slots[0]):
                builder.store(self.loaded(address, number).value, slot)
        whole = builder.and_(builder.sub(stop, start), _int64(-chains))
        middle = builder.add(start, whole)
        with cgutils.for_range_slice(builder, start, middle, _int64(chains), _INT64) as (position, _):
            for number, chain in enumerate(slots):
                self.add_entry(builder.add(position, _int64(number)), chain)
        with cgutils.for_range_slice(builder, middle, stop, _int64(1), _INT64) as (position, _):
            self.add_entry(position, slots[0])
        return [self._joined([chain[number] for chain in slots]) for number in range(self.vectors)]

    def loaded(self, address: Any, number: int) -> Vector:
        """Load one of the vectors that begin at an address."""
        place = self.builder.gep(address, [_int64(number * WIDTH)])
        full = self.places is None or number < self.vectors - 1
        return self.code.load(place) if full else self.code.load_some(place, self.places)

    def _joined(self, chain_slots: list[Any]) -> Vector:
        parts = [self.value(slot) for slot in chain_slots]
        while len(parts) > 1:
            parts = [left + right for left, right in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    def store(self, sums: list[Vector], address: Any) -> None:
        for number, vector in enumerate(sums):
            place = self.builder.gep(address, [_int64(number * WIDTH)])
            if self.places is None or number < self.vectors - 1:
                self.code.store(vector, place)
            else:
                self.code.store_some(vector, place, self.places)


@intrinsic
def add_rows(typing_context, table, indices, values, start, stop, total):
    """Compute total += sum over p in [start, stop) of values[p] * table[indices[p], :], of WIDTH columns."""
    require_one_type(table, values, total)
    signature = types.void(table, indices, values, types.int64, types.int64, total)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile, address = _ColumnSums.of_width(context, builder, signature, args)
        tile.store(tile.add_entries(args[3], args[4], address, cgutils.true_bit), address)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def add_to_rows(typing_context, table, indices, values, start, stop, change):
    """Compute table[indices[p], :] += values[p] * change for every p in [start, stop), of WIDTH columns."""
    require_one_type(table, values, change)
    signature = types.void(table, indices, values, types.int64, types.int64, change)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows, address = _TableRows.of_width(context, builder, signature, args)
        change = rows.code.load(address)
        with cgutils.for_range_slice(builder, args[3], args[4], _int64(1), _INT64) as (position, _):
            row = rows.row(position)
            rows.code.store(rows.code.load(row) + rows.factor(position) * change, row)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def prefetch(typing_context, array, position):
    """Prefetch the cache line of array[position], as a hint."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = Code(context, builder, types.float32)
        code.prefetch(builder.gep(code.pointer(signature.args[0], args[0]), [args[1]]))
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


@intrinsic(prefer_literal=True)
def sum_columns(typing_context, table, indices, values, start, stop, sums, column, count, vectors, far, adds):
    """Compute sums[c] = sum over p in [start, stop) of values[p] * table[indices[p], c] for a few columns.

    These are ``vectors`` (a literal: 1, 2, 3, 4 or 8) times ``WIDTH`` columns from ``column`` on; if
    ``count`` is not the literal 0, only ``count`` columns of the last vector.  ``far``: whether to prefetch
    rows, ``adds``: whether to add to the values in ``sums``.
    """
    require_one_type(table, values, sums)
    n_vectors, partial = vectors.literal_value, not hasattr(count, "literal_value")
    places = types.int64 if partial else count
    signature = types.void(
        table, indices, values, types.int64, types.int64, sums, types.int64, places, vectors,
        types.boolean, types.boolean,
    )  # fmt: skip

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        tile = _ColumnSums(context, builder, kinds[:2], args[:2])
        tile.vectors, tile.column, tile.far = n_vectors, args[6], args[9]
        tile.values = tile.code.pointer(kinds[2], args[2])
        tile.places = tile.code.first(args[7]) if partial else None
        first = builder.gep(tile.code.pointer(kinds[5], args[5]), [args[6]])
        tile.store(tile.add_entries(args[3], args[4], first, args[10]), first)
        return context.get_dummy_value()

    return signature, codegen


class _EntryDots(_TableRows):
    """Dot products of one row with the rows of four entries at a time."""

    def dots(self, positions: list[Any], left: Any, width: Any, far: Any) -> list[Any]:
        """Return the dot products at four positions, as scalars."""
        builder, code = self.builder, self.code
        rows = [self.row(position) for position in positions]
        ahead = [self.row_ahead(position) for position in positions]
        slots = self.sums(len(rows))
        whole = builder.and_(width, _int64(-WIDTH))
        with cgutils.for_range_slice(builder, _int64(0), whole, _int64(WIDTH), _INT64) as (column, _):
            part = code.load(builder.gep(left, [column]))
            for row, later, slot in zip(rows, ahead, slots, strict=True):
                with builder.if_then(far):
                    self.ask_for(builder.gep(later, [column]), WIDTH)
                self.add_to(slot, part * code.load(builder.gep(row, [column])))
        rest = builder.sub(width, whole)
        with builder.if_then(builder.icmp_signed(">", rest, _int64(0))):
            places = code.first(rest)
            part = code.load_some(builder.gep(left, [whole]), places)
            for row, later, slot in zip(rows, ahead, slots, strict=True):
                with builder.if_then(far):
                    code.prefetch(builder.gep(later, [whole]))
                self.add_to(slot, part * code.load_some(builder.gep(row, [whole]), places))
        return [self.value(slot).total() for slot in slots]


@intrinsic
def entry_dots(typing_context, left, table, indices, start, stop, dots, far):
    """Compute dots[p] = left @ table[indices[p], :len(left)] for every p in [start, stop)."""
    require_one_type(left, table, dots)
    signature = types.void(left, table, indices, types.int64, types.int64, dots, types.boolean)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        entries = _EntryDots(context, builder, kinds[1:3], args[1:3])
        left, (width,) = entries.array(kinds[0], args[0])
        dots = entries.code.pointer(kinds[5], args[5])
        last = builder.sub(args[4], _int64(1))
        with cgutils.for_range_slice(builder, args[3], args[4], _int64(_CHAINS), _INT64) as (position, _):
            # past the end the last entry is repeated, which is cheaper than a separate loop
            later = [builder.add(position, _int64(number)) for number in range(_CHAINS)]
            positions = [entries.earlier(place, last) for place in later]
            for place, dot in zip(positions, entries.dots(positions, left, width, args[6]), strict=True):
                builder.store(dot, builder.gep(dots, [place]))
        return context.get_dummy_value()

    return signature, codegen


@njit(**INNER, fastmath={"contract"})
def multiply_wide(starts, stops, indices, values, table, products, adds):
    """Compute the same as :func:`multiply_table`, for many columns.

    Eight entries at a time: this reads that many table rows in parallel at the rate of the memory.
    """
    for row in range(len(products)):
        sums, start, stop = products[row], starts[row], stops[row]
        if not adds:
            sums[:] = 0
        whole = start + (stop - start) // 8 * 8
        for p in range(start, whole, 8):
            q = p + 4
            a, b = table[indices[p]], table[indices[p + 1]]
            c, d = table[indices[p + 2]], table[indices[p + 3]]
            e, f = table[indices[q]], table[indices[q + 1]]
            g, h = table[indices[q + 2]], table[indices[q + 3]]
            s, t, u, v = values[p], values[p + 1], values[p + 2], values[p + 3]
            w, x, y, z = values[q], values[q + 1], values[q + 2], values[q + 3]
            for i in range(len(sums)):
                half = sums[i] + s * a[i] + t * b[i] + u * c[i] + v * d[i]
                sums[i] = half + w * e[i] + x * f[i] + y * g[i] + z * h[i]
        for p in range(whole, stop):
            s, a = values[p], table[indices[p]]
            for i in range(len(sums)):
                sums[i] += s * a[i]


@njit(nogil=True, cache=True)
def multiply_table(starts, stops, indices, values, table, products, far, adds):
    """Compute ``products[i, c] = sum of values[p] * table[indices[p], c]`` over p in [starts[i], stops[i]).

    i are the sparse rows; the columns c are those of the products.  With ``adds`` the sums are added to
    the present values.
    """
    width = products.shape[1]
    if width >= _WIDE:
        multiply_wide(starts, stops, indices, values, table, products, adds)
        return
    wide = width // (2 * _TILE) * (2 * _TILE) if table.itemsize == 4 else 0
    whole = width // _TILE * _TILE
    rest = width - whole
    is_tile = width == WIDTH and table.shape[1] == WIDTH and not far  # needs no mask
    for row in range(len(products)):
        start, stop, sums = starts[row], stops[row], products[row]
        if adds and start == stop:
            continue
        if is_tile:
            if not adds:
                sums[:] = 0
            add_rows(table, indices, values, start, stop, sums)
            continue
        for column in range(0, wide, 2 * _TILE):
            sum_columns(table, indices, values, start, stop, sums, column, 0, 8, far, adds)
        for column in range(wide, whole, _TILE):
            sum_columns(table, indices, values, start, stop, sums, column, 0, 4, far, adds)
        if rest > 3 * WIDTH:
            sum_columns(table, indices, values, start, stop, sums, whole, rest - 3 * WIDTH, 4, far, adds)
        elif rest > 2 * WIDTH:
            sum_columns(table, indices, values, start, stop, sums, whole, rest - 2 * WIDTH, 3, far, adds)
        elif rest > WIDTH:
            sum_columns(table, indices, values, start, stop, sums, whole, rest - WIDTH, 2, far, adds)
        elif rest > 0:
            sum_columns(table, indices, values, start, stop, sums, whole, rest, 1, far, adds)


@njit(nogil=True, cache=True)
def cut_rows(indptr, indices, size, cuts):
    """Find where the indices of every row pass the multiples of a size.

    ``cuts[b, i]`` becomes the first entry of row i with an index of at least ``b * size``.  Returns
    whether these exist: the indices of a row must not decrease.
    """
    for row in range(cuts.shape[1]):
        block, last = 0, 0
        for entry in range(indptr[row], indptr[row + 1]):
            index = indices[entry]
            if index < last:
                return False
            last = index
            while block * size <= index:
                cuts[block, row] = entry
                block += 1
        cuts[block:, row] = indptr[row + 1]
    return True


@njit(nogil=True, cache=True)
def sample_dots(indptr, indices, left, right, dots, far):
    """Compute ``dots[p] = left[i] @ right[indices[p], :len(left[i])]`` for entries p of sparse rows i."""
    for row in range(len(left)):
        entry_dots(left[row], right, indices, indptr[row], indptr[row + 1], dots, far)
