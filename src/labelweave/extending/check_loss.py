"""Whether an own loss is one that the solvers can work with."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.extending.contract import require, require_array, require_close, through_file
from labelweave.foundation.arguments import checked
from labelweave.problems.losses import EntryLoss

Numbers = npt.NDArray[np.float64]

_SCALES = (1e-4, 1e-2, 1.0, 10.0, 1e3)
_SHARES = (1.0, 0.5, 0.0)  # of derivatives, at which duality gaps ask for conjugates
_STEP = 1e-5


@checked
def check_loss(loss: EntryLoss) -> None:
    """Check that a loss does what the solvers rely on.

    These are tried, with both signs and scores of many sizes: that all methods work entry by entry, keep
    single precision and give finite numbers; that the loss is convex; that gradient and curvature are the
    derivatives, by finite differences; that the conjugate is that of the loss; and, for a class that is
    registered for model files, that it comes back from one.

    Parameters
    ----------
    loss : EntryLoss
        The loss.

    Raises
    ------
    ContractError
        If something is wrong; the message says what, and at which score.

    Examples
    --------
    >>> from labelweave.extending import EntryLoss, check_loss
    >>> class SquaredMargin(EntryLoss):
    ...     def value(self, signs, scores):
    ...         return (scores - signs) ** 2 / 2
    ...
    ...     def gradient(self, signs, scores):
    ...         return scores - signs
    ...
    ...     def curvature(self, signs, scores):
    ...         return scores * 0 + 1
    ...
    ...     def conjugate(self, signs, gradients):
    ...         return gradients * (gradients / 2 + signs)
    >>> check_loss(SquaredMargin())
    """
    name = type(loss).__name__
    for scale in _SCALES:
        scores = np.sort(scale * np.random.default_rng(0).normal(size=40))
        for sign in (-1.0, 1.0):
            signs = np.full(scores.shape, sign)
            _check_forms(loss, signs, scores)
            _check_slopes(loss, signs, scores, scale)
            _check_conjugate(loss, signs, scores)
    _check_unobserved(loss)
    require(np.isfinite(float(loss.threshold)), f"{name}.threshold is {loss.threshold}; it must be finite.")
    _check_stored(loss, f"{name}.value, from a model file,")


def _check_forms(loss: EntryLoss, signs: Numbers, scores: Numbers) -> None:
    name = type(loss).__name__
    wide = scores[:, None] * np.array([2.0, 1.0, 0.5])
    for method in ("value", "gradient", "curvature"):
        compute, what = getattr(loss, method), f"{name}.{method}"
        found = compute(signs, scores)
        require_array(found, scores.shape, what)
        require_close(compute(signs[:, None], wide)[:, 1], found, f"{what} of a table", "of a list it is")
        single = compute(signs.astype(np.float32), scores.astype(np.float32))
        require(
            getattr(single, "dtype", None) == np.float32,
            f"{what} gave {getattr(single, 'dtype', type(single))} for scores in single precision; "
            "keep the type of the scores.",
        )
    for found, method in zip(loss.evaluate(signs, scores), ("value", "gradient", "curvature"), strict=True):
        due = getattr(loss, method)(signs, scores)
        what = f"the {method} of {name}.evaluate"
        require_close(found, due, what, f"by {name}.{method} it is", 1e-9, 1e-12, unit=1.0)


def _check_slopes(loss: EntryLoss, signs: Numbers, scores: Numbers, scale: float) -> None:
    """Check derivatives: by the mean value theorem a difference lies between those on both sides."""
    step = _STEP * np.maximum(scale, 1e-2)
    points = [scores - step, scores, scores + step]
    values = [loss.value(signs, point) for point in points]
    slopes = [loss.gradient(signs, point) for point in points]
    bends = [loss.curvature(signs, point) for point in points]
    name = type(loss).__name__
    size = max(float(np.abs(values[1]).max()), step * float(np.abs(slopes[1]).max()))
    _between(f"{name}.gradient", signs, scores, (values[2] - values[0]) / (2 * step), slopes, size / step)
    low = int(np.argmin(bends[1]))
    require(
        bends[1][low] >= 0,
        f"{name}.curvature at sign {signs[low]:g} and score {scores[low]:.6g} is {bends[1][low]:.6g}; "
        "a convex loss has none below 0.",
    )
    size = float(np.abs(slopes[1]).max())
    _between(f"{name}.curvature", signs, scores, (slopes[2] - slopes[0]) / (2 * step), bends, size / step)


def _between(
    what: str, signs: Numbers, scores: Numbers, difference: Numbers, around: list[Any], rounding: float
) -> None:
    low, high = np.minimum.reduce(around), np.maximum.reduce(around)
    slack = 1e-5 * np.maximum(np.abs(low), np.abs(high)) + 1e-14 * rounding + 1e-10
    outside = np.flatnonzero((difference < low - slack) | (difference > high + slack))
    if len(outside):
        k = int(outside[0])
        require(
            False,
            f"{what} at sign {signs[k]:g} and score {scores[k]:.6g} is {around[1][k]:.6g}, but finite "
            f"differences give {difference[k]:.6g}.",
        )


def _check_conjugate(loss: EntryLoss, signs: Numbers, scores: Numbers) -> None:
    """Check Fenchel's inequality at shares of derivatives, and that it is an equality at derivatives."""
    what = f"{type(loss).__name__}.conjugate"
    slopes, values = loss.gradient(signs, scores), loss.value(signs, scores)
    rounding = 1e-9 * float(np.abs(slopes * scores).max() + np.abs(values).max()) + 1e-12
    for share in _SHARES:
        found = loss.conjugate(signs, share * slopes)
        require_array(found, scores.shape, what)
        reached = np.max(share * slopes[:, None] * scores - values, axis=1)
        low = found < reached - rounding
        high = found > slopes * scores - values + rounding if share == 1.0 else np.zeros(len(found), bool)
        wrong = np.flatnonzero(low | high)
        if len(wrong):
            k = int(wrong[0])
            require(
                False,
                f"{what} at sign {signs[k]:g} and gradient {share * slopes[k]:.6g} is {found[k]:.9g}, but "
                f"gradient * score - value reaches {reached[k]:.9g}"
                f"{' and no more' if high[k] else ''}.",
            )


def _check_unobserved(loss: EntryLoss) -> None:
    scores = np.linspace(-5.0, 5.0, 11)
    for method in ("value", "gradient", "curvature"):
        found = getattr(loss, method)(np.zeros(11), scores)
        require_array(found, scores.shape, f"{type(loss).__name__}.{method} at sign 0")


def _check_stored(loss: EntryLoss, what: str) -> None:
    again = through_file(loss)
    if again is not None:
        signs, scores = np.ones(9), np.linspace(-3.0, 3.0, 9)
        require_close(again.value(signs, scores), loss.value(signs, scores), what, "before it was")
