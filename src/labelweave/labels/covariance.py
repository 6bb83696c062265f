"""Prior covariances between labels, as operators.

A label covariance is the positive semi-definite matrix R of the M3L penalty
``1/2 sum_lk (R^-1)_lk z_l . z_k`` (Hariharan et al. 2012, equation 10): a high
``R_lk`` makes the scores of labels l and k alike.  The models only ask for
products, diagonals and small blocks, so a structured R is never written out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.labels.taxonomy import Taxonomy
from labelweave.model_files import storable

__all__ = [
    "DenseCovariance",
    "FactorCovariance",
    "IdentityCovariance",
    "LabelCovariance",
]

Array = npt.NDArray[Any]


class LabelCovariance(ABC):
    """A positive semi-definite matrix over ``n_labels`` labels.

    Make one with :meth:`identity`, :meth:`dense`, :meth:`low_rank` or
    :meth:`from_taxonomy`.
    """

    n_labels: int

    @property
    def is_diagonal(self) -> bool:
        """Whether labels are independent a priori."""
        return False

    @abstractmethod
    def columns(self, labels: Array) -> LabelCovariance:
        """Keep some labels, in the given order.

        Parameters
        ----------
        labels : ndarray of int, shape (k,)
            Label indices.

        Returns
        -------
        LabelCovariance
            The covariance of these labels.
        """

    @abstractmethod
    def block(self, rows: Array, columns: Array) -> Array:
        """Write out the covariances between some labels and others.

        Parameters
        ----------
        rows, columns : ndarray of int
            Label indices.

        Returns
        -------
        ndarray of float64, shape (len(rows), len(columns))
            The entries.
        """

    @abstractmethod
    def diagonal(self) -> Array:
        """Give the prior variance of every label.

        Returns
        -------
        ndarray of float64, shape (L,)
            The diagonal.
        """

    @abstractmethod
    def matmul(self, vectors: Array) -> Array:
        """Multiply on the right: ``vectors @ R``.

        Parameters
        ----------
        vectors : ndarray of shape (m, L)
            One value a label in each row.

        Returns
        -------
        ndarray of shape (m, L)
            The product.
        """

    def to_dense(self) -> Array:
        """Write out the whole matrix.

        Returns
        -------
        ndarray of float64, shape (L, L)
            The covariance.
        """
        every = np.arange(self.n_labels)
        return self.block(every, every)

    @staticmethod
    def identity(n_labels: int) -> IdentityCovariance:
        """Make the covariance of independent labels.

        Parameters
        ----------
        n_labels : int
            The number of labels.

        Returns
        -------
        IdentityCovariance
            The identity.
        """
        return IdentityCovariance(n_labels)

    @staticmethod
    def dense(matrix: Any) -> DenseCovariance:
        """Check and wrap a matrix.

        Parameters
        ----------
        matrix : array-like of shape (L, L)
            Symmetric and positive semi-definite.

        Returns
        -------
        DenseCovariance
            The covariance.

        Raises
        ------
        ValueError
            If it is not square, finite, symmetric or positive semi-definite.
        """
        return DenseCovariance(matrix)

    @staticmethod
    def low_rank(factor: Any, diagonal: Any = 0.0) -> FactorCovariance:
        """Make ``diag(diagonal) + factor factor^T``.

        Parameters
        ----------
        factor : array-like or sparse matrix of shape (L, r)
            The factor.
        diagonal : float or array-like of shape (L,), default=0.0
            Non-negative variances of each label alone.

        Returns
        -------
        FactorCovariance
            The covariance.
        """
        return FactorCovariance(factor, diagonal)

    @staticmethod
    def from_taxonomy(
        taxonomy: Taxonomy, label_names: Sequence[str] | Array, variances: dict[str, float] | None = None
    ) -> FactorCovariance:
        """Let labels share the variances of the nodes above both: R = Phi diag(v) Phi^T.

        Parameters
        ----------
        taxonomy : Taxonomy
            The tree.
        label_names : sequence of str
            The labels in their order, each a node of the tree.
        variances : dict of str to float or None, default=None
            The variance v of each node, 1 where none is given.

        Returns
        -------
        FactorCovariance
            The covariance (Seeger 2008, section 3).

        Raises
        ------
        ValueError
            If a label or a named node is not in the tree, or a variance is negative.
        """
        given = variances or {}
        _check_variances(given, taxonomy)
        roots = np.sqrt([given.get(node, 1.0) for node in taxonomy.nodes])
        return FactorCovariance(taxonomy.membership(label_names) @ sp.diags_array(roots))


@storable("IdentityCovariance")
class IdentityCovariance(LabelCovariance):
    """Independent labels, one-versus-all.

    Parameters
    ----------
    n_labels : int
        The number of labels.
    """

    def __init__(self, n_labels: int) -> None:
        self.n_labels = int(n_labels)

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps.

        Returns
        -------
        dict
            The number of labels.
        """
        return {"n_labels": self.n_labels}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> IdentityCovariance:
        """Make the covariance again.

        Parameters
        ----------
        state : dict
            What ``to_state`` gave.

        Returns
        -------
        IdentityCovariance
            The covariance.
        """
        return cls(**state)

    @property
    def is_diagonal(self) -> bool:
        """Whether labels are independent a priori."""
        return True

    def columns(self, labels: Array) -> LabelCovariance:
        """Keep some labels; see :meth:`LabelCovariance.columns`."""
        return IdentityCovariance(len(labels))

    def block(self, rows: Array, columns: Array) -> Array:
        """Write out some entries; see :meth:`LabelCovariance.block`."""
        return np.equal.outer(rows, columns).astype(np.float64)

    def diagonal(self) -> Array:
        """Give the variances; see :meth:`LabelCovariance.diagonal`."""
        return np.ones(self.n_labels)

    def matmul(self, vectors: Array) -> Array:
        """Multiply; see :meth:`LabelCovariance.matmul`."""
        return vectors


