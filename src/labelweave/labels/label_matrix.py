"""Multi-label targets in which an entry is positive, negative or unobserved.

An unobserved entry contributes no loss in any model of the library.  A dense target marks it with NaN; a
sparse one has a mask of the observed entries.

An entry with a known probability is stored as the more likely value and its flip probability f.  Its target q
is 1 - f where positive and f where negative.  Corrections for flipped labels yield targets below 0 and above
1, whose flip probabilities are negative (:mod:`labelweave.labels.flip_rates`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import checked_csr, numbers_of, refuse_lazy, unmasked
from labelweave.foundation.costs import warn_caller
from labelweave.foundation.frames import frame_values, is_frame
from labelweave.labels.label_names import checked_names
from labelweave.labels.label_tables import (
    checked_flips,
    expected_positives,
    frame_names,
    graded,
    label_places,
    or_probabilities,
    read_probabilities,
    row_index,
    shown_name,
    signed_pattern,
    split_targets,
)
from labelweave.labels.tags import read_tags, tag_rows


class LabelMatrix:
    """The targets of ``n`` rows and ``L`` labels: positive, negative or unobserved.

    Parameters
    ----------
    positives : sparse array of shape (n, L)
        Every stored nonzero is a positive entry; its value is not used.
    observed : sparse array of shape (n, L) or None, default=None
        Every stored nonzero was observed, including the positives.  Observed entries that are not positive
        are negative.  ``None`` means that everything was observed.  To hide positives use :meth:`masked`.
    names : sequence of str or None, default=None
        One name per label.
    flip_probabilities : sparse array of shape (n, L) or None, default=None
        The flip probabilities of entries, 0 where not stored; :meth:`from_probabilities` computes them.
    class_columns : ClassColumns or None, default=None
        The columns of classes that labels stand for; :func:`labelweave.read_class_columns` reads them.

    Attributes
    ----------
    positives : scipy.sparse.csr_array of int8, shape (n, L)
        Ones at the positive entries, with sorted indices.
    observed : scipy.sparse.csr_array of int8, shape (n, L), or None
        +1 and -1 at the observed entries, with sorted indices; ``None`` when all were observed.
    names : ndarray of str, shape (L,), or None
        The label names.
    flip_probabilities : scipy.sparse.csr_array of float64, shape (n, L), or None
        The nonzero flip probabilities, with sorted indices; ``None`` when all entries are certain.
    class_columns : ClassColumns or None
        The columns of classes.

    Notes
    -----
    Nothing of size ``n x L`` is stored unless that many entries are stored in the input.
    Use :meth:`from_any` for arrays, sparse matrices and data frames.
    """

    def __init__(
        self,
        positives: Any,
        observed: Any | None = None,
        names: Sequence[str] | npt.NDArray[Any] | None = None,
        flip_probabilities: Any | None = None,
        class_columns: Any | None = None,
    ) -> None:
        self.positives = _pattern(positives)
        self.observed = None if observed is None else signed_pattern(self.positives, _pattern(observed))
        self.names = checked_names(names, self.positives.shape[1])
        flips, parts = flip_probabilities, (self.positives, self.observed)
        self.flip_probabilities = None if flips is None else checked_flips(flips, *parts)
        self.class_columns = class_columns

    @classmethod
    def from_any(cls, Y: Any, names: Sequence[str] | Array | None = None) -> LabelMatrix:
        """Convert targets of any supported type.

        Parameters
        ----------
        Y : LabelMatrix, DataFrame, sparse matrix, array-like of shape (n, L) or n lists of tags
            Entries 0/1 or -1/1; NaN (dense input and frames) and masked entries are unobserved. In a sparse
            matrix, entries that are not stored are negative.  Frames may be of pandas, polars or pyarrow.
            Lists, tuples or sets of tags, in a list or a column: one label per tag, sorted; None is an
            unobserved row.  Texts are parsed as in tables: lists as text, and names with a separator, which
            is detected, with a warning, from repeated parts.
        names : sequence of str or None, default=None
            Label names; by default a frame's columns, or the tags in ``Y``.

        Returns
        -------
        LabelMatrix
            The same targets.

        Raises
        ------
        ValueError
            If an entry is something else, naming its row and label.
        """
        if isinstance(Y, cls):
            return Y if names is None else cls(Y.positives, Y.observed, names, Y.flip_probabilities)
        refuse_lazy(Y, "Y")
        if sp.issparse(Y):
            return cls(_checked_sparse(Y), None, names)
        is_text = isinstance(Y, np.ndarray) and Y.ndim == 1 and Y.dtype.kind in "OU"
        if is_plain_array(Y) and not is_text:
            return cls._from_dense(checked_table(numbers_in(Y)), names)
        rows = tag_rows(Y.tolist() if is_text else Y, warn_of_targets)
        if rows is not None:
            return cls(*read_tags(rows, None if names is None else list(names)))
        return cls._from_dense(checked_table(numbers_in(Y)), frame_names(Y) if names is None else names)

    @classmethod
    def _from_dense(cls, table: npt.NDArray[Any], names: Sequence[str] | Array | None) -> LabelMatrix:
        missing = np.isnan(table) if table.dtype.kind == "f" else np.zeros(table.shape, bool)
        bad = ~missing & (table != 1) & (table != 0) & (table != -1)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise ValueError(
                f"Y at row {row}, label {shown_name(names, column)} is {table[row, column]}. "
                f"Use 0/1 or -1/1, and NaN where not observed{or_probabilities(table)}."
            )
        if (table == 0).any() and (table == -1).any():
            row, column = np.argwhere(table == -1)[0]
            raise ValueError(
                f"Y mixes two codings: row {row}, label {shown_name(names, column)} is -1 while other "
                "entries are 0. Use 0/1 or -1/1, and NaN for what was not observed."
            )
        return cls(table == 1, ~missing if missing.any() else None, names)

    @classmethod
    def from_probabilities(cls, P: Any, names: Sequence[str] | Array | None = None) -> LabelMatrix:
        """Make targets from label probabilities, from annotators, language models or other models.

        Every model then minimizes the expected loss of an entry, ``p`` times that of a positive and ``1 - p``
        times that of a negative one, or, for the hinge loss, a bound of the expected error, ``|2p - 1|``
        times the loss of the more likely one.  Thresholds, precision, recall and F1 use expected counts;
        rankings and splits use the more likely values, with those of 0.5 unobserved.

        Parameters
        ----------
        P : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
            Numbers from 0 to 1; NaN (dense input and frames) and masked entries are unobserved.  In a sparse
            matrix, entries that are not stored are certainly negative.
        names : sequence of str or None, default=None
            Label names; by default a frame's columns.

        Returns
        -------
        LabelMatrix
            The targets; ``flip_probabilities`` is None if all numbers are 0 and 1.

        Raises
        ------
        ValueError
            If an entry is something else, naming its row and label.

        Examples
        --------
        >>> labels = LabelMatrix.from_probabilities([[0.9, 0.0], [0.2, float("nan")]])
        >>> labels
        LabelMatrix(2 rows, 2 labels, 1 positive, 3 observed, 2 by probability)
        """
        if isinstance(P, cls):
            return cls.from_any(P, names)
        targets, observed, names = read_probabilities(
            P, names, lambda table: checked_table(numbers_in(table))
        )
        return cls._of_targets(targets, observed, names)

    @classmethod
    def _of_targets(cls, targets: sp.csr_array, observed: Any, names: Any) -> LabelMatrix:
        """Make labels from any targets, 0 where not stored."""
        positives, flips = split_targets(targets)
        return cls(positives, observed, names, flips)

    @classmethod
    def stacked(cls, parts: Sequence[LabelMatrix]) -> LabelMatrix:
        """Stack several label matrices vertically.

        Parameters
        ----------
        parts : sequence of LabelMatrix
            Label matrices with the same labels; the first one sets the names.

        Returns
        -------
        LabelMatrix
            All rows.

        Raises
        ------
        ValueError
            If ``parts`` is empty, or the numbers of labels differ.
        """
        widths = sorted({part.n_labels for part in parts})
        if len(widths) != 1:
            raise ValueError(f"The matrices have {widths} labels; all must have the same number.")
        seen, flips = None, None
        if any(part.observed is not None for part in parts):
            seen = sp.vstack([part.observed_pattern() for part in parts], format="csr")
        if any(part.flip_probabilities is not None for part in parts):
            known = [part.flip_probabilities for part in parts]
            pairs = zip(parts, known, strict=True)
            flips = sp.vstack([sp.csr_array(part.shape) if one is None else one for part, one in pairs])
        positives = sp.vstack([part.positives for part in parts], format="csr")
        return cls(positives, seen, parts[0].names, flips)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape ``(n, L)``."""
        return self.positives.shape[0], self.positives.shape[1]

    @property
    def n_labels(self) -> int:
        """The number of labels ``L``."""
        return self.shape[1]

    @property
    def words(self) -> list[str]:
        """The names of labels, or their numbers if they have none."""
        return [str(name) for name in (range(self.n_labels) if self.names is None else self.names)]

    def parts(self) -> list[Any]:
        """Return the arrays of the targets, without names: positives, observed, flip probabilities if any.

        Returns
        -------
        list
            The arrays; ``observed`` is None if everything was observed.
        """
        tables = [self.positives, self.observed, self.flip_probabilities]
        return tables if self.flip_probabilities is not None else tables[:2]

    def observed_pattern(self) -> sp.csr_array:
        """Return the pattern of observed entries, even if all are observed; see :meth:`parts`."""
        return sp.csr_array(np.ones(self.shape, np.int8)) if self.observed is None else self.observed

    @property
    def has_missing(self) -> bool:
        """Whether any entry is unobserved."""
        return self.observed is not None and self.observed.nnz < self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        n, n_labels = self.shape
        seen = "all observed" if self.observed is None else f"{self.observed.nnz} observed"
        seen += "" if self.flip_probabilities is None else f", {self.flip_probabilities.nnz} by probability"
        return f"LabelMatrix({n} rows, {n_labels} labels, {self.positives.nnz} positive, {seen})"

    def __getitem__(self, rows: Any) -> LabelMatrix:
        """Select rows by a slice, an index array or a boolean mask."""
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]  # scikit-learn indexes rows this way
        if not isinstance(rows, slice):
            rows = row_index(rows)
        return self._each(lambda table: table[rows], self.names, self.class_columns)

    def _each(self, change: Callable[[Any], Any], names: Any, columns: Any = None) -> LabelMatrix:
        """Change each of the tables (n, L) that there are."""
        observed, flips = (
            None if table is None else change(table) for table in (self.observed, self.flip_probabilities)
        )
        return LabelMatrix(change(self.positives), observed, names, flips, columns)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return dense targets with NaN for :func:`numpy.asarray`, as :meth:`to_dense` does."""
        if copy is False:
            raise ValueError("A LabelMatrix is sparse, so its array is a copy; leave copy=False out.")
        if dtype is not None and self.has_missing and np.dtype(dtype).kind not in "fcO":
            raise ValueError(
                f"The LabelMatrix has unobserved entries, which type {np.dtype(dtype)} cannot hold; use "
                "float64, where they are NaN."
            )
        return np.asarray(self.to_dense(), dtype=dtype)

    def masked(self, observed: Any) -> LabelMatrix:
        """Make every entry outside a mask unobserved, including positives.

        Parameters
        ----------
        observed : sparse array of shape (n, L)
            Entries that are not stored become unobserved.

        Returns
        -------
        LabelMatrix
            The same labels with fewer entries observed.

        Raises
        ------
        ValueError
            If the mask has a different shape.
        """
        mask = _pattern(observed)
        if mask.shape != self.shape:
            raise ValueError(
                f"The mask has shape {mask.shape} but the labels have shape {self.shape}; they must agree."
            )
        if self.observed is not None:
            mask = mask.multiply(_pattern(self.observed))
        flips = None if self.flip_probabilities is None else self.flip_probabilities.multiply(mask)
        return LabelMatrix(self.positives.multiply(mask), mask, self.names, flips, self.class_columns)

    def without_labels(self, labels: Any) -> LabelMatrix:
        """Make all entries of some labels unobserved, and keep the columns; see :meth:`select_labels`."""
        kept = np.setdiff1d(np.arange(self.n_labels), label_places(labels, self.n_labels))
        ends = len(kept) * np.arange(len(self) + 1)
        every = (np.ones(ends[-1], np.int8), np.tile(kept, len(self)), ends)
        return self.masked(sp.csr_array(every, shape=self.shape))

    def select_labels(self, labels: Any) -> LabelMatrix:
        """Select labels, in the given order.

        Parameters
        ----------
        labels : array-like of int
            Label indices.

        Returns
        -------
        LabelMatrix
            The same rows with only these labels.
        """
        labels = label_places(labels, self.n_labels)
        return self._each(lambda table: table[:, labels], None if self.names is None else self.names[labels])

    def most_likely(self) -> LabelMatrix:
        """Replace probabilities by the more likely values, unobserved at 0.5; see :meth:`masked`."""
        if self.flip_probabilities is None:
            return self
        is_even = sp.csr_array(self.flip_probabilities == 0.5)
        labels = LabelMatrix(self.positives, self.observed, self.names)
        if not is_even.nnz:
            return labels
        return labels.masked(abs(self.observed_pattern()) - is_even.astype(np.int8))

    @property
    def expected_positives(self) -> sp.csr_array:
        """The expected positives, shape (n, L): 1 per positive entry, or its target.

        For counts: entries that are not stored, and unobserved ones, count 0.
        """
        flips = self.flip_probabilities
        return self.positives if flips is None else expected_positives(self.positives, flips)

    def positive_counts(self) -> npt.NDArray[np.int64]:
        """Count the positive rows per label.

        Returns
        -------
        ndarray of int64, shape (L,)
            The counts.
        """
        return np.bincount(self.positives.indices, minlength=self.n_labels)

    def observed_counts(self) -> npt.NDArray[np.int64]:
        """Count the observed rows per label; see :meth:`positive_counts`."""
        if self.observed is None:
            return np.full(self.n_labels, len(self), np.int64)
        return np.bincount(self.observed.indices, minlength=self.n_labels)

    def to_signs(self) -> npt.NDArray[np.int8]:
        """Return dense signs: +1 or -1 of the more likely value, and 0 if unobserved.

        Returns
        -------
        ndarray of int8, shape (n, L)
            The dense signs; select a few labels at a time when ``n L`` is large.
        """
        if self.observed is not None:
            return np.ascontiguousarray(self.observed.toarray())
        return np.asarray(2 * self.positives.toarray() - 1, dtype=np.int8)

    def to_soft_signs(self) -> npt.NDArray[Any]:
        """Return dense 2 q - 1 of targets q, and 0 if unobserved; see :meth:`to_signs`.

        An entry with q = 0.5 has the smallest number that a loss distinguishes from 0.
        """
        signs = self.to_signs()
        return signs if self.flip_probabilities is None else graded(signs, self.flip_probabilities.toarray())

    def to_dense(self) -> npt.NDArray[np.float64]:
        """Return dense targets, 1, 0 or q, and NaN if unobserved, as float64; see :meth:`to_signs`."""
        if self.observed is None:
            return np.asarray(self.expected_positives.toarray(), dtype=np.float64)
        return np.where(self.observed.toarray() == 0, np.nan, self.expected_positives.toarray())


def warn_of_targets(words: str) -> None:
    warn_caller(words[0].upper() + words[1:])


def _pattern(matrix: Any) -> sp.csr_array:
    """Return the nonzero pattern of a matrix as a CSR array of int8 ones with sorted indices."""
    if sp.issparse(matrix):
        csr = checked_csr(matrix, "The label matrix")
    else:
        table = numbers_of(matrix, "The label matrix")
        if table.ndim != 2:
            raise ValueError(f"The label matrix has shape {table.shape}; it must have shape (rows, labels).")
        if table.dtype.kind == "f" and np.isnan(table).any():
            raise ValueError("The label matrix has NaN; use LabelMatrix.from_any.")
        csr = sp.csr_array(table)
    if csr.data.size and not csr.data.all():
        csr = csr.copy()
        csr.eliminate_zeros()
    # copy what callers may change
    parts = np.ones(csr.nnz, np.int8), csr.indices.copy(), csr.indptr.copy()
    pattern = sp.csr_array(parts, shape=csr.shape)
    if not pattern.has_canonical_format:
        pattern.sum_duplicates()
        pattern.data[:] = 1
    return pattern


def _checked_sparse(Y: Any) -> sp.csr_array:
    csr = checked_csr(Y, "Y")
    with np.errstate(invalid="ignore"):
        bad = (csr.data != 1) & (csr.data != 0)
    if bad.any():
        position = int(np.flatnonzero(bad)[0])
        row = int(np.searchsorted(csr.indptr, position, side="right")) - 1
        raise ValueError(
            f"Y at row {row}, label {csr.indices[position]} is {csr.data[position]}. Stored entries of a "
            "sparse Y must be 1, others are negative; for unobserved ones pass a LabelMatrix with a mask."
        )
    return csr


def is_plain_array(Y: Any) -> bool:
    """Return whether targets are an array of numbers or text: no frame, no lists, no objects."""
    return isinstance(Y, np.ndarray) and Y.dtype.kind != "O"


def numbers_in(Y: Any) -> npt.NDArray[Any]:
    """Convert to a table of numbers; see :func:`checked_table`."""
    if is_plain_array(Y) and Y.dtype.kind != "U":
        return np.asarray(unmasked(Y))
    try:
        table = frame_values(Y) if is_frame(Y) else np.asarray(unmasked(Y))
        return table.astype(object).astype(float) if table.dtype.kind in "OU" else table
    except (TypeError, ValueError, OverflowError) as error:
        if "inhomogeneous" in str(error):
            raise ValueError(
                "Y has rows of different lengths; pass a table of 0 and 1, or lists of tags (text, or sets "
                "of numbers)."
            ) from None
        raise ValueError(
            f"Y has entries that are not numbers ({error}). Use 0/1 or -1/1, and NaN where not observed."
        ) from None


def checked_table(table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Check that a table is two-dimensional and numeric."""
    if table.ndim != 2:
        raise ValueError(f"Y has shape {table.shape}; it must have shape (rows, labels).")
    if table.dtype.kind == "b":
        return table.astype(np.int8)
    if table.dtype.kind not in "iuf":
        raise ValueError(f"Y has type {table.dtype}. Use 0/1 or -1/1, and NaN where not observed.")
    return table


def words_on_no_negative(labels: LabelMatrix, *, in_all: bool = False) -> str | None:
    """Describe columns with positives and no negatives; None if there are none or, by ``in_all``, not all."""
    if labels.observed is None:
        return None
    positive, observed = labels.positive_counts(), labels.observed_counts()
    found = np.flatnonzero((positive > 0) & (positive == observed) & (observed < len(labels)))
    if not len(found) or (in_all and len(found) < np.count_nonzero(observed)):
        return None
    name, count = str(labels.words[found[0]]), positive[found[0]]
    return (
        f"{len(found)} of {labels.n_labels} label columns hold 1 and missing cells only, such as {name!r} "
        f"({count} and {len(labels) - count}), so no row is known to lack the label"
    )
