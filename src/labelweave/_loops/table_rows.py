"""Sums of rows of a table, and dot products with them, kept in vector registers.

A table has any number of columns.  Numba keeps the sums of such a loop in memory; here
up to 128 columns of a sum stay in registers while the rows that a sparse example names go
by.  The vector that is not full is read and written under a mask, never beyond the end.

Rows of a table too large for the caches are asked for some entries ahead, into the second level
cache: the first one waits for fewer lines at a time (16 against 24 GB/s measured).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from labelweave._loops.vector_code import WIDTH, Code, Vector, require_one_type

__all__ = ["WIDTH", "entry_dots", "sum_columns"]

_INT64 = ir.IntType(64)
_CHAINS = 4  # independent sums, to hide the latency of an addition
_AHEAD = 24  # entries; 8 and 16 measured slower, 48 no faster
_LINE = 64  # bytes


def _int64(number: int) -> Any:
    return ir.Constant(_INT64, number)


class _TableRows:
    """The rows of a table that the entries of a sparse matrix name."""

    def __init__(self, context: Any, builder: Any, kinds: tuple[Any, Any], arrays: tuple[Any, Any]) -> None:
        self.code = Code(context, builder, kinds[0].dtype)
        self.builder, self.index_type = builder, kinds[1].dtype
        self.table, (_, self.stride) = self.array(kinds[0], arrays[0])
        self.indices, (length,) = self.array(kinds[1], arrays[1])
        self.last = builder.sub(length, _int64(1))

    def array(self, kind: Any, array: Any) -> tuple[Any, list[Any]]:
        """Return an array's first address and its shape."""
        made = cgutils.create_struct_proxy(kind)(self.code.context, self.builder, value=array)
        return made.data, cgutils.unpack_tuple(self.builder, made.shape)

    def row(self, position: Any) -> Any:
        """Return the address of the row that one entry names."""
        index = self.builder.load(self.builder.gep(self.indices, [position]))
        index = self.code.context.cast(self.builder, index, self.index_type, types.int64)
        return self.builder.gep(self.table, [self.builder.mul(index, self.stride)])

    def row_ahead(self, position: Any) -> Any:
        """Return the address of the row of an entry further on."""
        return self.row(self.earlier(self.builder.add(position, _int64(_AHEAD)), self.last))

    def ask_for(self, address: Any, width: int) -> None:
        """Ask for the cache lines of some columns."""
        for column in range(0, width, _LINE // self.code.align):
            self.code.prefetch(self.builder.gep(address, [_int64(column)]))

    def earlier(self, first: Any, second: Any) -> Any:
        """Return the smaller of two positions."""
        return self.builder.select(self.builder.icmp_signed("<", first, second), first, second)

    def sums(self, number: int) -> list[Any]:
        """Make stack slots of vectors, 0 at first; LLVM turns them into registers."""
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

    vectors: int
    places: Any  # of the last vector, None for all
    values: Any
    column: Any
    far: Any  # whether to ask for rows ahead

    def add_entry(self, position: Any, slots: list[Any]) -> None:
        """Add one entry's multiple of its row."""
        builder, code = self.builder, self.code
        row = builder.gep(self.row(position), [self.column])
        value = code.repeat(builder.load(builder.gep(self.values, [position])))
        with builder.if_then(self.far):  # LLVM makes two loops of it
            self.ask_for(builder.gep(self.row_ahead(position), [self.column]), self.vectors * WIDTH)
        for number, slot in enumerate(slots):
            self.add_to(slot, value * self.loaded(row, number))

    def add_entries(self, start: Any, stop: Any, address: Any, adds: Any) -> list[Vector]:
        """Add up the entries, several chains at a time where there are few vectors."""
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


@intrinsic(prefer_literal=True)
def sum_columns(typing_context, table, indices, values, start, stop, sums, column, count, vectors, far, adds):  # type: ignore[no-untyped-def]
    """Compute sums[c] = sum over p in [start, stop) of values[p] * table[indices[p], c] for a few columns.

    These are ``vectors`` (a literal: 1, 2, 3, 4 or 8) times ``WIDTH`` columns from ``column`` on; where
    ``count`` is not the literal 0, only ``count`` columns of the last vector.  ``far`` tells whether to ask
    for rows ahead, ``adds`` whether to add to what stands in ``sums``.
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
        """Return the dot products at four positions; scalars."""
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
def entry_dots(typing_context, left, table, indices, start, stop, dots, far):  # type: ignore[no-untyped-def]
    """Compute dots[p] = left @ table[indices[p], :len(left)] for every p in [start, stop).

    ``far`` tells whether to ask for rows ahead.
    """
    require_one_type(left, table, dots)
    signature = types.void(left, table, indices, types.int64, types.int64, dots, types.boolean)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        entries = _EntryDots(context, builder, kinds[1:3], args[1:3])
        left, (width,) = entries.array(kinds[0], args[0])
        dots = entries.code.pointer(kinds[5], args[5])
        last = builder.sub(args[4], _int64(1))
        with cgutils.for_range_slice(builder, args[3], args[4], _int64(_CHAINS), _INT64) as (position, _):
            # past the end the last entry is taken again, which costs less than a loop of its own
            later = [builder.add(position, _int64(number)) for number in range(_CHAINS)]
            positions = [entries.earlier(place, last) for place in later]
            for place, dot in zip(positions, entries.dots(positions, left, width, args[6]), strict=True):
                builder.store(dot, builder.gep(dots, [place]))
        return context.get_dummy_value()

    return signature, codegen
