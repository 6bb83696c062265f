"""The rows a report is about, as the classifier takes them and as a person reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.decisions.label_scores import rows_of, take_rows
from labelweave.decisions.layers import innermost
from labelweave.estimators import TableModel

__all__ = ["ReportedRows", "read_rows"]

Array = npt.NDArray[Any]

_LONGEST_CELL = 600


@dataclass(frozen=True)
class ReportedRows:
    """A classifier, rows in its features, and what the rows are called.

    Parameters
    ----------
    classifier : classifier
        One of the library's, perhaps in a wrapper that decides.
    X : array-like, sparse matrix or DataFrame of shape (n, d)
        The rows.
    names : list of str
        What they are called.
    feature_names : ndarray of str, shape (d,), or None
        The names of the features.
    frame : DataFrame of n rows, or None
        The table that the features were made from.
    vectorizer : TableVectorizer or None
        What made them.
    """

    classifier: Any
    X: Any
    names: list[str]
    feature_names: Array | None
    frame: Any = None
    vectorizer: Any = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def label_names(self) -> list[str]:
        """The names of the labels or classes."""
        return [str(name) for name in self.classifier.label_names_]

    @property
    def has_classes(self) -> bool:
        """Whether the model picks one class a row."""
        return bool(self.classifier._form.kind != "labels")

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The columns of text that features were made from."""
        return () if self.vectorizer is None else tuple(self.vectorizer.text)

    def take(self, rows: Array) -> Any:
        """Take rows in the features of the classifier.

        Parameters
        ----------
        rows : ndarray of int
            Which rows.

        Returns
        -------
        array-like, sparse matrix or DataFrame of shape (k, d)
            These rows.
        """
        return take_rows(self.X, rows)

    def cells(self, row: int) -> list[tuple[str, str]]:
        """Give what a person reads of a row: the columns that features were made from.

        Parameters
        ----------
        row : int
            Which row.

        Returns
        -------
        list of (str, str)
            Columns and their contents, long ones cut; none where the rows are features only.
        """
        return list(self._cells(row)) if self.frame is not None else []

    def _cells(self, row: int) -> Iterator[tuple[str, str]]:
        columns = [*self.vectorizer.text, *self.vectorizer.categorical, *self.vectorizer.numeric]
        cells = self.frame[columns].iloc[row]
        for column, value, is_missing in zip(columns, cells, cells.isna(), strict=True):
            text = "" if is_missing else str(value)
            yield column, text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]} ..."


def read_rows(model: Any, X: Any, row_names: Sequence[Any] | Array | None) -> ReportedRows:
    """Turn what a user holds into rows of features.

    Parameters
    ----------
    model : classifier or TableModel
        The fitted model.
    X : DataFrame, sparse matrix or array-like of n rows
        What it takes.
    row_names : sequence of length n or None
        What the rows are called; by default a frame's index, else numbers from 0.

    Returns
    -------
    ReportedRows
        The rows.

    Raises
    ------
    TypeError
        If the model is none of the library's classifiers.
    ValueError
        If there are no rows, or another number of names.
    """
    classifier = model.classifier if isinstance(model, TableModel) else model
    if not all(hasattr(classifier, name) for name in ("label_names_", "_form", "decision_function")):
        raise TypeError(
            f"A {type(model).__name__} was given; a report takes a fitted classifier of labelweave, or one "
            "that its TunedThresholdClassifier wraps."
        )
    names = _row_names(X, row_names)
    if not names:
        raise ValueError("The data have no rows, so there is nothing to report.")
    if isinstance(model, TableModel):
        features = model.vectorizer.transform(X)
        return ReportedRows(
            classifier, features, names, np.asarray(model.feature_names_), X, model.vectorizer
        )
    features = sp.csr_array(X) if sp.issparse(X) else X if hasattr(X, "columns") else np.asarray(X)
    return ReportedRows(classifier, features, names, _feature_names(classifier))


def _row_names(X: Any, row_names: Sequence[Any] | Array | None) -> list[str]:
    n_rows = rows_of(X)
    if row_names is None:
        index = getattr(X, "index", None)
        row_names = range(n_rows) if index is None or callable(index) else list(index)
    names = [str(name) for name in row_names]
    if len(names) != n_rows:
        raise ValueError(f"{len(names)} row names were given for {n_rows} rows; give one name a row.")
    return names


def _feature_names(classifier: Any) -> Array | None:
    names = getattr(
        classifier, "feature_names_in_", getattr(innermost(classifier), "feature_names_in_", None)
    )
    return None if names is None else np.asarray(names, dtype=np.str_)
