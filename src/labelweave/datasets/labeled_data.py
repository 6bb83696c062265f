"""The result of readers and synthetic problems: rows, their labels and the names of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.arguments import checked
from labelweave.foundation.arrays import check_sparse
from labelweave.labels import LabelMatrix, Taxonomy


@checked
@dataclass(frozen=True)
class LabeledData:
    """Rows with their labels.

    Parameters
    ----------
    X : csr_array, ndarray or DataFrame of shape (n, d)
        The features; a frame is a table before it is vectorized.
    Y : LabelMatrix of shape (n, L)
        The targets.
    feature_names : ndarray of str, shape (d,), or None, default=None
        One name per feature.
    row_ids : ndarray of shape (n,) or None, default=None
        The names of the rows in the file; in a table text and numbers, with dates and times as text.
    parents : tuple of (str, str) or None, default=None
        Pairs ``(parent, child)`` of label names where the labels form a taxonomy; a label that is no child is
        a child of the root.
    vectorizer : TableVectorizer or None, default=None
        The transformer that made X from the columns of a table; use it on later tables.
    first_feature : {0, 1} or None, default=None
        The index of the first feature in an svmlight file; read test files with ``zero_based`` accordingly.
    weights : ndarray of shape (n,) or None, default=None
        The weights of the rows, for ``fit(X, Y, sample_weight=weights)``; None if all are 1.
    groups : ndarray of shape (n,) or None, default=None
        The source of each row, where rows of one source must stay in one fold.
    """

    X: Any
    Y: LabelMatrix
    feature_names: npt.NDArray[Any] | None = None
    row_ids: npt.NDArray[Any] | None = None
    parents: tuple[tuple[str, str], ...] | None = None
    vectorizer: Any | None = None
    first_feature: int | None = None
    weights: npt.NDArray[Any] | None = None
    groups: npt.NDArray[Any] | None = None

    def __post_init__(self) -> None:
        check_sparse(self.X, "X")
        if getattr(self.X, "ndim", 0) != 2:
            raise ValueError(
                "X is not a table; pass a dense or sparse array or a DataFrame of shape (rows, features)."
            )
        if getattr(self.X, "format", "csr") not in ("csr", "csc", "coo"):  # LIL, BSR, DIA, DOK
            object.__setattr__(self, "X", self.X.tocsr())
        if self.X.shape[0] != len(self.Y):
            raise ValueError(f"X has {self.X.shape[0]} rows but Y has {len(self.Y)}; they must agree.")
        _check_length("feature_names", self.feature_names, self.X.shape[1], "columns")
        _check_length("row_ids", self.row_ids, len(self.Y), "rows")
        _check_length("weights", self.weights, len(self.Y), "rows")
        _check_length("groups", self.groups, len(self.Y), "rows")

    @property
    def label_names(self) -> npt.NDArray[Any] | None:
        """The label names, shape (L,), or None."""
        return self.Y.names

    @property
    def taxonomy(self) -> Taxonomy | None:
        """The tree of the labels, with those in no pair as roots; None if there are no parents."""
        if self.parents is None:
            return None
        return Taxonomy(self.parents, () if self.label_names is None else self.label_names)

    @property
    def classes(self) -> npt.NDArray[np.object_]:
        """The most specific node of each row, shape (n,), or None; see :meth:`Taxonomy.deepest`."""
        taxonomy = self.taxonomy
        if taxonomy is None:
            raise ValueError(
                "These data have no taxonomy (parents is None), so rows have no single class; read a "
                "hierarchical file."
            )
        return taxonomy.deepest(self.Y)

    @property
    def written_feature_names(self) -> list[str]:
        """The feature names, by default ``feature_0`` and so on."""
        if self.feature_names is None:
            return [f"feature_{place}" for place in range(self.X.shape[1])]
        return [str(name) for name in self.feature_names]

    def __len__(self) -> int:
        return len(self.Y)

    def __repr__(self) -> str:
        n, d = self.X.shape
        tree = "" if self.parents is None else f", {len(self.parents)} parent-child pairs"
        return f"LabeledData({n} rows, {d} features, {self.Y.n_labels} labels{tree})"


def refuse_missing(data: LabeledData) -> None:
    """Raise ValueError for missing values, in formats that cannot represent them."""
    entries = data.X.data if sp.issparse(data.X) else np.asarray(data.X)
    what = "unobserved labels" if data.Y.has_missing else "missing features"
    if data.Y.has_missing or np.isnan(entries).any():
        raise ValueError(f"The data have {what}, which this format cannot hold; use write_mulan.")
    refuse_probabilities(data)


def refuse_probabilities(data: LabeledData) -> None:
    """Raise ValueError for labels that are probabilities, which only tables can hold."""
    if data.Y.flip_probabilities is not None:
        raise ValueError(
            "The labels are probabilities, which this format cannot hold; write their more likely values, "
            "Y.most_likely()."
        )


def _check_length(name: str, values: Any, length: int, what: str) -> None:
    if values is None:
        return
    is_list = isinstance(values, (list, tuple)) or (hasattr(values, "__array__") and np.ndim(values) == 1)
    if not is_list or len(values) != length:
        found = f"{len(values)} entries" if is_list else f"type {type(values).__name__}"
        raise ValueError(f"{name} has {found} but X has {length} {what}; pass one entry for each.")
