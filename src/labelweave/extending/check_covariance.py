"""Whether an own label covariance is one that the models can work with."""

from __future__ import annotations

import numpy as np

from labelweave.extending.contract import (
    require,
    require_array,
    require_close,
    require_semidefinite,
    through_file,
)
from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance

_MOST_LABELS = 1000


@checked
def check_covariance(covariance: LabelCovariance) -> None:
    """Check that a label covariance does what the models rely on.

    These are tried: that the matrix is symmetric, positive semi-definite and finite; that blocks, diagonal,
    chosen labels, spectrum, shrunk and scaled ones are those of the matrix that ``to_dense`` writes out;
    that products keep single precision, do not depend on threads and are their own adjoint; and that what
    comes back from a model file is the same covariance.

    Parameters
    ----------
    covariance : LabelCovariance
        The covariance, of up to 1,000 labels.

    Raises
    ------
    ContractError
        If something is wrong; the message says what, and for which labels.
    ValueError
        If it has none, or more.

    Examples
    --------
    >>> from labelweave import LabelCovariance
    >>> from labelweave.extending import check_covariance
    >>> check_covariance(LabelCovariance.low_rank([[1.0], [0.5], [-0.5]], diagonal=0.1))
    """
    name, n_labels = type(covariance).__name__, covariance.n_labels
    if not 0 < n_labels <= _MOST_LABELS:
        raise ValueError(
            f"The covariance has {n_labels} labels; give one of 1 to {_MOST_LABELS}, as it is written out."
        )
    dense = covariance.to_dense()
    require_array(dense, (n_labels, n_labels), f"{name}.to_dense")
    require_semidefinite(dense, name)
    require_close(covariance.diagonal(), dense.diagonal(), f"{name}.diagonal", "in the matrix it is")
    ties = np.count_nonzero(dense - np.diag(dense.diagonal())) > 0
    require(
        not (ties and covariance.is_diagonal),
        f"{name}.is_diagonal is true, but labels covary; say so only of independent labels.",
    )
    _check_parts(covariance, dense, name)
    _check_products(covariance, dense, name)
    _check_forms(covariance, dense, name)
    again = through_file(covariance)
    if again is not None:
        require_close(again.to_dense(), dense, f"{name}, from a model file,", "before it was", 0.0, 0.0)


def _check_parts(covariance: LabelCovariance, dense: Array, name: str) -> None:
    every = np.arange(len(dense))
    rows, columns = every[::-2], every[1::2]
    twice = np.concatenate([rows, rows[:1]])
    found = covariance.block(twice, columns)
    require_close(found, dense[np.ix_(twice, columns)], f"{name}.block", "in the matrix it is")
    kept = covariance.columns(rows)
    what = f"{name}.columns"
    require(kept.n_labels == len(rows), f"{what} has n_labels {kept.n_labels} for {len(rows)} labels.")
    require_close(kept.to_dense(), dense[np.ix_(rows, rows)], what, "in the matrix it is")
    names = covariance.label_names
    due = None if names is None else list(names[rows])
    found_names = None if kept.label_names is None else list(kept.label_names)
    require(found_names == due, f"{what} has the names {found_names}; keep those of the labels, {due}.")


def _check_products(covariance: LabelCovariance, dense: Array, name: str) -> None:
    """Check products with arrays of two and three dimensions, in both precisions."""
    random, what = np.random.default_rng(0), f"{name}.matmul"
    left, right = random.normal(size=(2, 5, 3, len(dense)))
    found = covariance.matmul(left)
    require_close(found, left @ dense, what, "by the matrix", 1e-9, 1e-10)
    one, other = float(np.vdot(found, right)), float(np.vdot(left, covariance.matmul(right)))
    size = float(np.abs(left).max() * np.abs(right).max() * np.abs(dense).max(initial=0.0) * left.size)
    require(
        abs(one - other) <= 1e-10 * size,
        f"{what} is not its own adjoint: <u R, v> is {one:.9g} and <u, v R> is {other:.9g}.",
    )
    with Workers(2).running() as workers:
        threaded = covariance.matmul(left[:, 0], workers)
        require_close(threaded, left[:, 0] @ dense, f"{what} with threads", "by the matrix", 1e-9, 1e-10)
        around = covariance.around(lambda vectors: 2.0 * vectors, left[:, 0], workers)
        require_close(around, 2.0 * left[:, 0] @ dense, f"{name}.around", "by the matrix", 1e-9, 1e-10)
    single = covariance.matmul(left.astype(np.float32))
    require(
        single.dtype == np.float32,
        f"{what} gave {single.dtype} for vectors in single precision; it must give float32.",
    )
    require_close(single, left @ dense, f"{what} in single precision", "by the matrix", 1e-4, 1e-5)


def _check_forms(covariance: LabelCovariance, dense: Array, name: str) -> None:
    """Check what other covariances are made of this one, and its eigenvalues."""
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
        f"{what} gave eigenvalues that are not positive and descending.",
    )
    unit = np.eye(len(values))
    require_close(
        vectors.T @ vectors, unit, f"the product of eigenvectors of {what}", "it must be", 1e-9, 1e-9
    )
    require_close(vectors * values @ vectors.T, dense, f"V diag(e) V^T of {what}", "R is", 1e-9, 1e-9)