@storable("DenseCovariance")
class DenseCovariance(LabelCovariance):
    """Any positive semi-definite matrix.

    Parameters
    ----------
    matrix : array-like of shape (L, L)
        The covariance.
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = _checked_semidefinite(np.asarray(matrix, dtype=np.float64))
        self.n_labels = len(self.matrix)

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps.

        Returns
        -------
        dict
            The matrix.
        """
        return {"matrix": self.matrix}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> DenseCovariance:
        """Make the covariance again.

        Parameters
        ----------
        state : dict
            What ``to_state`` gave.

        Returns
        -------
        DenseCovariance
            The covariance.
        """
        return cls(**state)

    def columns(self, labels: Array) -> LabelCovariance:
        """Keep some labels; see :meth:`LabelCovariance.columns`."""
        kept = DenseCovariance.__new__(DenseCovariance)  # a principal block needs no second check
        kept.matrix, kept.n_labels = self.matrix[np.ix_(labels, labels)], len(labels)
        return kept

    def block(self, rows: Array, columns: Array) -> Array:
        """Write out some entries; see :meth:`LabelCovariance.block`."""
        return np.asarray(self.matrix[np.ix_(rows, columns)])

    def diagonal(self) -> Array:
        """Give the variances; see :meth:`LabelCovariance.diagonal`."""
        return np.asarray(self.matrix.diagonal())

    def matmul(self, vectors: Array) -> Array:
        """Multiply; see :meth:`LabelCovariance.matmul`."""
        return np.asarray(vectors @ self.matrix.astype(_number_type(vectors), copy=False))


