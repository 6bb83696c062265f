"""The base class of all label covariances."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import Workers
from labelweave.foundation.views import view
from labelweave.labels.covariance.constructors import KINDS, CovarianceConstructors
from labelweave.labels.covariance.sources import check_amount, check_writable
from labelweave.labels.label_names import checked_names, places_by_name
from labelweave.labels.label_tables import shown_name
from labelweave.labels.taxonomy import Taxonomy
from labelweave.model_files import StoredParameters, storable
from labelweave.model_files.schema import MOST_LABELS, Names, Optional, count

if TYPE_CHECKING:
    from labelweave.labels.covariance import DenseCovariance

_MOST_PRINTED = 2000  # labels, up to which all pairs are compared
_WEAKEST = 0.005  # what prints as 0.00 is omitted
_LONGEST_NAME = 32
_DECIMALS = 9  # rounding must not break ties

Pair = tuple[str, str, float]


class LabelCovariance(CovarianceConstructors, StoredParameters, ABC):
    """A positive semi-definite matrix over ``n_labels`` labels.

    Make one with :meth:`identity`, :meth:`dense`, :meth:`low_rank`,
    :meth:`from_taxonomy`, :meth:`from_signatures`, :meth:`from_labels` or :meth:`weighted`.
    Printing it lists the strongest correlations, ``plot`` draws them.

    A subclass sets ``n_labels`` and implements ``diagonal`` and ``matmul``; all other methods follow from
    these two, by the dense matrix where necessary.

    Attributes
    ----------
    n_labels : int
        The number of labels L.
    label_names : ndarray of str, shape (L,), or None
        Their names, if known.
    is_diagonal : bool
        Whether labels are independent a priori.
    """

    n_labels: int
    label_names: Array | None = None
    is_diagonal = False

    @property
    def ties_labels(self) -> bool:
        """Whether any two labels covary."""
        return not self.is_diagonal

    @property
    def kind(self) -> str:
        """A short description of the structure, for printing."""
        return type(self).__name__

    @abstractmethod
    def diagonal(self) -> Array:
        """Return the prior variance per label.

        Returns
        -------
        ndarray of float64, shape (L,)
            The diagonal.
        """

    @abstractmethod
    def matmul(self, vectors: Array, workers: Workers | None = None) -> Array:
        """Compute the product ``vectors @ R``.

        Parameters
        ----------
        vectors : ndarray of shape (..., L)
            One value per label in the last axis.
        workers : Workers or None, default=None
            Threads for the rows.

        Returns
        -------
        ndarray of shape (..., L)
            The product, in float32 for float32.
        """

    def columns(self, labels: Array) -> LabelCovariance:
        """Return the covariance of some labels, in the given order.

        Parameters
        ----------
        labels : ndarray of int, shape (k,)
            Label indices.

        Returns
        -------
        LabelCovariance
            The covariance of these labels.
        """
        return self._written_out().columns(labels)

    def block(self, rows: Array, columns: Array) -> Array:
        """Return the covariances between some labels and others as a dense block.

        Parameters
        ----------
        rows, columns : ndarray of int
            Label indices.

        Returns
        -------
        ndarray of float64, shape (len(rows), len(columns))
            The entries.
        """
        chosen = np.zeros((len(rows), self.n_labels))
        chosen[np.arange(len(rows)), rows] = 1.0
        return np.asarray(self.matmul(chosen)[:, columns])

    def variances(self) -> Array | None:
        """Return the variances of labels if none covary, else None; see :meth:`diagonal`."""
        variances = self.diagonal()
        if self.is_diagonal:
            return variances
        probe = np.random.default_rng(0).normal(size=(1, len(variances)))
        is_all = np.allclose(self.matmul(probe), probe * variances, rtol=1e-9, atol=0)
        return variances if is_all else None

    def around(self, product: Callable[[Array], Array], vectors: Array, workers: Workers) -> Array:
        """Compute ``K V R`` with as few columns in the product with K as R allows.

        Parameters
        ----------
        product : callable
            Computes K times an array of shape (n, ..., columns).
        vectors : ndarray of shape (n, ..., L)
            V.
        workers : Workers
            Threads for the rows.

        Returns
        -------
        ndarray of shape (n, ..., L)
            The product, a new array.
        """
        return self.matmul(product(vectors), workers)

    def shrink(self, amount: float) -> LabelCovariance:
        """Shrink toward independent labels: ``(1 - a) R + a mean(diag R) I``.

        Every label then has a variance, and every eigenvalue is positive
        (the form of Ledoit and Wolf, as in ``sklearn.covariance.shrunk_covariance``).

        Parameters
        ----------
        amount : float
            The share a, from 0 (keep R) to 1 (independent labels).

        Returns
        -------
        LabelCovariance
            The shrunk covariance, of the same kind or dense.

        Raises
        ------
        ValueError
            If the amount is not between 0 and 1.
        """
        return self._written_out().shrink(amount)

    def scaled(self, scale: float) -> LabelCovariance:
        """Multiply all variances and covariances.

        Parameters
        ----------
        scale : float
            The factor, >= 0.

        Returns
        -------
        LabelCovariance
            The scaled covariance, of the same kind or dense.
        """
        return self._written_out().scaled(scale)

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
            If it requires an L x L matrix with more than 20,000 labels.
        """
        return self._written_out("The spectrum of this covariance").spectrum()

    def to_dense(self) -> Array:
        """Return the dense matrix.

        Returns
        -------
        ndarray of float64, shape (L, L)
            The covariance.
        """
        every = np.arange(self.n_labels)
        return self.block(every, every)

    def correlations(self) -> Array:
        """Return the dense correlations, 0 for labels without variance; see :meth:`to_dense`."""
        deviations = np.sqrt(np.maximum(self.diagonal(), 0.0))
        scales = np.divide(1.0, deviations, out=np.zeros(self.n_labels), where=deviations > 0)
        matrix = self.to_dense()
        matrix *= scales[:, None]
        matrix *= scales
        np.fill_diagonal(matrix, scales > 0)
        return np.clip(matrix, -1.0, 1.0, out=matrix)

    def check_variances(self, label_names: Sequence[str] | Array | None = None) -> None:
        """Raise ValueError for a label without variance, whose scores would be fixed at 0.

        Parameters
        ----------
        label_names : sequence of str or None, default=None
            Names for the message; by default those of the covariance.

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
        remedy = "add a variance, or use covariance.shrink(0.1)"
        if len(fixed) == len(variances):
            remedy = "set their variances above 0"
        raise ValueError(
            f"The label covariance has variance 0 for label {name}, so its scores are 0 ({len(fixed)} of "
            f"{len(variances)} labels); {remedy}."
        )

    def plot(self, **options: Any) -> Any:
        """Draw the correlations as a heat map.

        Parameters
        ----------
        **options : dict
            Options of ``LabelCovarianceDisplay.from_covariance`` in :mod:`labelweave.display`.

        Returns
        -------
        LabelCovarianceDisplay
            The plot.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        return view("picture", self, **options)

    def to_state(self) -> dict[str, Any]:
        """Return what a model file stores; see :meth:`labelweave.model_files.Storable.to_state`."""
        state = super().to_state()
        names = state.pop("label_names", None)
        return state if names is None else state | {"label_names": names.tolist()}

    def __add__(self, other: LabelCovariance) -> LabelCovariance:
        """Add the entries: labels share the covariance of both."""
        return self._combined(other, np.add)

    def __mul__(self, other: LabelCovariance) -> LabelCovariance:
        """Multiply the entries: labels covary only if they do in both; semi-definite by Schur's theorem."""
        return self._combined(other, np.multiply)

    def _combined(self, other: LabelCovariance, combine: Callable[[Array, Array], Array]) -> LabelCovariance:
        if not isinstance(other, LabelCovariance):
            return NotImplemented
        other = in_order_of(self.label_names, self.n_labels, other)
        check_writable(self.n_labels, "A combined covariance")
        made = self.dense(combine(self.to_dense(), other.to_dense()))
        return made._named(other.label_names if self.label_names is None else self.label_names)

    def __repr__(self) -> str:
        parts = [f"{self.n_labels} labels", self.kind, f"variances {self._variance_range()}"]
        for pairs in self._strongest_pairs(1):
            parts += [f"{first} ~ {second} {value:+.2f}" for first, second, value in pairs]
        return f"LabelCovariance({', '.join(parts)})"

    def __str__(self) -> str:
        lines = [f"Label covariance over {self.n_labels} labels, {self.kind}"]
        lines.append(f"variances: {self._variance_range()}")
        if self.n_labels > _MOST_PRINTED:
            lines.append(f"correlations: not listed for more than {_MOST_PRINTED} labels")
        for title, pairs in zip(("positive", "negative"), self._strongest_pairs(5), strict=True):
            if pairs:
                lines.append(f"strongest {title} correlations:")
                lines += [f"  {value:+.2f}  {first} ~ {second}" for first, second, value in pairs]
        return "\n".join(lines)

    def _variance_range(self) -> str:
        if self.n_labels == 0:
            return "none"
        variances = self.diagonal()
        lowest, highest = f"{variances.min():.3g}", f"{variances.max():.3g}"
        return lowest if lowest == highest else f"{lowest} to {highest}"

    def _strongest_pairs(self, count: int) -> tuple[list[Pair], list[Pair]]:
        if self.is_diagonal or not 2 <= self.n_labels <= _MOST_PRINTED:
            return [], []
        correlations = self.correlations()
        upper = np.triu(np.round(correlations, _DECIMALS, out=correlations), 1)
        highest = self._take_highest(upper, 1.0, count)
        return highest, self._take_highest(np.negative(upper, out=upper), -1.0, count)

    def _take_highest(self, upper: Array, sign: float, count: int) -> list[Pair]:
        pairs: list[Pair] = []
        for _ in range(count):
            row, column = divmod(int(upper.argmax()), len(upper))
            if upper[row, column] < _WEAKEST:
                break
            first, second = (self._shown(label) for label in (row, column))
            pairs.append((first, second, sign * float(upper[row, column])))
            upper[row, column] = 0.0
        return pairs

    def _shown(self, label: int) -> str:
        name = str(label if self.label_names is None else self.label_names[label])
        is_short = self.label_names is None or len(name) <= _LONGEST_NAME
        return name if is_short else name[: _LONGEST_NAME - 1] + "…"

    def _written_out(self, what: str = "This label covariance") -> DenseCovariance:
        check_writable(self.n_labels, what)
        return KINDS.dense.from_semidefinite(self.to_dense(), self.label_names)

    def _named(self, names: Array | None) -> Self:
        self.label_names = names
        return self

    def _names_of(self, labels: Array) -> Array | None:
        return None if self.label_names is None else self.label_names[labels]


