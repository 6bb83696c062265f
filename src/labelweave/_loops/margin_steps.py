"""What happens to ``WIDTH`` labels at one example of a max-margin dual.

``signs`` holds y: +1, -1, or 0 where a label was not observed, so that both
bounds are 0 there and the variable stays put.  The margin that label l asks of a
positive (negative) example is ``margins[0, l]`` (``margins[1, l]``).  ``upper`` is
the weight of the losses, a number for all labels or an array of one each.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from labelweave._loops.vector_code import Code, Vector, require_one_type, require_signs


def _sign_and_gradient(code: Code, pointers: list[Any]) -> tuple[Vector, Vector, Vector]:
    """Return y, the target y m(y), and target - score, from the addresses of scores, signs, margins."""
    scores, signs, margins = pointers
    sign, zero = code.load_int8(signs), code.constant(0.0)
    asked = code.load(code.row(margins, 0)) * sign.maximum(zero)
    target = asked + code.load(code.row(margins, 1)) * sign.minimum(zero)
    return sign, target, target - code.load(scores)


def _weights(code: Code, kind: Any, upper: Any) -> Vector:
    """Load the weights of the losses: one for all labels, or one each."""
    if isinstance(kind, types.Array):
        return code.load(code.pointer(kind, upper))
    return code.repeat(upper)


@intrinsic
def box_step(typing_context, scores, signs, margins, beta, upper, inverse_norms, change, free):
    """Take the best step of each variable alone within its box, as if the others stood still.

    Writes the step to ``change`` and adds the inverse norm of every variable that ends between
    its bounds to ``free``.  Returns twice the dual gain (of a step that no bound cuts short) and the
    duality gap before the step: upper * hinge - beta * gradient, which is >= 0 (Fenchel and Young).
    """
    require_one_type(scores, margins, beta, upper, inverse_norms, change, free)
    require_signs(signs)
    number = scores.dtype
    signature = types.UniTuple(number, 2)(scores, signs, margins, beta, upper, inverse_norms, change, free)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = Code(context, builder, number)
        kinds = signature.args
        at = [None if k == 4 else code.pointer(kinds[k], args[k]) for k in range(8)]
        zero, upper = code.constant(0.0), _weights(code, kinds[4], args[4])
        sign, _, gradient = _sign_and_gradient(code, at[:3])
        old, inverse = code.load(at[3]), code.load(at[5])
        highest, lowest = upper * sign.maximum(zero), upper * sign.minimum(zero)
        new = (old + gradient * inverse).maximum(lowest).minimum(highest)
        step = new - old
        code.store(step, at[6])
        inside = builder.and_(new.above(lowest), highest.above(new))
        code.store(code.load(at[7]) + inverse.where(inside), at[7])
        gain = (step * gradient).total()
        gap = (upper * (sign * gradient).maximum(zero) - old * gradient).total()
        return context.make_tuple(builder, signature.return_type, [gain, gap])

    return signature, codegen


@intrinsic
def add_entry_sums(typing_context, scores, signs, margins, beta, upper, sums):
    """Add upper * hinge, beta * target and beta * score of each label to the three rows of ``sums``."""
    require_one_type(scores, margins, beta, upper)
    require_signs(signs)
    number, wide_number = scores.dtype, sums.dtype
    signature = types.void(scores, signs, margins, beta, upper, sums)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code, wide = Code(context, builder, number), Code(context, builder, wide_number)
        kinds = signature.args
        at = [None if k == 4 else code.pointer(kinds[k], args[k]) for k in range(6)]
        sign, target, gradient = _sign_and_gradient(code, at[:3])
        beta = code.load(at[3])
        hinge = _weights(code, kinds[4], args[4]) * (sign * gradient).maximum(code.constant(0.0))
        for number_of_row, term in enumerate((hinge, beta * target, beta * code.load(at[0]))):
            place = wide.row(at[5], number_of_row)
            wide.store(wide.load(place) + term.widened(wide), place)
        return context.get_dummy_value()

    return signature, codegen
