"""Gather and scatter rows of ``WIDTH`` numbers, kept in vector registers.

The weights of ``WIDTH`` labels stand side by side, one row a feature, so that a
row is one or two cache lines.  Both operations visit the rows that a sparse
example names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from labelweave._loops.vector_code import WIDTH, Code, Vector, require_one_type

__all__ = ["WIDTH", "add_rows", "add_to_rows", "prefetch"]

_UNROLL = 4  # independent sums, to hide the latency of an addition
_INT64 = ir.IntType(64)


class _SparseRow:
    """What both operations need: the rows that one sparse example names, and its values."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        weights, indices, values = signature.args[:3]
        self.code = Code(context, builder, weights.dtype)
        self.builder, self.index_type = builder, indices.dtype
        self.weights = self.code.pointer(weights, args[0])
        self.indices = self.code.pointer(indices, args[1])
        self.values = self.code.pointer(values, args[2])
        self.start = context.cast(builder, args[3], signature.args[3], types.int64)
        self.stop = context.cast(builder, args[4], signature.args[4], types.int64)
        self.vector = self.code.pointer(signature.args[5], args[5])

    def entry(self, position: Any) -> tuple[Any, Vector]:
        """Return the address of the weight row and the value (repeated) at one non-zero."""
        builder = self.builder
        index = builder.load(builder.gep(self.indices, [position]))
        index = self.code.context.cast(builder, index, self.index_type, types.int64)
        address = builder.gep(self.weights, [builder.mul(index, ir.Constant(_INT64, WIDTH))])
        return address, self.code.repeat(builder.load(builder.gep(self.values, [position])))

    def for_each(self, start: Any, stop: Any, step: int, body: Callable[[Any], None]) -> None:
        step_constant = ir.Constant(_INT64, step)
        with cgutils.for_range_slice(self.builder, start, stop, step_constant, _INT64) as (position, _):
            body(position)


@intrinsic
def add_rows(typing_context, weights, indices, values, start, stop, total):  # type: ignore[no-untyped-def]
    """Compute total += sum over p in [start, stop) of values[p] * weights[indices[p], :]."""
    require_one_type(weights, values, total)
    signature = types.void(weights, indices, values, start, stop, total)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = _SparseRow(context, builder, signature, args)
        code = row.code
        # stack slots, which LLVM turns into registers
        sums = [cgutils.alloca_once(builder, code.type) for _ in range(_UNROLL)]
        builder.store(code.load(row.vector).value, sums[0])
        for other in sums[1:]:
            builder.store(code.constant(0.0).value, other)

        def add(position: Any, target: Any) -> None:
            address, value = row.entry(position)
            sum_so_far = Vector(code, builder.load(target))
            builder.store((sum_so_far + value * code.load(address)).value, target)

        def add_four(position: Any) -> None:
            for k, target in enumerate(sums):
                add(builder.add(position, ir.Constant(_INT64, k)), target)

        length = builder.sub(row.stop, row.start)
        whole = builder.and_(length, ir.Constant(_INT64, ~(_UNROLL - 1)))
        middle = builder.add(row.start, whole)
        row.for_each(row.start, middle, _UNROLL, add_four)
        row.for_each(middle, row.stop, 1, lambda position: add(position, sums[0]))
        first, second, third, fourth = (Vector(code, builder.load(part)) for part in sums)
        code.store((first + second) + (third + fourth), row.vector)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def add_to_rows(typing_context, weights, indices, values, start, stop, change):  # type: ignore[no-untyped-def]
    """Compute weights[indices[p], :] += values[p] * change for every p in [start, stop)."""
    require_one_type(weights, values, change)
    signature = types.void(weights, indices, values, start, stop, change)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = _SparseRow(context, builder, signature, args)
        code = row.code
        change = code.load(row.vector)

        def add(position: Any) -> None:
            address, value = row.entry(position)
            code.store(code.load(address) + value * change, address)

        row.for_each(row.start, row.stop, 1, add)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def prefetch(typing_context, array, position):  # type: ignore[no-untyped-def]
    """Ask for the cache line of array[position]; no more than a hint."""
    signature = types.void(array, position)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array_type, position_type = signature.args
        code = Code(context, builder, types.float32)
        position = context.cast(builder, args[1], position_type, types.int64)
        address = builder.gep(code.pointer(array_type, args[0]), [position])
        byte_pointer, int32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, int32, int32, int32])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        # read access, keep in all cache levels, data cache
        builder.call(function, [builder.bitcast(address, byte_pointer), int32(0), int32(3), int32(1)])
        return context.get_dummy_value()

    return signature, codegen
