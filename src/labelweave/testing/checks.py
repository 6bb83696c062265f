"""Checks of custom losses and label covariances, and the comparisons that all checks use."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance
from labelweave.model_files import decode, encode
from labelweave.model_files.storable import is_registered
from labelweave.problems.losses import EntryLoss


class ContractError(AssertionError, ValueError):
    """An object breaks a requirement of its kind; the message names the requirement and the place."""


def require(holds: Any, message: str) -> None:
    if not holds:
        raise ContractError(message)


def called(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise ContractError(f"{what} failed: {error}") from error


def require_array(found: Any, shape: tuple[int, ...], what: str) -> None:
    """Raise unless ``found`` is a finite array of real numbers of this shape."""
    require(
        isinstance(found, np.ndarray) and found.dtype.kind == "f",
        f"{what} returned {_shown(found)}; it must return an array of floating numbers.",
    )
    require(found.shape == shape, f"{what} returned shape {found.shape}; it must return {shape}.")
    if not np.isfinite(found).all():
        place = _place(~np.isfinite(found))
        raise ContractError(f"{what} returned {found[place]} at {_written(place)}; it must be finite.")


def require_close(
    found: Any,
    due: npt.ArrayLike,
    what: str,
    than: str,
    relative: float = 1e-9,
    absolute: float = 1e-12,
    unit: float = 0.0,
) -> None:
    """Raise if an array differs from another, at the place of the largest difference.

    what, than: the names of both in the message.
    absolute: in units of the maximum number of ``due``, or of ``unit`` if that is larger.
    """
    due = np.asarray(due, np.float64)
    require_array(found, due.shape, what)
    scale = float(np.abs(due).max(initial=unit))
    excess = np.abs(found - due) - relative * np.abs(due) - absolute * scale
    if excess.max(initial=0.0) > np.finfo(np.float64).tiny:
        place = tuple(int(k) for k in np.unravel_index(int(excess.argmax()), due.shape))
        raise ContractError(f"{what} is {found[place]:.9g} at {_written(place)}, {than} {due[place]:.9g}.")


def require_semidefinite(matrix: npt.NDArray[Any], what: str) -> None:
    """Raise if a matrix is not symmetric, or has an eigenvalue below zero by more than rounding."""
    require_close(matrix, matrix.T, what, "but its transpose is", 1e-12, 1e-12)
    scale = float(np.abs(matrix).max(initial=0.0))
    least = float(np.linalg.eigvalsh(matrix).min(initial=0.0))
    require(
        least >= -1e-10 * scale * max(1, len(matrix)),
        f"{what} is not positive semi-definite: its smallest eigenvalue is {least:.3g}.",
    )


def through_file(value: Any) -> Any:
    """Return an object saved to and loaded from a model file; None where model files cannot hold it."""
    arrays: dict[str, Any] = {}
    try:
        plain = encode(value, arrays) if is_registered(value) else None
    except TypeError as error:
        if "cannot be stored" not in str(error):  # such as callable kernels
            raise
        return None
    return None if plain is None else decode(plain, arrays)


def _place(where: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(k) for k in np.argwhere(where)[0])


def _written(place: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, place))})"


def _shown(found: Any) -> str:
    kind = f"a {type(found).__name__}"
    return f"{kind} of type {found.dtype}" if isinstance(found, np.ndarray) else kind


_MOST_LABELS, _FEW_LABELS = 1000, 300


@checked
def check_covariance(covariance: LabelCovariance) -> None:
    """Check that a label covariance meets the requirements of the models.

    The check verifies that the matrix is symmetric, positive semi-definite and finite; that blocks, the
    diagonal, subsets of labels, the spectrum, and shrunk and scaled covariances match the matrix from
    ``to_dense``; that products keep single precision, do not depend on threads and are self-adjoint; and
    that a covariance loaded from a model file equals the original.

    Parameters
    ----------
    covariance : LabelCovariance
        The covariance, of up to 1,000 labels.

    Raises
    ------
    ContractError
        If a requirement is not met; the message names it, and the labels.
    ValueError
        If the covariance has no label, or more than 1,000.

    Examples
    --------
    >>> from labelweave import LabelCovariance
    >>> from labelweave.testing import check_covariance
    >>> check_covariance(LabelCovariance.low_rank([[1.0], [0.5], [-0.5]], diagonal=0.1))
    """
    name, n_labels = type(covariance).__name__, _count(covariance)
    if not 0 < n_labels <= _MOST_LABELS:
        raise ValueError(
            f"The covariance has {n_labels} labels; pass 1 to {_MOST_LABELS}, since it is made dense."
        )
    _check_vectors(covariance)
    dense = covariance.to_dense()
    require_array(dense, (n_labels, n_labels), f"{name}.to_dense")
    require_semidefinite(dense, name)
    require_close(covariance.diagonal(), dense.diagonal(), f"{name}.diagonal", "the matrix has")
    ties = np.count_nonzero(dense - np.diag(dense.diagonal())) > 0
    require(
        not (ties and covariance.is_diagonal),
        f"{name}.is_diagonal is true, but labels are correlated; return true only for independent labels.",
    )
    _check_parts(covariance, dense, name)
    _check_products(covariance, dense, name)
    _check_made(covariance, dense, name)
    again = through_file(covariance)
    if again is not None:
        require_close(again.to_dense(), dense, f"{name}, loaded from a model file,", "before", 0.0, 0.0)


def _check_parts(covariance: LabelCovariance, dense: Array, name: str) -> None:
    every = np.arange(len(dense))
    rows, columns = every[::-2], every[1::2]
    twice = np.concatenate([rows, rows[:1]])
    found = covariance.block(twice, columns)
    require_close(found, dense[np.ix_(twice, columns)], f"{name}.block", "the matrix has")
    kept = covariance.columns(rows)
    what = f"{name}.columns"
    require(kept.n_labels == len(rows), f"{what} has n_labels={kept.n_labels}; it must be {len(rows)}.")
    require_close(kept.to_dense(), dense[np.ix_(rows, rows)], what, "the matrix has")
    names = covariance.label_names
    due = None if names is None else list(names[rows])
    found_names = None if kept.label_names is None else list(kept.label_names)
    require(found_names == due, f"{what} has the names {found_names}; keep the names of the labels, {due}.")


def _check_products(covariance: LabelCovariance, dense: Array, name: str) -> None:
    """Check products with arrays of two and three dimensions, in both precisions."""
    random, what = np.random.default_rng(0), f"{name}.matmul"
    left = random.normal(size=(5, 3, len(dense)))
    found = covariance.matmul(left)
    require_close(found, left @ dense, what, "the product is", 1e-9, 1e-10)
    with Workers(2).running() as workers:
        threaded = covariance.matmul(left[:, 0], workers)
        require_close(threaded, left[:, 0] @ dense, f"{what} with threads", "the product is", 1e-9, 1e-10)
        around = covariance.around(lambda vectors: 2.0 * vectors, left[:, 0], workers)
        require_close(around, 2.0 * left[:, 0] @ dense, f"{name}.around", "the product is", 1e-9, 1e-10)
    single = covariance.matmul(left.astype(np.float32))
    require(
        single.dtype == np.float32,
        f"{what} returned {single.dtype} for vectors in single precision; it must return float32.",
    )
    require_close(single, left @ dense, f"{what} in single precision", "the product is", 1e-4, 1e-5)


def _check_made(covariance: LabelCovariance, dense: Array, name: str) -> None:
    """Check the shrunk and scaled covariances, and the eigenvalues."""
    mean = float(dense.diagonal().mean()) if len(dense) else 0.0
    for amount in (0.0, 0.3, 1.0):
        due = (1.0 - amount) * dense + amount * mean * np.eye(len(dense))
        what = f"{name}.shrink({amount:g})"
        require_close(covariance.shrink(amount).to_dense(), due, what, "it must be", 1e-9, 1e-10)
    scaled = covariance.scaled(2.5).to_dense()
    require_close(scaled, 2.5 * dense, f"{name}.scaled(2.5)", "it must be", 1e-9, 1e-10)
    values, vectors = covariance.spectrum()
    what = f"{name}.spectrum"
    require(
        (values > 0).all() and (np.diff(values) <= 0).all(),
        f"{what} returned eigenvalues that are not positive and descending.",
    )
    unit = np.eye(len(values))
    require_close(
        vectors.T @ vectors, unit, f"the product of eigenvectors of {what}", "it must be", 1e-9, 1e-9
    )
    require_close(vectors * values @ vectors.T, dense, f"V diag(e) V^T of {what}", "R is", 1e-9, 1e-9)


Numbers = npt.NDArray[np.float64]

_SCALES = (1e-4, 1e-2, 1.0, 10.0, 1e3)
_USUAL_SCALES = (0.1, 1.0, 10.0)  # of scores in fits
_SHARES = (1.0, 0.5, 0.0)  # of the derivatives, at which duality gaps need conjugates
_STEP = 1e-5


def check_own(part: EntryLoss | LabelCovariance, *, has_gap: bool) -> None:
    """Check a loss or label covariance of a class that is not labelweave's, as estimators do before a fit.

    has_gap: whether the conjugate of a loss gives the model its duality gap.
    """
    if type(part).__module__.partition(".")[0] == __name__.partition(".")[0]:
        return
    if isinstance(part, EntryLoss):
        _check_loss(part, _USUAL_SCALES, has_gap=has_gap)
    else:
        check_covariance(part) if 0 < _count(part) <= _FEW_LABELS else _check_vectors(part)


def _count(covariance: LabelCovariance) -> int:
    n_labels: Any = getattr(covariance, "n_labels", None)
    what = f"{type(covariance).__name__}.n_labels"
    require(isinstance(n_labels, Integral), f"{what} is {n_labels}; it must be the number of labels.")
    return int(n_labels)


def _check_vectors(covariance: LabelCovariance) -> None:
    """Check the diagonal, and that products of a few vectors are those of a covariance."""
    name, n_labels = type(covariance).__name__, _count(covariance)
    require_array(called(f"{name}.diagonal", covariance.diagonal), (n_labels,), f"{name}.diagonal")
    what, (left, right) = f"{name}.matmul", np.random.default_rng(0).normal(size=(2, 3, n_labels))
    found, other = called(what, covariance.matmul, left, None), called(what, covariance.matmul, right, None)
    require_array(found, left.shape, what)
    size = float(np.linalg.norm(found) * np.linalg.norm(left) + np.linalg.norm(other) * np.linalg.norm(right))
    one, other = float(np.vdot(found, right)), float(np.vdot(left, other))
    require(
        abs(one - other) <= 1e-10 * size,
        f"{what} is not self-adjoint: <u R, v> is {one:.9g} and <u, v R> is {other:.9g}.",
    )
    least = float((left * found).sum(axis=1).min())
    require(
        least >= -1e-10 * size,
        f"{name} is not positive semi-definite: <u R, u> is {least:.3g} for a vector u.",
    )


@checked
def check_loss(loss: EntryLoss) -> None:
    """Check that a loss meets the requirements of the solvers.

    The check uses both signs and scores of many magnitudes.  It verifies that all methods work entry by
    entry, keep single precision and return finite numbers; that the loss is convex, unless ``is_convex`` is
    false; that gradient and curvature match finite differences; that the conjugate is that of a convex loss;
    and that a class registered for model files can be saved and loaded.

    Parameters
    ----------
    loss : EntryLoss
        The loss.

    Raises
    ------
    ContractError
        If a requirement is not met; the message names it, and the score.

    Examples
    --------
    >>> from labelweave.testing import EntryLoss, check_loss
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
    _check_loss(loss, _SCALES, has_gap=True)


