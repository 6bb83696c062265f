"""The rows of a partition as workers read them: validated, described for the client, and counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from dask.sizeof import sizeof
from sklearn.base import clone
from sklearn.utils import column_or_1d

from labelweave.dask.filed import Filed, FiledFeatures, in_memory_or_file, keeps_files, key_of_task
from labelweave.dask.waiting import returning_refusals
from labelweave.estimators.entry_weights import counts_by_class, rows_with_labels, sure_weights
from labelweave.estimators.journal import data_fingerprint
from labelweave.estimators.seen_rows import SeenRows
from labelweave.features import FeatureMatrix
from labelweave.foundation.array_types import Array, RowsByLabels
from labelweave.foundation.arrays import read_row_weights, unmasked
from labelweave.foundation.sklearn_compat import _num_samples
from labelweave.labels import ClassProbabilities, LabelMatrix
from labelweave.labels.class_probabilities import is_missing
from labelweave.labels.label_names import (
    distinct_classes,
    read_entry_weights,
    unknown_entries,
    weights_of_entries,
)
from labelweave.labels.tags import read_tags, tag_rows, texts_of
from labelweave.labels.targets import (
    TargetForm,
    check_lengths,
    has_many_labels,
    label_form,
)
from labelweave.solvers.frame import State


class Sized:
    """Base of objects on workers: reports its size to Dask, for scheduling and spilling."""

    def __sizeof__(self) -> int:
        return size_in_bytes(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: aligned(part) for name, part in state.items()})


def aligned(value: Any) -> Any:
    """Copy arrays that a message left at unaligned addresses, where NumPy multiplies differently.

    Arrays in the attributes of this library's and of SciPy's objects are replaced in place.
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy()
    if type(value).__module__.startswith(("labelweave.", "scipy.")) and hasattr(value, "__dict__"):
        inner = vars(value)
        inner.update({name: aligned(part) for name, part in inner.items()})
    return value


