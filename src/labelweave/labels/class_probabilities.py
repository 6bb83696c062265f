"""Class labels and class probabilities, one row per example, for decisions and metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array, RowsByClasses
from labelweave.foundation.arrays import numbers_of, panels
from labelweave.foundation.frames import column_labels
from labelweave.foundation.sklearn_compat import is_pandas_na

_BLOCK_ENTRIES = 2**20  # entries per block: its temporaries stay under about 30 MB
_SUM_TOLERANCE = 1e-3  # half precision and printed tables are off by this much


@checked
class ClassProbabilities:
    """Probabilistic class labels, one class per row, from annotators, language models or other models.

    The loss of a row is the expected one: ``-sum_c p_c log P(c)`` if a model has one distribution over the
    classes (:class:`KernelLogisticClassifier`, flat or with a taxonomy that has them as leaves), and for
    models with one score per class that of :meth:`LabelMatrix.from_probabilities` with one label per class.
    Everything else, such as metrics and folds, uses the most likely classes.

    Parameters
    ----------
    probabilities : DataFrame or array-like of shape (n, C)
        Numbers from 0 to 1, with row sums of 1 within 0.001, by which rows are then divided; or all NaN for
        an unobserved row.
    classes : sequence of length C or None, default=None
        The classes, all distinct; by default a frame's columns, else 0, 1, ...

    Attributes
    ----------
    table : ndarray of shape (n, C)
        The probabilities, NaN where a row was not observed.
    classes : ndarray of shape (C,)
        The classes, sorted as in every classifier.

    Raises
    ------
    ValueError
        If a row is no distribution, naming it, or there are fewer than two classes or duplicates.

    Examples
    --------
    >>> from labelweave.labels import ClassProbabilities
    >>> y = ClassProbabilities([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]], ["cat", "dog", "fox"])
    >>> y
    ClassProbabilities(2 rows, 3 classes, all observed)
    >>> y.most_likely()
    array(['cat', 'dog'], dtype=object)
    """

    def __init__(self, probabilities: Any, classes: Sequence[Any] | Array | None = None) -> None:
        table = _as_table(probabilities).astype(np.float64)
        named = column_labels(probabilities) if classes is None else classes
        names = _distinct(range(table.shape[1]) if named is None else named, table.shape[1])
        observed: Array = ~np.asarray(np.isnan(table).all(axis=1))
        read_class_probabilities(np.where(observed[:, None], table, 1.0 / table.shape[1]))
        table /= table.sum(axis=1, keepdims=True)
        order = np.argsort(names)
        self.table, self.classes = table[:, order], names[order]

    @classmethod
    def _of(cls, table: RowsByClasses, classes: Array) -> ClassProbabilities:
        made = cls.__new__(cls)
        made.table, made.classes = table, classes
        return made

    @classmethod
    def of_labels(cls, labels: Any, classes: Sequence[Any]) -> ClassProbabilities:
        """Convert label probabilities to class probabilities, for rows with one label each.

        Parameters
        ----------
        labels : LabelMatrix of shape (n, C)
            The labels; a row is observed entirely or not at all.
        classes : sequence of length C
            The names of the classes.

        Returns
        -------
        ClassProbabilities
            The same numbers.

        Raises
        ------
        ValueError
            As for a table; also for a partially observed row, naming the entry.
        """
        if not hasattr(labels, "expected_positives"):
            raise ValueError(f"labels is of type {type(labels).__name__}; it must be a LabelMatrix.")
        table = labels.expected_positives.toarray().astype(np.float64)
        if labels.has_missing:
            table[labels.observed_pattern().toarray() == 0] = np.nan
        return cls(table, classes)

    @property
    def shape(self) -> tuple[int]:
        """The number of rows, as the shape of a class array."""
        return (len(self.table),)

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, rows: Any) -> ClassProbabilities:
        """Select rows by a slice, an index array or a boolean mask."""
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]  # scikit-learn indexes rows this way
        return self._of(self.table[rows], self.classes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.most_likely(), dtype=dtype)

    def __repr__(self) -> str:
        n, seen = len(self), int(self.observed.sum())
        shown = "all observed" if seen == n else f"{seen} observed"
        return f"ClassProbabilities({n} rows, {len(self.classes)} classes, {shown})"

    @property
    def observed(self) -> Array:
        """Whether each row is observed, shape (n,)."""
        return ~np.isnan(self.table[:, 0])

    def most_likely(self) -> Array:
        """Return the most likely class per row, the first of ties.

        Returns
        -------
        ndarray of object, shape (n,)
            The classes, None for unobserved rows.
        """
        found = np.full(len(self), None, object)
        seen = self.observed
        found[seen] = self.classes.astype(object)[self.table[seen].argmax(axis=1)]
        return found


def _distinct(classes: Any, n_columns: int) -> Array:
    given = np.asarray(classes, dtype=None if hasattr(classes, "dtype") else object)
    if given.shape != (n_columns,):
        raise ValueError(
            f"classes has shape {given.shape} but the probabilities have {n_columns} columns; pass one class "
            "per column."
        )
    if n_columns < 2:
        raise ValueError("The probabilities have one class; a classifier needs at least 2 classes.")
    names = given.tolist()
    strange = [name for name in names if is_missing(name) or not isinstance(name, (str, Real))]
    if strange or len({isinstance(name, str) for name in names}) > 1:
        raise ValueError("classes has mixed or unsupported types; pass all text or all numbers.")
    found, counts = np.unique(np.array(names), return_counts=True)
    if (counts > 1).any():
        raise ValueError(f"classes has {found[counts.argmax()].item()!r} twice; use distinct names.")
    return np.array(names)


def is_missing(entry: Any) -> bool:
    """Return whether a class is missing: None, NaN or pandas.NA."""
    return (
        entry is None
        or is_pandas_na(entry)
        or (isinstance(entry, (float, np.floating)) and math.isnan(entry))
    )


def read_class_probabilities(probabilities: Any) -> RowsByClasses:
    """Check that every row of a table (n, C) is a distribution, with a sum of 1 within 0.001."""
    table = _as_table(probabilities)
    for rows, block in probability_blocks(table):
        sums = block.sum(axis=1, dtype=np.float64)
        # NaN fails both comparisons
        fine = (block >= 0).all(axis=1) & (np.abs(sums - 1.0) <= _SUM_TOLERANCE)
        if not fine.all():
            row = int(np.flatnonzero(~fine)[0])
            _refuse_row(rows.start + row, block[row], float(sums[row]))
    return table


def probability_blocks(table: RowsByClasses, n_columns: int = 0) -> Iterator[tuple[slice, Array]]:
    """Yield blocks of about a million entries, of the table or a wider one with ``n_columns``."""
    step = max(1, _BLOCK_ENTRIES // max(1, table.shape[1], n_columns))
    return ((part, table[part]) for part in panels(len(table), step))


def _as_table(probabilities: Any) -> Array:
    if sp.issparse(probabilities):
        raise ValueError("The probabilities are a sparse matrix; pass a dense array, one column per class.")
    table = numbers_of(probabilities, "The table of probabilities")
    if table.ndim != 2 or table.shape[1] == 0:
        raise ValueError(
            f"The probabilities have shape {table.shape}; they must have shape (rows, classes), with at "
            "least one class."
        )
    return table if table.dtype.kind == "f" else table.astype(np.float64)


def _refuse_row(row: int, values: Array, total: float) -> None:
    bad = np.flatnonzero(~(values >= 0))
    if len(bad):
        raise ValueError(
            f"The probability at row {row}, class {int(bad[0])} is {values[bad[0]]}; probabilities must be "
            "numbers from 0 to 1."
        )
    raise ValueError(
        f"The probabilities of row {row} sum to {total:.6g}; they must sum to 1, with one column per class."
    )