def _check_loss(loss: EntryLoss, scales: tuple[float, ...], *, has_gap: bool) -> None:
    name = type(loss).__name__
    for scale in scales:
        scores = np.sort(scale * np.random.default_rng(0).normal(size=40))
        for sign in (-1.0, 1.0):
            signs = np.full(scores.shape, sign)
            _check_forms(loss, signs, scores)
            _check_slopes(loss, signs, scores, scale)
            if loss.is_convex and has_gap:
                _check_conjugate(loss, signs, scores)
    _check_unobserved(loss)
    level: Any = loss.threshold
    is_finite = isinstance(level, Real) and bool(np.isfinite(float(level)))
    require(is_finite, f"{name}.threshold is {level!r}; it must be a finite number.")
    _check_stored(loss, f"{name}.value, loaded from a model file,")


def _check_forms(loss: EntryLoss, signs: Numbers, scores: Numbers) -> None:
    name = type(loss).__name__
    wide = scores[:, None] * np.array([2.0, 1.0, 0.5])
    for array in (signs, scores, wide):
        array.flags.writeable = False
    for method in ("value", "gradient", "curvature"):
        compute, what = getattr(loss, method), f"{name}.{method}"
        found = called(what, compute, signs, scores)
        require_array(found, scores.shape, what)
        require_close(compute(signs[:, None], wide)[:, 1], found, f"{what} of a matrix", "of a vector it is")
        single = compute(signs.astype(np.float32), scores.astype(np.float32))
        require(
            getattr(single, "dtype", None) == np.float32,
            f"{what} returned {getattr(single, 'dtype', type(single))} for scores in single precision; "
            "return the type of the scores.",
        )
    bends = loss.curvature(signs, scores)
    require(
        not loss.is_quadratic or (bends == bends[0]).all(),
        f"{name}.is_quadratic is true, but {name}.curvature is not the same for all scores.",
    )
    for found, method in zip(loss.evaluate(signs, scores), ("value", "gradient", "curvature"), strict=True):
        due = getattr(loss, method)(signs, scores)
        what = f"the {method} of {name}.evaluate"
        require_close(found, due, what, f"{name}.{method} returns", 1e-9, 1e-12, unit=1.0)


