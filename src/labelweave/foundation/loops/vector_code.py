"""Arithmetic on vectors of ``WIDTH`` numbers for building LLVM code.

Numba has no vector type, and LLVM unrolls a Numba loop of constant length into
scalar code before it vectorizes (measured: 7.1 ns against 2.0 ns per non-zero
in a gather of rows).  A few innermost steps are therefore written with
:class:`Vector`, which reads like array code and becomes vector instructions; LLVM
splits them for processors with narrower registers.  Nothing here runs at run time.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError

from labelweave.foundation.loops import WIDTH

_FAST = ["fast"]


def require_one_type(*kinds: Any) -> None:
    """Raise for arrays and scalars of different types, which the code would silently misread.

    *kinds: types of arrays (C-contiguous) or numbers.
    Raises TypingError if they differ, or an array is not contiguous.
    """
    numbers = {kind.dtype if isinstance(kind, types.Array) else kind for kind in kinds}
    if len(numbers) > 1 or any(isinstance(kind, types.Array) and kind.layout != "C" for kind in kinds):
        raise TypingError(f"arrays of the kinds {kinds} do not match; pass contiguous arrays of one type")


def require_signs(kind: Any) -> None:
    """Raise TypingError for signs other than a C-contiguous array of int8."""
    if not isinstance(kind, types.Array) or kind.dtype != types.int8 or kind.layout != "C":
        raise TypingError(f"signs have the kind {kind}; pass a contiguous array of int8")


class Code:
    """The code under construction in one intrinsic, for one type of number.

    context, builder: numba's target context and llvmlite's builder, as given to an intrinsic.
    """

    def __init__(self, context: Any, builder: Any, number: Any) -> None:
        self.context, self.builder, self.number = context, builder, number
        self.scalar = context.get_value_type(number)
        self.type = ir.VectorType(self.scalar, WIDTH)
        self.align = number.bitwidth // 8

    def pointer(self, array_type: Any, array: Any) -> Any:
        return cgutils.create_struct_proxy(array_type)(self.context, self.builder, value=array).data

    def row(self, pointer: Any, number: int) -> Any:
        """Return the address of row ``number`` of an array of ``WIDTH`` columns."""
        return self.builder.gep(pointer, [ir.Constant(ir.IntType(64), number * WIDTH)])

    def load(self, pointer: Any) -> Vector:
        address = self.builder.bitcast(pointer, self.type.as_pointer())
        return Vector(self, self.builder.load(address, align=self.align))

    def store(self, vector: Vector, pointer: Any) -> None:
        address = self.builder.bitcast(pointer, self.type.as_pointer())
        self.builder.store(vector.value, address, align=self.align)

    def first(self, count: Any) -> Any:
        """Compare the positions with a number (int64); the first ``count`` are for :meth:`load_some`."""
        numbers = ir.VectorType(ir.IntType(32), WIDTH)
        undefined = ir.Constant(numbers, ir.Undefined)
        narrow = self.builder.trunc(count, ir.IntType(32))
        one = self.builder.insert_element(undefined, narrow, ir.Constant(ir.IntType(32), 0))
        every = self.builder.shuffle_vector(one, undefined, ir.Constant(numbers, [0] * WIDTH))
        return self.builder.icmp_signed("<", ir.Constant(numbers, list(range(WIDTH))), every)

    def load_some(self, pointer: Any, places: Any) -> Vector:
        """Load the numbers at some positions, 0 elsewhere; other memory is not read."""
        zero = self.constant(0.0).value
        return Vector(self, self._masked("load", self.type, [], pointer, places, [zero]))

    def store_some(self, vector: Vector, pointer: Any, places: Any) -> None:
        """Store the numbers at some positions; other memory is not written."""
        self._masked("store", ir.VoidType(), [vector.value], pointer, places, [])

    def _masked(
        self, name: str, result: Any, before: list[Any], pointer: Any, places: Any, after: list[Any]
    ) -> Any:
        address = self.builder.bitcast(pointer, self.type.as_pointer())
        arguments = [*before, address, ir.Constant(ir.IntType(32), self.align), places, *after]
        function_type = ir.FunctionType(result, [argument.type for argument in arguments])
        name = f"llvm.masked.{name}.v{WIDTH}f{self.number.bitwidth}.p0"
        function = cgutils.get_or_insert_function(self.builder.module, function_type, name)
        return self.builder.call(function, arguments)

    def prefetch(self, pointer: Any) -> None:
        """Prefetch the cache line of an address into the second-level cache, as a hint."""
        byte_pointer, int32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, int32, int32, int32])
        function = cgutils.get_or_insert_function(self.builder.module, function_type, "llvm.prefetch.p0")
        # read access, keep in all cache levels, data cache
        self.builder.call(
            function, [self.builder.bitcast(pointer, byte_pointer), int32(0), int32(3), int32(1)]
        )

    def load_int8(self, pointer: Any) -> Vector:
        narrow = ir.VectorType(ir.IntType(8), WIDTH)
        loaded = self.builder.load(self.builder.bitcast(pointer, narrow.as_pointer()), align=1)
        return Vector(self, self.builder.sitofp(loaded, self.type))

    def repeat(self, scalar: Any) -> Vector:
        undefined = ir.Constant(self.type, ir.Undefined)
        first = self.builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        return Vector(self, self.builder.shuffle_vector(first, undefined, lanes))

    def constant(self, value: float) -> Vector:
        return Vector(self, ir.Constant(self.type, [value] * WIDTH))


class Vector:
    """``WIDTH`` numbers in code under construction."""

    def __init__(self, code: Code, value: Any) -> None:
        self.code, self.value = code, value

    def __add__(self, other: Vector) -> Vector:
        return Vector(self.code, self.code.builder.fadd(self.value, other.value, flags=_FAST))

    def __sub__(self, other: Vector) -> Vector:
        return Vector(self.code, self.code.builder.fsub(self.value, other.value, flags=_FAST))

    def __mul__(self, other: Vector) -> Vector:
        return Vector(self.code, self.code.builder.fmul(self.value, other.value, flags=_FAST))

    def __truediv__(self, other: Vector) -> Vector:
        return Vector(self.code, self.code.builder.fdiv(self.value, other.value, flags=_FAST))

    def above(self, other: Vector) -> Any:
        """Compare entry by entry; the result is for :meth:`where`."""
        return self.code.builder.fcmp_ordered(">", self.value, other.value)

    def where(self, condition: Any) -> Vector:
        """Keep the numbers where the condition holds, 0 elsewhere."""
        zero = self.code.constant(0.0)
        return Vector(self.code, self.code.builder.select(condition, self.value, zero.value))

    def maximum(self, other: Vector) -> Vector:
        return Vector(self.code, self.code.builder.select(self.above(other), self.value, other.value))

    def minimum(self, other: Vector) -> Vector:
        return Vector(self.code, self.code.builder.select(self.above(other), other.value, self.value))

    def widened(self, wide: Code) -> Vector:
        if self.code.number == wide.number:
            return self
        return Vector(wide, self.code.builder.fpext(self.value, wide.type))

    def total(self) -> Any:
        code = self.code
        bits = code.number.bitwidth
        function_type = ir.FunctionType(code.scalar, [code.scalar, code.type])
        name = f"llvm.vector.reduce.fadd.v{WIDTH}f{bits}"
        function = cgutils.get_or_insert_function(code.builder.module, function_type, name)
        return code.builder.call(function, [ir.Constant(code.scalar, 0.0), self.value], fastmath=_FAST)
