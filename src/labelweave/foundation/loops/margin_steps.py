"""Steps of ``WIDTH`` labels at one example of a max-margin dual.

``signs`` holds y: +1, -1, or 0 where a label was not observed, so that both
bounds are 0 there and the variable stays put.  The margin that label l requires of a
positive (negative) example is ``margins[0, l]`` (``margins[1, l]``); those of single entries are
an array of one each.  ``upper`` is the weight of the losses, a number or an array of one each.

With ``squared_error`` other than None, the loss is upper * hinge^2.  Its conjugate, beta^2 / (4 upper), is
subtracted from the dual instead of an upper bound, so that the curvature gains the ``ridge`` 1 / (2 upper)
(Hsieh et al., "A dual coordinate descent method for large-scale linear SVM", ICML 2008).
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic, overload

from labelweave.foundation.loops.vector_code import Code, Vector, require_one_type, require_signs

_LEAST, _LEAST_SINGLE = 1e-200, 1e-25  # weights of squared losses whose ridges stay finite


def margins_of(margins: Any, row: Any) -> Any:
    """Return what steps take: margins of labels (2, WIDTH), or those of a row out of (n, 1, WIDTH)."""
    return margins if margins.ndim == 2 else margins[row, 0]


@overload(margins_of, inline="always")
def _margins_of(margins, row):
    if margins.ndim == 2:
        return lambda margins, row: margins
    return lambda margins, row: margins[row, 0]


def _sign_and_gradient(code: Code, kind: Any, pointers: list[Any]) -> tuple[Vector, Vector, Vector]:
    """Return y, the target y m(y), and target - score, from the addresses of scores, signs, margins."""
    scores, signs, margins = pointers
    sign, zero = code.load_int8(signs), code.constant(0.0)
    if kind.ndim == 1:
        target = sign * code.load(margins)
    else:
        asked = code.load(code.row(margins, 0)) * sign.maximum(zero)
        target = asked + code.load(code.row(margins, 1)) * sign.minimum(zero)
    return sign, target, target - code.load(scores)


def _weights(code: Code, kind: Any, upper: Any) -> Vector:
    """Load the weights of the losses: one for all labels, or one each."""
    if isinstance(kind, types.Array):
        return code.load(code.pointer(kind, upper))
    return code.repeat(upper)


def _ridge(code: Code, upper: Vector) -> tuple[Vector, Any]:
    """Return 1 / (2 upper), and where it is finite; elsewhere variables stay 0, as if unobserved."""
    least = code.constant(_LEAST_SINGLE if code.number.bitwidth == 32 else _LEAST)
    return code.constant(0.5) / upper.maximum(least), upper.above(least)


@intrinsic
def box_step(typing_context, scores, signs, margins, beta, upper, inverse_norms, change, free, squared):
    """Take the best step of each variable alone within its box, with the others fixed.

    Writes the step to ``change`` and adds the inverse norm of every variable that ends between
    its bounds to ``free``.  Returns twice the dual gain (of a step that no bound clips) and the
    duality gap before the step: upper * hinge - beta * gradient, which is >= 0 (Fenchel and Young).
    """
    require_one_type(scores, margins, beta, upper, inverse_norms, change, free)
    require_signs(signs)
    number = scores.dtype
    kinds = scores, signs, margins, beta, upper, inverse_norms, change, free, squared
    signature = types.UniTuple(number, 2)(*kinds)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = Code(context, builder, number)
        kinds = signature.args
        at = [None if k == 4 else code.pointer(kinds[k], args[k]) for k in range(8)]
        zero, upper = code.constant(0.0), _weights(code, kinds[4], args[4])
        sign, _, gradient = _sign_and_gradient(code, kinds[2], at[:3])
        old, inverse = code.load(at[3]), code.load(at[5])
        hinge = (sign * gradient).maximum(zero)
        if isinstance(kinds[8], types.NoneType):
            slope, gap = gradient, upper * hinge - old * gradient
            highest, lowest = upper * sign.maximum(zero), upper * sign.minimum(zero)
            new = (old + slope * inverse).maximum(lowest).minimum(highest)
            inside = builder.and_(new.above(lowest), highest.above(new))
        else:
            ridge, has_weight = _ridge(code, upper)
            inverse = (inverse / (code.constant(1.0) + ridge * inverse)).where(has_weight)
            slope = gradient - ridge * old
            gap = upper * hinge * hinge + code.constant(0.5) * ridge * old * old - old * gradient
            new = sign * (sign * (old + slope * inverse)).maximum(zero)
            inside = (sign * new).above(zero)
        step = new - old
        code.store(step, at[6])
        code.store(code.load(at[7]) + inverse.where(inside), at[7])
        totals = [(step * slope).total(), gap.total()]
        return context.make_tuple(builder, signature.return_type, totals)

    return signature, codegen


@intrinsic
def add_entry_sums(typing_context, scores, signs, margins, beta, upper, sums, squared):
    """Add losses, beta * target minus the conjugate, and beta * score to the three rows of ``sums``."""
    require_one_type(scores, margins, beta, upper)
    require_signs(signs)
    number, wide_number = scores.dtype, sums.dtype
    signature = types.void(scores, signs, margins, beta, upper, sums, squared)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code, wide = Code(context, builder, number), Code(context, builder, wide_number)
        kinds = signature.args
        at = [None if k == 4 else code.pointer(kinds[k], args[k]) for k in range(6)]
        sign, target, gradient = _sign_and_gradient(code, kinds[2], at[:3])
        beta, upper = code.load(at[3]), _weights(code, kinds[4], args[4])
        hinge = (sign * gradient).maximum(code.constant(0.0))
        loss, linear = upper * hinge, beta * target
        if not isinstance(kinds[6], types.NoneType):
            loss, linear = loss * hinge, linear - code.constant(0.5) * _ridge(code, upper)[0] * beta * beta
        for number_of_row, term in enumerate((loss, linear, beta * code.load(at[0]))):
            place = wide.row(at[5], number_of_row)
            wide.store(wide.load(place) + term.widened(wide), place)
        return context.get_dummy_value()

    return signature, codegen