def _check_slopes(loss: EntryLoss, signs: Numbers, scores: Numbers, scale: float) -> None:
    """Check derivatives: by the mean value theorem a difference lies between the slopes at both ends."""
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
        "the curvature of a convex loss is at least 0; return 0 where another one bends down.",
    )
    size, difference = float(np.abs(slopes[1]).max()), (slopes[2] - slopes[0]) / (2 * step)
    difference = difference if loss.is_convex else np.maximum(difference, 0.0)
    _between(f"{name}.curvature", signs, scores, difference, bends, size / step)


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
    """Check Fenchel's inequality at fractions of the derivatives, and equality at the derivatives."""
    what = f"{type(loss).__name__}.conjugate"
    slopes, values = loss.gradient(signs, scores), loss.value(signs, scores)
    rounding = 1e-9 * float(np.abs(slopes * scores).max() + np.abs(values).max()) + 1e-12
    for share in _SHARES:
        found = called(what, loss.conjugate, signs, share * slopes)
        require_array(found, scores.shape, what)
        table = loss.conjugate(signs[:, None], share * slopes[:, None] * np.ones(2))
        require_close(table, np.stack([found, found], axis=1), f"{what} of a matrix", "of a vector it is")
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
                f"{' at most' if high[k] else ''}.",
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
        require_close(again.value(signs, scores), loss.value(signs, scores), what, "the original is")
