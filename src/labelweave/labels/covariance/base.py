"""What every label covariance can do, whatever its structure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.foundation.views import view
from labelweave.labels.covariance.constructors import CovarianceConstructors
from labelweave.labels.covariance.printing import in_full, in_short
from labelweave.labels.covariance.spectra import check_amount, check_writable
from labelweave.labels.label_names import checked_names, places_by_name
from labelweave.labels.label_tables import shown_name
from labelweave.labels.taxonomy import Taxonomy
from labelweave.model_files import StoredParameters, storable
from labelweave.model_files.schema import MOST_LABELS, Names, Optional, count


class LabelCovariance(CovarianceConstructors, StoredParameters, ABC):
    """A positive semi-definite matrix over ``n_labels`` labels.

    Make one with :meth:`identity`, :meth:`dense`, :meth:`low_rank`,
    :meth:`from_taxonomy`, :meth:`from_signatures` or :meth:`from_labels`.
    Printing it lists the strongest correlations, ``plot`` draws them.

    Attributes
    ----------
    n_labels : int
        The number of labels L.
    label_names : ndarray of str, shape (L,), or None
        Their names, where known.
    is_diagonal : bool
        Whether labels are independent a priori.
    """

    n_labels: int
    label_names: Array | None = None
    is_diagonal = False

    @property
    def ties_labels(self) -> bool:
        """Whether two labels covary."""
        return not self.is_diagonal

    @property
    @abstractmethod
    def kind(self) -> str:
        """The structure in a few words, for printing."""

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

    def variances(self) -> Array | None:
        """Give the variances of labels that do not covary.

        Returns
        -------
        ndarray of float64, shape (L,), or None
            The diagonal; None where some labels covary.
        """
        variances = self.diagonal()
        if self.is_diagonal:
            return variances
        probe = np.random.default_rng(0).normal(size=(1, len(variances)))
        is_all = np.allclose(self.matmul(probe), probe * variances, rtol=1e-9, atol=0)
        return variances if is_all else None

    @abstractmethod
    def matmul(self, vectors: Array, workers: Workers | None = None) -> Array:
        """Multiply on the right: ``vectors @ R``.

        Parameters
        ----------
        vectors : ndarray of shape (..., L)
            One value a label in the last axis.
        workers : Workers or None, default=None
            Threads that share the rows.

        Returns
        -------
        ndarray of shape (..., L)
            The product, in float32 for float32.
        """

    def around(self, product: Callable[[Array], Array], vectors: Array, workers: Workers) -> Array:
        """Compute ``K V R`` with as few columns in the product with K as R allows.

        Parameters
        ----------
        product : callable
            Computes K times an array of shape (n, ..., columns).
        vectors : ndarray of shape (n, ..., L)
            V.
        workers : Workers
            Threads that share the rows.

        Returns
        -------
        ndarray of shape (n, ..., L)
            The product, a new array.
        """
        return self.matmul(product(vectors), workers)

    @abstractmethod
    def shrink(self, amount: float) -> LabelCovariance:
        """Pull towards independent labels: ``(1 - a) R + a mean(diag R) I``.

        Every label then has a variance, and every eigenvalue is positive
        (Ledoit and Wolf's form, as in ``sklearn.covariance.shrunk_covariance``).

        Parameters
        ----------
        amount : float
            The share a, from 0 (keep R) to 1 (independent labels).

        Returns
        -------
        LabelCovariance
            The shrunk covariance, of the same kind.

        Raises
        ------
        ValueError
            If the amount is not between 0 and 1.
        """

    @abstractmethod
    def scaled(self, scale: float) -> LabelCovariance:
        """Multiply all variances and covariances.

        Parameters
        ----------
        scale : float
            The factor, >= 0.

        Returns
        -------
        LabelCovariance
            The scaled covariance.
        """

    @abstractmethod
    def spectrum(self) -> tuple[Array, Array]:
        """Compute the eigenvalues above rounding and their eigenvectors: ``R = V diag(e) V^T``.

        Returns
        -------
        eigenvalues : ndarray of float64, shape (r,)
            Positive, descending.
        eigenvectors : ndarray of float64, shape (L, r)
            Orthonormal columns; the largest entry of each is positive.

        Raises
        ------
        ValueError
            If it would need an L x L matrix of more than 20,000 labels.
        """

    @abstractmethod
    def to_state(self) -> dict[str, Any]:
        """Give what a model file keeps; see :meth:`labelweave.model_files.Storable.to_state`."""

    def to_dense(self) -> Array:
        """Write out the whole matrix.

        Returns
        -------
        ndarray of float64, shape (L, L)
            The covariance.
        """
        every = np.arange(self.n_labels)
        return self.block(every, every)

    def correlations(self) -> Array:
        """Write out the covariances in units of the labels' standard deviations.

        Returns
        -------
        ndarray of float64, shape (L, L)
            Entries from -1 to 1; a label without variance has 0 with every label.
        """
        deviations = np.sqrt(np.maximum(self.diagonal(), 0.0))
        scales = np.divide(1.0, deviations, out=np.zeros(self.n_labels), where=deviations > 0)
        matrix = self.to_dense()
        matrix *= scales[:, None]
        matrix *= scales
        np.fill_diagonal(matrix, scales > 0)
        return np.clip(matrix, -1.0, 1.0, out=matrix)

    def check_variances(self, label_names: Sequence[str] | Array | None = None) -> None:
        """Refuse a covariance that leaves a label no variance, and so fixes its scores at 0.

        Parameters
        ----------
        label_names : sequence of str or None, default=None
            Names for the message; by default those the covariance carries.

        Raises
        ------
        ValueError
            If a label has the variance 0; the first is named.
        """
        variances = self.diagonal()
        fixed = np.flatnonzero(variances <= 0)
        if len(fixed) == 0:
            return
        name = shown_name(self.label_names if label_names is None else label_names, int(fixed[0]))
        remedy = "give it a variance, or use covariance.shrink(0.1)"
        if len(fixed) == len(variances):
            remedy = "give the labels variances above 0"
        raise ValueError(
            f"The label covariance gives label {name} the variance 0, which fixes its scores at 0 "
            f"({len(fixed)} of {len(variances)} labels have none); {remedy}."
        )

    def plot(self, **options: Any) -> Any:
        """Draw the correlations as a heat map.

        Parameters
        ----------
        **options : dict
            What ``LabelCovarianceDisplay.from_covariance`` of :mod:`labelweave.display` takes.

        Returns
        -------
        LabelCovarianceDisplay
            The picture.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        return view("picture", self, **options)

    def __add__(self, other: LabelCovariance) -> LabelCovariance:
        """Add the entries: labels share what they share by either."""
        return self._combined(other, np.add)

    def __mul__(self, other: LabelCovariance) -> LabelCovariance:
        """Multiply the entries: labels share what they share by both; semi-definite too (Schur)."""
        return self._combined(other, np.multiply)

    def _combined(self, other: LabelCovariance, combine: Callable[[Array, Array], Array]) -> LabelCovariance:
        if not isinstance(other, LabelCovariance):
            return NotImplemented
        if other.n_labels != self.n_labels:
            raise ValueError(
                f"One covariance is over {self.n_labels} labels, one over {other.n_labels}; they must agree."
            )
        check_writable(self.n_labels, "A combined covariance")
        names, theirs = self.label_names, other.label_names
        if names is not None and theirs is not None and names.tolist() != theirs.tolist():
            if set(names.tolist()) != set(theirs.tolist()):
                raise ValueError("The covariances are over labels of other names; they must agree.")
            places = {name: place for place, name in enumerate(theirs.tolist())}
            other = other.columns(np.array([places[name] for name in names.tolist()]))
        made = self.dense(combine(self.to_dense(), other.to_dense()))
        return made._named(theirs if names is None else names)

    def __repr__(self) -> str:
        return in_short(self)

    def __str__(self) -> str:
        return in_full(self)

    def _named(self, names: Array | None) -> Self:
        """Carry names that were checked before."""
        self.label_names = names
        return self

    def _names_of(self, labels: Array) -> Array | None:
        return None if self.label_names is None else self.label_names[labels]

    def _names_state(self) -> dict[str, Any]:
        return {} if self.label_names is None else {"label_names": self.label_names.tolist()}


@storable("IdentityCovariance", {"n_labels": count("L", 1, MOST_LABELS), "label_names": Optional(Names("L"))})
class IdentityCovariance(LabelCovariance):
    """Independent labels, one-versus-all."""

    is_diagonal, kind = True, "independent"

    def __init__(self, n_labels: int, label_names: Sequence[str] | Array | None = None) -> None:
        is_whole = isinstance(n_labels, (int, np.integer))
        if not is_whole or not 0 <= n_labels <= MOST_LABELS:
            raise ValueError(f"n_labels is {n_labels!r}; give a number of labels from 0 to {MOST_LABELS}.")
        self.n_labels = int(n_labels)
        self.label_names = checked_names(label_names, self.n_labels)

    def to_state(self) -> dict[str, Any]:
        return {"n_labels": self.n_labels, **self._names_state()}

    def columns(self, labels: Array) -> LabelCovariance:
        return IdentityCovariance(len(labels))._named(self._names_of(labels))

    def block(self, rows: Array, columns: Array) -> Array:
        return np.equal.outer(rows, columns).astype(np.float64)

    def diagonal(self) -> Array:
        return np.ones(self.n_labels)

    def matmul(self, vectors: Array, workers: Workers | None = None) -> Array:
        return vectors

    def around(self, product: Callable[[Array], Array], vectors: Array, workers: Workers) -> Array:
        return product(vectors)

    def shrink(self, amount: float) -> IdentityCovariance:
        check_amount(amount)
        return self

    def scaled(self, scale: float) -> LabelCovariance:
        return self.low_rank(np.empty((self.n_labels, 0)), scale)._named(self.label_names)

    def spectrum(self) -> tuple[Array, Array]:
        check_writable(self.n_labels, "The spectrum of independent labels")
        return np.ones(self.n_labels), np.eye(self.n_labels)


def read_covariance(given: Any, n_labels: int, names: list[str]) -> LabelCovariance:
    """Read a label covariance, a taxonomy whose leaves have those names, or a matrix.

    A covariance whose labels have the same names is put into their order.
    Raises ValueError if it is over another number of labels, or some have other names and some the same.
    """
    if isinstance(given, Taxonomy):
        given = LabelCovariance.from_taxonomy(given, names)
    covariance = given if isinstance(given, LabelCovariance) else LabelCovariance.dense(given)
    if covariance.n_labels != n_labels:
        raise ValueError(
            f"label_covariance is over {covariance.n_labels} labels but y has {n_labels}; they must agree."
        )
    theirs = [] if covariance.label_names is None else [str(name) for name in covariance.label_names]
    places = places_by_name(theirs, names, "label_covariance")
    return covariance if places is None else covariance.columns(places)


def read_covariances(
    given: Any, n_kernels: int | None, n_labels: int, classes: Array
) -> list[LabelCovariance]:
    """Read the label covariances, one for each of several kernels, or the only one where there is no list.

    Raises ValueError if there are not as many as kernels, or one is over other labels.
    """
    parts = [given]
    if n_kernels is not None:
        parts = [None] * n_kernels if given is None else list(given)
        if len(parts) != n_kernels:
            raise ValueError(
                f"label_covariance has {len(parts)} covariances, but there are {n_kernels} kernels; give one "
                "each, or None."
            )
    names = [str(name) for name in classes]
    covariances = [
        LabelCovariance.identity(n_labels) if part is None else read_covariance(part, n_labels, names)
        for part in parts
    ]
    if len(covariances) == 1:
        covariances[0].check_variances(names)
    return covariances