@storable("FactorCovariance")
class FactorCovariance(LabelCovariance):
    """A diagonal plus a factor times its transpose; the factor may be sparse.

    Parameters
    ----------
    factor : array-like or sparse matrix of shape (L, r)
        The factor.
    diagonal : float or array-like of shape (L,), default=0.0
        Non-negative.
    """

    def __init__(self, factor: Any, diagonal: Any = 0.0) -> None:
        self.factor: Any = _checked_factor(factor)
        self.n_labels = int(self.factor.shape[0])
        own = np.broadcast_to(np.asarray(diagonal, np.float64), (self.n_labels,)).copy()
        if not np.isfinite(own).all() or (own < 0).any():
            label = int(np.flatnonzero(~np.isfinite(own) | (own < 0))[0])
            raise ValueError(f"The covariance diagonal at label {label} is {own[label]}; it must be >= 0.")
        self.own_variance = own

    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps.

        Returns
        -------
        dict
            The factor and the diagonal.
        """
        return {"factor": self.factor, "diagonal": self.own_variance}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> FactorCovariance:
        """Make the covariance again.

        Parameters
        ----------
        state : dict
            What ``to_state`` gave.

        Returns
        -------
        FactorCovariance
            The covariance.
        """
        return cls(**state)

    def columns(self, labels: Array) -> LabelCovariance:
        """Keep some labels; see :meth:`LabelCovariance.columns`."""
        return FactorCovariance(self.factor[labels], self.own_variance[labels])

    def block(self, rows: Array, columns: Array) -> Array:
        """Write out some entries; see :meth:`LabelCovariance.block`."""
        rows, columns = np.asarray(rows), np.asarray(columns)
        product = self.factor[rows] @ self.factor[columns].T
        dense = product.toarray() if sp.issparse(product) else np.asarray(product)
        return dense + np.where(rows[:, None] == columns[None, :], self.own_variance[rows][:, None], 0.0)

    def diagonal(self) -> Array:
        """Give the variances; see :meth:`LabelCovariance.diagonal`."""
        return np.asarray((self.factor * self.factor).sum(axis=1)).ravel() + self.own_variance

    def matmul(self, vectors: Array) -> Array:
        """Multiply; see :meth:`LabelCovariance.matmul`."""
        kind = _number_type(vectors)
        factor = self.factor.astype(kind)
        return np.asarray(vectors * self.own_variance.astype(kind) + (vectors @ factor) @ factor.T)


def _number_type(vectors: Array) -> npt.DTypeLike:
    return np.float32 if vectors.dtype == np.float32 else np.float64


def _checked_factor(factor: Any) -> Any:
    table: Any = (
        sp.csr_array(factor, dtype=np.float64) if sp.issparse(factor) else np.asarray(factor, np.float64)
    )
    if table.ndim != 2:
        raise ValueError(f"A covariance factor has shape {table.shape}; it needs two, (labels, rank).")
    if sp.issparse(table) and not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    if not np.isfinite(table.data if sp.issparse(table) else table).all():
        listed = sp.coo_array(table)
        bad = int(np.flatnonzero(~np.isfinite(listed.data))[0])
        raise ValueError(
            f"The covariance factor at label {listed.row[bad]}, column {listed.col[bad]} is "
            f"{listed.data[bad]}; it must be finite."
        )
    return table


def _check_variances(given: dict[str, float], taxonomy: Taxonomy) -> None:
    known = set(taxonomy.nodes)
    for node, variance in given.items():
        if node not in known:
            raise ValueError(f"A variance was given for {node!r}, which is no node of the taxonomy.")
        if not variance >= 0 or not np.isfinite(variance):
            raise ValueError(f"The variance of node {node!r} is {variance}; it must be a number >= 0.")


def _checked_semidefinite(matrix: Array) -> Array:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"A label covariance has shape {matrix.shape}; it must be square, (labels, labels).")
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise ValueError(f"The label covariance at ({row}, {column}) is {matrix[row, column]}, not finite.")
    scale = max(float(np.abs(matrix).max(initial=0.0)), np.finfo(float).tiny)
    asymmetry = np.abs(matrix - matrix.T)
    if asymmetry.max(initial=0.0) > 1e-8 * scale:
        row, column = np.unravel_index(int(asymmetry.argmax()), asymmetry.shape)
        raise ValueError(
            f"The label covariance is not symmetric: entry ({row}, {column}) is {matrix[row, column]} and "
            f"({column}, {row}) is {matrix[column, row]}."
        )
    smallest = float(np.linalg.eigvalsh(matrix).min(initial=0.0))
    if smallest < -1e-8 * scale * len(matrix):
        raise ValueError(
            f"The label covariance is not positive semi-definite: its smallest eigenvalue is {smallest:.3g}. "
            "Add that much to the diagonal, or shrink the off-diagonal entries."
        )
    return (matrix + matrix.T) / 2
