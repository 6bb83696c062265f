"""Label covariances as a dense matrix, of low rank plus a diagonal, or as a weighted sum of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.array_types import Array, LabelsByLabels, PerLabel
from labelweave.foundation.arrays import RowPanels, Workers, namespace, numbers_of
from labelweave.foundation.arrays.linear_algebra import is_numpy, like
from labelweave.labels.covariance.base import LabelCovariance, in_order_of
from labelweave.labels.covariance.constructors import KINDS
from labelweave.labels.covariance.sources import check_amount, check_scale, check_writable
from labelweave.labels.label_names import checked_names
from labelweave.model_files import storable
from labelweave.model_files.schema import Items, Made, Names, Numbers, Optional

_TIE = 1e-6


@storable("DenseCovariance", {"matrix": Numbers("L L"), "label_names": Optional(Names("L"))})
class DenseCovariance(LabelCovariance):
    """Any positive semi-definite matrix (L, L)."""

    kind = "dense"

    def __init__(self, matrix: Any, label_names: Sequence[str] | Array | None = None) -> None:
        self.matrix = _checked_semidefinite(np.asarray(matrix, dtype=np.float64))
        self.n_labels = len(self.matrix)
        self.label_names = checked_names(label_names, self.n_labels)

    @classmethod
    def from_semidefinite(cls, matrix: LabelsByLabels, label_names: Array | None = None) -> DenseCovariance:
        """Make a covariance from a valid matrix, without the cost of a check."""
        made = cls.__new__(cls)
        made.matrix, made.n_labels = matrix, len(matrix)
        return made._named(label_names)

    def columns(self, labels: Array) -> LabelCovariance:
        return self.from_semidefinite(self.matrix[np.ix_(labels, labels)], self._names_of(labels))

    def block(self, rows: Array, columns: Array) -> Array:
        return np.asarray(self.matrix[np.ix_(rows, columns)])

    def diagonal(self) -> Array:
        return np.asarray(self.matrix.diagonal())

    def matmul(self, vectors: Array, workers: Workers | None = None) -> Array:
        matrix, xp = like(self.matrix, vectors), namespace(vectors)
        if workers is None:
            return vectors @ matrix
        flat = workers.matmul(xp.reshape(vectors, (-1, self.n_labels)), matrix)
        return xp.reshape(flat, vectors.shape)

    def shrink(self, amount: float) -> DenseCovariance:
        check_amount(amount)
        shrunk = (1.0 - amount) * self.matrix
        shrunk.flat[:: self.n_labels + 1] += amount * self.diagonal().sum() / max(1, self.n_labels)
        return self.from_semidefinite(shrunk, self.label_names)

    def scaled(self, scale: float) -> DenseCovariance:
        check_scale(scale)
        return self.from_semidefinite(self.matrix * float(scale), self.label_names)

    def spectrum(self) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh(self.matrix)
        # a negative eigenvalue shows the size of the errors of the matrix
        return _largest_first(values, vectors, max(0.0, -float(values.min(initial=0.0))))


def _checked_semidefinite(matrix: LabelsByLabels) -> LabelsByLabels:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"A label covariance has shape {matrix.shape}; it must be square, (labels, labels).")
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise ValueError(
            f"The label covariance at ({row}, {column}) is {matrix[row, column]}; it must be finite."
        )
    scale = max(float(np.abs(matrix).max(initial=0.0)), np.finfo(float).tiny)
    _refuse_asymmetry(matrix, 1e-8 * scale)
    smallest = float(np.linalg.eigvalsh(matrix).min(initial=0.0))
    if smallest < -1e-8 * scale * len(matrix):
        raise ValueError(
            f"The label covariance is not positive semi-definite: its smallest eigenvalue is {smallest:.3g}. "
            "Add that much to the diagonal, or shrink the off-diagonal entries."
        )
    return matrix / 2 + matrix.T / 2


def _refuse_asymmetry(matrix: Array, allowed: float) -> None:
    asymmetry = np.abs(matrix - matrix.T)
    if asymmetry.max(initial=0.0) > allowed:
        row, column = np.unravel_index(int(asymmetry.argmax()), asymmetry.shape)
        raise ValueError(
            f"The label covariance is not symmetric: entry ({row}, {column}) is {matrix[row, column]} and "
            f"({column}, {row}) is {matrix[column, row]}."
        )


def _largest_first(values: Array, vectors: Array, noise: float) -> tuple[Array, Array]:
    """Return the eigenvalues (r,) above rounding, and eigenvectors whose largest entries are positive."""
    rounding = len(vectors) * np.finfo(np.float64).eps * values.max(initial=0.0)
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > max(noise, rounding)]
    return values[order], _with_fixed_signs(vectors[:, order])


def _with_fixed_signs(vectors: Array) -> Array:
    """Make the largest entry of every column positive; the first of nearly equal ones."""
    if vectors.size == 0:
        return vectors
    sizes = np.abs(vectors)
    largest = np.argmax(sizes >= (1.0 - _TIE) * sizes.max(axis=0), axis=0)
    return np.asarray(vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])]))


_SPARSE_WORK = 10  # cost per entry of a sparse factor, in entries of a dense matrix


@storable(
    "FactorCovariance",
    {
        "factor": Numbers("L r", sparse=True),
        "diagonal": Numbers("L", least=0),
        "label_names": Optional(Names("L")),
    },
)
class FactorCovariance(LabelCovariance):
    """A diagonal plus a factor times its transpose; the factor may be sparse.

    Shapes: factor (L, r), diagonal (L,).  The structure of a user's sparse factor is checked in
        :meth:`LabelCovariance.low_rank`, and that in a model file when the file is read.
    """

    def __init__(
        self, factor: Any, diagonal: Any = 0.0, label_names: Sequence[str] | Array | None = None
    ) -> None:
        self.factor: Any = _checked_factor(factor)
        self.n_labels = int(self.factor.shape[0])
        self.own_variance = _checked_own_variance(diagonal, self.n_labels)
        self.label_names = checked_names(label_names, self.n_labels)

    def to_state(self) -> dict[str, Any]:
        return super().to_state() | {"diagonal": self.own_variance}

    @property
    def kind(self) -> str:
        return f"rank {self.factor.shape[1]}" + (" plus diagonal" if self.own_variance.any() else "")

    def columns(self, labels: Array) -> LabelCovariance:
        kept = FactorCovariance(self.factor[labels], self.own_variance[labels])
        return kept._named(self._names_of(labels))

    def block(self, rows: Array, columns: Array) -> Array:
        rows, columns = np.asarray(rows), np.asarray(columns)
        product = self.factor[rows] @ self.factor[columns].T
        dense = product.toarray() if sp.issparse(product) else np.asarray(product)
        return dense + np.where(rows[:, None] == columns[None, :], self.own_variance[rows][:, None], 0.0)

    def diagonal(self) -> Array:
        return np.asarray((self.factor * self.factor).sum(axis=1)).ravel() + self.own_variance

    @cached_property
    def ties_labels(self) -> bool:
        """Whether any two labels covary, by a column of the factor that both share."""
        return bool((self._holders > 1).any())

    @cached_property
    def _holders(self) -> Array:
        is_sparse = sp.issparse(self.factor)
        return np.bincount(self.factor.indices) if is_sparse else np.count_nonzero(self.factor, axis=0)

    @cached_property
    def _root(self) -> Any:
        """The nonzero columns of the factor; None if the dense matrix over all labels is cheaper.

        They are few, or sparse and more than the labels, as for a tree.
        """
        used = np.flatnonzero(self._holders)
        is_cheap = sp.issparse(self.factor) and _SPARSE_WORK * self.factor.nnz <= self.n_labels**2
        return self.factor[:, used] if is_cheap or len(used) < self.n_labels else None

    @cached_property
    def _matrix(self) -> Array:
        return self.to_dense()

    def matmul(self, vectors: Array, workers: Workers | None = None) -> Array:
        xp = namespace(vectors)
        flat: Any = xp.reshape(vectors, (-1, self.n_labels))
        own = like(self.own_variance, vectors)
        if workers is None:
            factor = _factor_like(self.factor, vectors)
            product = flat * own + (flat @ factor) @ factor.T
        elif not self.ties_labels:
            product = flat * like(self.diagonal(), vectors)
        elif self._root is None:
            product = workers.matmul(flat, like(self._matrix, vectors))
        else:
            product = self._through_root(flat, _factor_like(self._root, vectors), workers)
            if self.own_variance.any():
                product += flat * own
        return xp.reshape(product, vectors.shape)

    def _through_root(self, flat: Array, root: Any, workers: Workers) -> Array:
        if not sp.issparse(root):
            return (flat @ root) @ root.T
        product, root, turned = np.empty(flat.shape, root.dtype), sp.csr_array(root), sp.csr_array(root.T)

        def one(rows: slice) -> None:
            product[rows] = (root @ (turned @ flat[rows].T)).T

        RowPanels(workers, flat).each(one)
        return product

    def around(self, product: Callable[[Array], Array], vectors: Array, workers: Workers) -> Array:
        """Compute ``K V R``; see :meth:`LabelCovariance.around`.

        The product with K is as wide as a thin factor, and omits labels without variance.
        """
        if not self.ties_labels:
            variances = like(self.diagonal(), vectors)
            if not is_numpy(vectors) or variances.all():
                whole = product(vectors)
                whole *= variances
                return whole
            kept = np.flatnonzero(variances)
            padded = np.zeros(vectors.shape, variances.dtype)
            some = np.ascontiguousarray(vectors[..., kept])
            padded[..., kept] = product(some) * variances[kept]
            return padded
        root = self._root
        if root is None or root.shape[1] >= self.n_labels or self.own_variance.any():
            return self.matmul(product(vectors), workers)
        xp, root = namespace(vectors), _factor_like(root, vectors)
        mixed = xp.reshape(vectors, (-1, self.n_labels)) @ root
        mixed = product(xp.reshape(mixed, (*vectors.shape[:-1], root.shape[1])))
        return xp.reshape(xp.reshape(mixed, (-1, root.shape[1])) @ root.T, vectors.shape)

    def shrink(self, amount: float) -> FactorCovariance:
        check_amount(amount)
        mean = self.diagonal().sum() / max(1, self.n_labels)
        own = (1.0 - amount) * self.own_variance + amount * mean
        return FactorCovariance(self.factor * np.sqrt(1.0 - amount), own)._named(self.label_names)

    def scaled(self, scale: float) -> FactorCovariance:
        check_scale(scale)
        scale = float(scale)
        scaled = FactorCovariance(self.factor * np.sqrt(scale), self.own_variance * scale)
        return scaled._named(self.label_names)

    def spectrum(self) -> tuple[Array, Array]:
        """Compute eigenvalues and eigenvectors; see :meth:`LabelCovariance.spectrum`.

        Without own variances and with fewer columns than labels, the factor is sufficient, and no L x L
        matrix is made.
        """
        if not self.own_variance.any() and self.factor.shape[1] < self.n_labels:
            thin = self.factor.toarray() if sp.issparse(self.factor) else self.factor
            vectors, roots, _ = np.linalg.svd(thin, full_matrices=False)
            return _largest_first(roots**2, vectors, 0.0)
        return super().spectrum()


def _factor_like(factor: Any, vectors: Array) -> Any:
    """Return a factor in the precision of some vectors; with NumPy's a sparse one remains a SciPy matrix."""
    if sp.issparse(factor) and is_numpy(vectors):
        return factor.astype(np.float32 if vectors.dtype == np.float32 else np.float64)
    return like(factor.toarray() if sp.issparse(factor) else factor, vectors)