def in_order_of(names: Array | None, n_labels: int, other: LabelCovariance) -> LabelCovariance:
    """Put named labels into the order of other names; ValueError if these, or their number, are others."""
    if other.n_labels != n_labels:
        raise ValueError(f"The covariances are over {n_labels} and {other.n_labels} labels; they must agree.")
    theirs = other.label_names
    if names is None or theirs is None or names.tolist() == theirs.tolist():
        return other
    if set(names.tolist()) != set(theirs.tolist()):
        raise ValueError("The covariances have different label names; they must agree.")
    places = {name: place for place, name in enumerate(theirs.tolist())}
    return other.columns(np.array([places[name] for name in names.tolist()]))


@storable("IdentityCovariance", {"n_labels": count("L", 1, MOST_LABELS), "label_names": Optional(Names("L"))})
class IdentityCovariance(LabelCovariance):
    """Independent labels (one-vs-rest)."""

    is_diagonal, kind = True, "independent"

    def __init__(self, n_labels: int, label_names: Sequence[str] | Array | None = None) -> None:
        is_whole = isinstance(n_labels, (int, np.integer))
        if not is_whole or not 0 <= n_labels <= MOST_LABELS:
            raise ValueError(f"n_labels is {n_labels!r}; it must be between 0 and {MOST_LABELS}.")
        self.n_labels = int(n_labels)
        self.label_names = checked_names(label_names, self.n_labels)

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
    """Return a label covariance from one, from a taxonomy whose leaves have these names, or from a matrix.

    A covariance with the same names is put into their order.
    Raises ValueError if the number of labels differs, or only some of the names match.
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
    """Return the label covariances, one for each of several kernels, or a single one if there is no list.

    Raises ValueError if there are not as many as kernels, or one has other labels.
    """
    parts = [given]
    if n_kernels is not None:
        parts = [None] * n_kernels if given is None else list(given)
        if len(parts) != n_kernels:
            raise ValueError(
                f"label_covariance has {len(parts)} covariances, but there are {n_kernels} kernels; pass one "
                "per kernel, or None."
            )
    names = [str(name) for name in classes]
    covariances = [
        LabelCovariance.identity(n_labels) if part is None else read_covariance(part, n_labels, names)
        for part in parts
    ]
    if len(covariances) == 1:
        covariances[0].check_variances(names)
    return covariances


KINDS.identity = IdentityCovariance