def size_in_bytes(value: Any) -> int:
    """Return the total size of the arrays inside."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, list | tuple):
        return sum(map(size_in_bytes, value))
    inner = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    # a list first, as threads may cache results in the attributes meanwhile
    return sum(map(size_in_bytes, list(inner.values())))


sizeof.register(State, size_in_bytes)


def itself(value: Any) -> Any:
    """Return a value as a task, which Dask repeats if its worker dies, unlike scattered values."""
    return value


class Held(Sized):
    """Rows on a worker, and the last requested problem, built once per process.

    rows: the input of :meth:`stated`.
    """

    def __init__(self, rows: Any) -> None:
        self.rows, self._lock = rows, Lock()
        self._last: tuple[Any, Any] | None = None

    def stated(self, asked: Any) -> Any:
        raise NotImplementedError

    def problem(self, asked: Any) -> Any:
        with self._lock:
            if self._last is None or self._last[0] is not asked:
                self._last = asked, self.stated(asked)
            return self._last[1]

    def __sizeof__(self) -> int:
        return size_in_bytes(vars(self.rows))

    def __getstate__(self) -> dict[str, Any]:
        return {"rows": self.rows, "_last": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._lock = Lock()


@keeps_files
@dataclass(frozen=True)
class ReadRows(Sized):
    """A partition after reading.

    targets: labels, or the class of each row, which has no form.
    entries: weights of entries, see :func:`labelweave.labels.label_names.read_entry_weights`.
    key: of the task that made it.
    """

    features: FeatureMatrix
    targets: LabelMatrix | Array
    weights: Array
    form: TargetForm | None
    entries: RowsByLabels | sp.coo_array | None = None
    key: Any = field(default_factory=key_of_task, init=False)

    @property
    def files(self) -> list[Filed]:
        """The files that contain it, except its labels and weights."""
        return [self.features.filed] if isinstance(self.features, FiledFeatures) else []


@dataclass(frozen=True)
class Facts:
    """The client's summary of a partition.

    form: the form of labels; None for classes.
    classes: those that occur; None for labels.
    largest_weight, largest_norm: of rows; the norm squared.
    entries: stored features; largest: the largest absolute value.
    mark: a digest of the data.
    n_weighted: the number of labels with entry weights; None without entry weights.
    counts: how often labels occur; None for classes, of which other partitions may have more.
    """

    n_rows: int
    n_features: int
    names: Array | None
    form: TargetForm | None
    label_names: Array | None
    classes: Array | None
    largest_weight: float
    largest_norm: float
    entries: int
    largest: float
    mark: str
    n_weighted: int | None = None
    counts: Counts | None = None

    @classmethod
    def of(cls, rows: ReadRows | ValueError | None) -> Facts | ValueError | None:
        """Describe a partition; None without rows."""
        if not isinstance(rows, ReadRows):
            return rows
        features, targets, entries = rows.features, rows.targets, rows.entries
        labels = targets if isinstance(targets, LabelMatrix) else None
        classes = None if isinstance(targets, LabelMatrix) else _classes_of(targets)
        # entries that sparse weights do not store are 1
        more = [] if entries is None else [type(entries).__name__, sp.csr_array(entries)]
        y = labels.parts() if labels is not None else np.asarray(targets).astype(np.str_)
        return cls(
            n_rows=len(features),
            **facts_of_features(rows),
            names=features.names,
            form=rows.form,
            label_names=None if labels is None else labels.names,
            classes=classes,
            largest_weight=float(rows.weights.max(initial=0.0)),
            mark=data_fingerprint(features.data, y, rows.weights, _names_of(rows), *more),
            n_weighted=None if entries is None else entries.shape[1],
            counts=None if rows.form is None else Counts.of(rows, rows.form),
        )

    @classmethod
    def joined(cls, parts: Sequence[Facts]) -> Facts:
        """Combine the summaries of partitions, except classes and counts."""
        return parts[0] if len(parts) == 1 else replace(
            parts[0],
            n_rows=sum(part.n_rows for part in parts),
            largest_weight=max(part.largest_weight for part in parts),
            largest_norm=max(part.largest_norm for part in parts),
            entries=sum(part.entries for part in parts),
            largest=max(part.largest for part in parts),
            mark=data_fingerprint([part.mark for part in parts]),
        )  # fmt: skip

    def of_rows(self, n_rows: int) -> Facts:
        """Return the summary for some of the rows."""
        return replace(self, n_rows=n_rows, entries=-(-self.entries * n_rows // self.n_rows))


def _names_of(rows: ReadRows) -> list[list[str] | None]:
    labels = getattr(rows.targets, "names", None)
    return [None if names is None else list(map(str, names)) for names in (rows.features.names, labels)]


def facts_of_features(rows: ReadRows) -> dict[str, Any]:
    """Describe the features of a partition: their facts, by name."""
    features = rows.features
    return {
        "n_features": features.shape[1],
        "largest_norm": float(features.squared_norms().max(initial=0.0)),
        "entries": int(features.data.nnz if features.is_sparse else features.data.size),
        "largest": features.largest_entry(),
    }


def _classes_of(targets: Array) -> Array:
    return distinct_classes(targets[~unknown_entries(targets)])[0]


@returning_refusals
def read_rows(reader: Any, X: Any, y: Any, weight: Any, entry_weight: Any) -> ReadRows | None:
    """Read a partition as the ordinary estimator does; None if it has no rows."""
    if is_empty(X, y):
        return None
    reader = clone(reader)
    features = reader._read_features(X, reset=True)
    names = getattr(reader, "feature_names_in_", None)
    features.names = None if names is None else np.asarray(names, np.str_)
    if texts_of(y) is not None:  # a partition does not reveal whether these are lists
        y = np.asarray(y, object)
    has_labels = has_many_labels(y)
    targets: Any = free_labels(LabelMatrix.from_any(y)) if has_labels else _classes(y)
    check_lengths(len(features), len(targets))
    weights = read_row_weights(weight, len(features), may_vanish=True)
    entries = None if entry_weight is None else _entries(entry_weight, targets)
    form = label_form(y, targets) if has_labels else None
    rows: ReadRows = aligned(ReadRows(in_memory_or_file(features), targets, weights, form, entries))
    return rows


def free_labels(labels: LabelMatrix) -> LabelMatrix:
    """Return labels; raise ValueError for those of columns of classes."""
    if labels.class_columns is not None:
        raise ValueError("y has columns of classes, which fits on Dask do not take; fit in memory.")
    return labels


def count_rows(X: Any) -> int:
    """Return the number of rows of a partition, which may be a list of them."""
    try:
        return int(_num_samples(X))
    except TypeError:
        raise ValueError(
            f"X is of type {type(X).__name__}; pass partitions as tables of numbers, one row per example."
        ) from None


def is_empty(X: Any, y: Any) -> bool:
    """Return whether a partition has no rows; raise for targets without rows, and unreadable ones."""
    if isinstance(y, ValueError):
        raise y
    if count_rows(X):
        return False
    n_targets = 0 if y is None else _num_samples(y)
    if n_targets:
        raise ValueError(f"X has 0 rows but y has {n_targets}; pass as many.")
    return True


def _classes(y: Any) -> Array:
    """Read one class per row; raise for lists that were converted to text."""
    if isinstance(y, ClassProbabilities):
        raise ValueError(
            "y has probabilities of classes, which need data in memory; pass "
            "labelweave.LabelMatrix.from_probabilities(y.table, y.classes) for each partition, or classes."
        )
    classes = np.asarray(column_or_1d(unmasked(y.astype(object)) if np.ma.isMaskedArray(y) else y))
    known = [entry for entry in classes if not is_missing(entry)] if classes.dtype.kind in "OU" else []
    if known and all(isinstance(entry, str) and entry[:1] + entry[-1:] == "[]" for entry in known):
        raise ValueError(
            f"y has lists as text, such as {known[0][:40]!r}, as Dask converts them; call dask.config.set("
            "{'dataframe.convert-string': False}) before the DataFrame is created."
        )
    if classes.dtype.kind == "O":
        _classes_of(classes)  # raises for text mixed with numbers
    return classes


def tags_in(y: Any) -> set[Any]:
    """Return the set of labels in lists."""
    return set(read_tags(_lists(y))[2])


def with_labels(rows: ReadRows, y: Any, names: Sequence[Any], form: TargetForm) -> ReadRows:
    """Replace lists by labels with one column per name; others are ignored."""
    positives, observed, tags = read_tags(_lists(y), list(names), others="ignore")
    return replace(rows, targets=LabelMatrix(positives, observed, tags), form=form)


def _lists(y: Any) -> list[Any]:
    rows = tag_rows(y)
    return list(y) if rows is None else rows  # if no entry is observed


def _entries(entry_weight: Any, targets: Any) -> Any:
    """Read entry weights; other partitions may add classes."""
    if isinstance(targets, LabelMatrix):
        return read_entry_weights(entry_weight, targets)
    width = entry_weight.shape[1] if getattr(entry_weight, "ndim", 0) == 2 else 1
    return read_entry_weights(entry_weight, LabelMatrix(sp.csr_array((len(targets), width), dtype=np.int8)))


@dataclass(frozen=True)
class Counts:
    """How often labels occur, (L,) each.

    positives, observed: rows in which each label is positive, and in which it is observed.
    weights: of the rows in which it is positive, and negative.
    n_rows: rows with any observed label.
    largest: the largest weight of an entry; has_weights: whether entries have their own weights.
    """

    positives: Array
    observed: Array
    weights: tuple[Array, Array]
    n_rows: int
    largest: float
    has_weights: bool

    @classmethod
    def of(cls, rows: ReadRows, form: TargetForm) -> Counts:
        labels = labels_of(rows, form)
        weights, n_rows = counts_by_class(labels, rows.weights), rows_with_labels(labels)
        entries = entries_of(rows, labels)
        largest = float(weights_of_entries(rows.weights, entries).max(initial=0.0))
        counts = labels.positive_counts(), labels.observed_counts()
        return cls(*counts, weights, n_rows, largest, entries is not None)

    def __add__(self, other: Counts) -> Counts:
        pairs = zip(self.weights, other.weights, strict=True)
        positive, negative = (first + second for first, second in pairs)
        positives, observed = self.positives + other.positives, self.observed + other.observed
        n_rows, largest = self.n_rows + other.n_rows, max(self.largest, other.largest)
        has_weights = self.has_weights or other.has_weights
        return Counts(positives, observed, (positive, negative), n_rows, largest, has_weights)


def labels_of(rows: ReadRows, form: TargetForm) -> LabelMatrix:
    """Return the labels of a partition, with a column per class if a row has one."""
    if isinstance(rows.targets, LabelMatrix):
        return rows.targets
    return SeenRows(rows.features, rows.targets, rows.weights, None, form.classes).targets()[0]


def rows_of(features: FeatureMatrix) -> Any:
    """Return features as models read them, with names if they have any."""
    if features.names is None or features.is_sparse:
        return features.data
    return pd.DataFrame(features.data, columns=features.names)


def entries_of(rows: ReadRows, labels: LabelMatrix) -> RowsByLabels | sp.coo_array | None:
    """Return the entry weights of a partition, including those for soft targets."""
    return sure_weights(labels, rows.entries)


def relabeled(rows: ReadRows, of_labels: Callable[[LabelMatrix], LabelMatrix]) -> ReadRows:
    """Replace the labels by a function of them."""
    assert isinstance(rows.targets, LabelMatrix), "these are no classes"
    return replace(rows, targets=of_labels(rows.targets))


def some_rows(rows: ReadRows, which: Array) -> ReadRows:
    """Keep some rows of a partition."""
    entries = rows.entries
    if entries is not None:
        entries = sp.coo_array(sp.csr_array(entries)[which]) if sp.issparse(entries) else entries[which]
    return replace(
        rows,
        features=in_memory_or_file(rows.features.rows(which)),
        targets=rows.targets[which],
        weights=rows.weights[which],
        entries=entries,
    )


def stacked_entries(parts: Sequence[RowsByLabels | sp.coo_array]) -> RowsByLabels | sp.coo_array:
    """Concatenate entry weights: dense if those of a partition are."""
    if all(map(sp.issparse, parts)):
        return sp.coo_array(sp.vstack(parts))
    return np.concatenate([weights_of_entries(np.ones(part.shape[0]), part) for part in parts])


def stacked(parts: Sequence[Any]) -> Any:
    """Concatenate rows of tables of any type: sparse if one of them is."""
    first = parts[0]
    if first is None or len(parts) == 1:
        return first
    if isinstance(first, FeatureMatrix):
        return FeatureMatrix._unchecked(stacked([aligned(part.data) for part in parts]), first.names)
    if isinstance(first, LabelMatrix):
        return LabelMatrix.stacked(parts)
    if isinstance(first, ClassProbabilities):
        return ClassProbabilities._of(np.concatenate([part.table for part in parts]), first.classes)
    return _stacked_tables(parts)


def _stacked_tables(parts: Sequence[Any]) -> Any:
    first = parts[0]
    if isinstance(first, (pd.DataFrame, pd.Series)):
        return pd.concat(parts)
    if any(map(sp.issparse, parts)):
        return sp.csr_array(sp.vstack([sp.csr_array(part) for part in parts]))
    if isinstance(first, list):
        return [row for part in parts for row in part]
    return (np.ma if any(map(np.ma.isMaskedArray, parts)) else np).concatenate(parts)