def _checked_factor(factor: Any) -> Any:
    given = sp.csr_array(factor) if sp.issparse(factor) else numbers_of(factor, "The covariance factor")
    table: Any = given.astype(np.float64, copy=True)
    if table.ndim != 2:
        raise ValueError(f"A covariance factor has shape {table.shape}; it must have shape (labels, rank).")
    if sp.issparse(table) and not table.has_canonical_format:
        table.sum_duplicates()
    if not np.isfinite(table.data if sp.issparse(table) else table).all():
        listed = sp.coo_array(table)
        bad = int(np.flatnonzero(~np.isfinite(listed.data))[0])
        raise ValueError(
            f"The covariance factor at label {listed.row[bad]}, column {listed.col[bad]} is "
            f"{listed.data[bad]}; it must be finite."
        )
    return table


def _checked_own_variance(diagonal: Any, n_labels: int) -> PerLabel:
    own = numbers_of(diagonal, "The covariance diagonal").astype(np.float64)
    if own.shape not in ((), (1,), (n_labels,)):
        raise ValueError(
            f"The covariance diagonal has shape {own.shape}; pass one number, or one for each of "
            f"{n_labels} labels."
        )
    own = np.broadcast_to(own, (n_labels,)).copy()
    bad = np.flatnonzero(~np.isfinite(own) | (own < 0))
    if len(bad):
        raise ValueError(f"The covariance diagonal at label {bad[0]} is {own[bad[0]]}; it must be >= 0.")
    return own


_UNIT = 1e-9  # a mean variance this near 1 is kept, so that a sum from a file has the same bits


@storable(
    "WeightedCovariance",
    {
        "parts": Items(Made(LabelCovariance, {"L": "n_labels"}), "m", least=1),
        "weights": Numbers("m", least=0),
        "part_names": Names("m"),
        "label_names": Optional(Names("L")),
    },
)
class WeightedCovariance(LabelCovariance):
    """A sum ``R = sum_m w_m R_m``; see :meth:`LabelCovariance.weighted`.

    parts: the covariances R_m, each scaled to a mean variance of 1.
    weights (m,): their weights w, so that the mean variance of R is their sum.
    part_names: their names.
    """

    def __init__(
        self, parts: Sequence[Any], weights: Any = None, part_names: Sequence[str] | None = None,
        label_names: Sequence[str] | Array | None = None,
    ) -> None:  # fmt: skip
        made = [one if isinstance(one, LabelCovariance) else self.dense(one) for one in parts]
        if not made:
            raise ValueError("A weighted covariance has no parts; give at least one.")
        self.n_labels = size = made[0].n_labels
        known = (one.label_names for one in made if one.label_names is not None)
        self.label_names = names = checked_names(
            next(known, None) if label_names is None else label_names, size
        )
        self.part_names = list(map(str, range(len(made)) if part_names is None else part_names))
        pairs = zip(made, self.part_names, strict=True)
        self.parts = [_of_unit_variance(in_order_of(names, size, one), name) for one, name in pairs]
        self.weights = _checked_weights(weights, len(made))

    @property
    def kind(self) -> str:
        shown = zip(self.weights, self.part_names, strict=True)
        return "weighted sum of " + " + ".join(f"{weight:.2g} {name}" for weight, name in shown)

    @property
    def ties_labels(self) -> bool:
        return any(part.ties_labels for part in self.parts)

    def diagonal(self) -> Array:
        return self.fixed.diagonal()

    def matmul(self, vectors: Array, workers: Workers | None = None) -> Array:
        return self.fixed.matmul(vectors, workers)

    def columns(self, labels: Array) -> LabelCovariance:
        parts = [part.columns(labels) for part in self.parts]
        means = np.array([np.mean(part.diagonal()) for part in parts])
        if not (means > 0).all():
            return self.fixed.columns(labels)
        return WeightedCovariance(parts, self.weights * means, self.part_names, self._names_of(labels))

    def shrink(self, amount: float) -> WeightedCovariance:
        parts = [part.shrink(amount) for part in self.parts]
        return WeightedCovariance(parts, self.weights, self.part_names, self.label_names)

    def scaled(self, scale: float) -> WeightedCovariance:
        check_scale(scale)
        return self.reweighted(self.weights * float(scale))

    def reweighted(self, weights: Array) -> WeightedCovariance:
        """Return the sum of the same parts with other weights, which are not checked."""
        made = copy(self)
        made.__dict__.pop("fixed", None)
        made.weights = weights
        return made

    @cached_property
    def fixed(self) -> LabelCovariance:
        """The sum as one covariance, whose weights no model changes: of low rank if all parts are."""
        pairs = list(zip(self.weights, self.parts, strict=True))
        factors = [(w, part) for w, part in pairs if isinstance(part, FactorCovariance)]
        if len(factors) < len(pairs):
            check_writable(self.n_labels, "A sum with a dense part")
            total = np.sum([w * part.to_dense() for w, part in pairs], axis=0)
            return DenseCovariance.from_semidefinite(total, self.label_names)
        stack = sp.hstack if any(sp.issparse(part.factor) for _, part in factors) else np.hstack
        factor = stack([part.factor * np.sqrt(w) for w, part in factors])
        own = np.sum([w * part.own_variance for w, part in factors], axis=0)
        return FactorCovariance(factor, own)._named(self.label_names)


def _of_unit_variance(part: LabelCovariance, name: str) -> LabelCovariance:
    mean = float(np.mean(part.diagonal()))
    if not mean > 0:
        raise ValueError(f"Part {name!r} of a weighted covariance has no variance; leave it out.")
    is_unit = abs(mean - 1.0) <= _UNIT and not part.is_diagonal
    return part if is_unit else part.scaled(1.0 / mean)  # of the identity a factor, which can be stacked


def _checked_weights(weights: Any, count: int) -> Array:
    if weights is None:
        return np.full(count, 1.0 / count)
    found = numbers_of(weights, "The weights of a covariance").astype(np.float64)
    is_sound = found.shape == (count,) and np.isfinite(found).all() and (found >= 0).all() and found.any()
    if not is_sound:
        raise ValueError(
            f"The weights of a covariance are {weights!r}; give a number >= 0 for each of {count} parts, not "
            "all 0."
        )
    return found


KINDS.dense, KINDS.factor, KINDS.weighted = DenseCovariance, FactorCovariance, WeightedCovariance
