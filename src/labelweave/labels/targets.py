"""Conversion of a user's y to a label matrix, and of scores back to the form of y.

A two-dimensional y has one column per label.  A one-dimensional y has one class per row, observed fully,
partially or not at all: two classes are one label, more are one label per class.  A two-dimensional y of
other entries has one column per class of each column (:mod:`labelweave.labels.class_columns`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from labelweave.foundation.arguments import shown
from labelweave.foundation.array_types import Array, PerRow
from labelweave.foundation.arrays import unmasked
from labelweave.foundation.frames import FrameForm, frame_values, is_frame
from labelweave.labels import ClassProbabilities, LabelMatrix, Taxonomy, label_names
from labelweave.labels.class_columns import ClassColumns, has_class_columns, read_class_columns
from labelweave.labels.label_matrix import is_plain_array, warn_of_targets, words_on_no_negative
from labelweave.labels.tags import TagRows, tag_rows


@dataclass(frozen=True)
class TargetForm:
    """The form of the targets of a fit, which predictions return: label sets, or one class per row.

    classes: the classes, or the labels' names or numbers.
    container: the type of multi-label predictions; tags are lists of the positive labels.
    negative: the value of a negative label, 0 or -1.
    frame: the library of a frame or column, and the names of labels that are not text.
    unobserved: the numbers of labels with no observed value in training.
    columns: the columns of classes that the labels stand for; None where labels are free.
    """

    classes: Array
    container: Literal["array", "sparse", "frame", "tags"] = "array"
    negative: int = 0
    frame: FrameForm | None = None
    unobserved: tuple[int, ...] = ()
    columns: ClassColumns | None = None

    kind: ClassVar[str]
    has_one_class: ClassVar[bool] = True
    """Whether a row has one class; otherwise any number of labels."""
    is_pair: ClassVar[bool] = False
    """Whether a row has one of two classes; their only score is that of the second."""
    is_ranked: ClassVar[bool] = False
    """Whether the highest score decides, of all classes or of those of each column; not thresholds."""

    def to_state(self) -> dict[str, Any]:
        """Return all but the classes as plain data, without what cannot be stored of a frame's columns."""
        frame = self.frame and asdict(self.frame if self.frame.is_plain else FrameForm(self.frame.library))
        state = vars(self) | {"frame": frame, "classes": None}
        kept = {name: value for name, value in state.items() if value is not None and value != ()}
        return {"kind": self.kind} | kept

    @staticmethod
    def from_state(state: dict[str, Any], classes: Array) -> TargetForm:
        """Restore the form."""
        frame = None if state.get("frame") is None else FrameForm(**state["frame"])
        columns = state.get("columns")
        n_columns = len(classes if columns is None else columns.names)
        if frame is not None and frame.labels is not None and len(frame.labels) != n_columns:
            raise ValueError(f"{len(frame.labels)} columns are named for {n_columns} labels")
        if columns is not None and columns.labels != classes.tolist():
            raise ValueError("the classes of its columns are not its labels")
        unobserved = tuple(state.get("unobserved", ()))
        if not all(type(label) is int and 0 <= label < len(classes) for label in unobserved):
            raise ValueError(f"{unobserved} are no numbers of {len(classes)} labels")
        fields = state | {"classes": classes, "frame": frame, "unobserved": unobserved}
        form = _FORMS[fields.pop("kind")]
        return (form if columns is None else ColumnsOfClasses)(**fields)

    def widened(self, later: TargetForm, classes: Array) -> TargetForm:
        """Return the joint form of these labels and later ones, whose names are the classes."""
        before, after = self.frame, later.frame
        if before is None or before.labels is None:
            return replace(self, classes=classes)
        if after is None or len(after.level_names or "x") != len(before.level_names or "x"):
            return replace(self, classes=classes, frame=FrameForm(before.library))
        known = dict(zip(later.classes, after.labels or later.classes, strict=True))
        known |= dict(zip(self.classes, before.labels, strict=True))
        return replace(self, classes=classes, frame=replace(before, labels=[known[name] for name in classes]))

    @property
    def one_of(self) -> Array | None:
        """The classes where each row has one of three or more, that of the highest score; else None."""
        return None

    @property
    def facts(self) -> dict[str, Any]:
        """What excludes models or parameters, by ``RULES`` of :mod:`labelweave.estimators.parameters`."""
        return {"ranked classes": len(self.classes)} if self.is_ranked else {}

    @property
    def scored(self) -> Array:
        """The classes or labels that have a column of scores, shape (columns,)."""
        return self.classes

    def scores(self, wide: Array) -> Array:
        """Convert scores (n, columns) to their public shape: one column for two classes becomes a vector."""
        return wide

    def probabilities(self, wide: Array) -> Any:
        """Convert the probabilities of the columns (n, columns) to those of the classes or labels."""
        return wide

    def distributions(self, of_part: Callable[[slice], Array]) -> Any:
        """Return the distribution over ranked classes; for columns of classes a list.

        of_part: makes it from some columns of scores.
        """
        raise NotImplementedError

    def deciding(self, blocks: Iterator[Array]) -> Iterator[Array]:
        """Make the scores of columns of classes, in blocks (n, L), positive for predicted classes alone."""
        return blocks

    def decide(self, wide: Array) -> Any:
        """Convert scores to predictions; positive labels have positive scores.

        wide (n, columns): the scores, one column per column of the label matrix.
        Returns (n, columns): labels, or one class per row.
        """
        raise NotImplementedError

    def join(self, parts: list[Any], X: Any = None) -> Any:
        """Concatenate predictions of row blocks, in the container of the training targets.

        parts: the result of :meth:`decide` for each block of rows.
        X: the rows, whose index a frame gets.
        Returns (n, columns): the predictions of all rows.
        """
        return np.concatenate(parts)


class OneOfTwo(TargetForm):
    """One of two classes per row: one column of scores, above 0 for the second."""

    kind = "binary"
    is_pair = True

    @property
    def scored(self) -> Array:
        return self.classes[1:]

    def scores(self, wide: Array) -> Array:
        return wide[:, 0]

    def probabilities(self, wide: Array) -> Any:
        return np.column_stack([1.0 - wide, wide])

    def decide(self, wide: Array) -> Any:
        return self.classes[(wide[:, 0] > 0).astype(np.intp)]


class OneOfMany(TargetForm):
    """One of three or more classes per row: the one with the highest score."""

    kind = "multiclass"
    is_ranked = True

    @property
    def one_of(self) -> Array | None:
        return self.classes

    def distributions(self, of_part: Callable[[slice], Array]) -> Any:
        return of_part(slice(None))

    def decide(self, wide: Array) -> Any:
        return self.classes[wide.argmax(axis=1)]


class LabelSets(TargetForm):
    """Any number of labels per row."""

    kind = "labels"
    has_one_class = False

    def decide(self, wide: Array) -> Any:
        if self.container in ("sparse", "tags"):
            return sp.csr_array((wide > 0).astype(np.int64))
        return np.where(wide > 0, 1, self.negative)

    def join(self, parts: list[Any], X: Any = None) -> Any:
        if self.container in ("sparse", "tags"):
            whole = sp.csr_array(sp.vstack(parts, format="csr"))
            return self._tags(whole, _index_of(X)) if self.container == "tags" else whole
        whole = np.concatenate(parts)
        if self.container == "frame":
            return (self.frame or FrameForm("pandas")).frame(whole, self.classes, _index_of(X))
        return whole

    def _tags(self, positives: sp.csr_array, index: Any) -> Any:
        frame = self.frame or FrameForm("builtins")
        tags = self.classes.tolist() if frame.labels is None else frame.labels
        rows = [
            [tags[label] for label in labels]
            for labels in np.split(positives.indices, positives.indptr[1:-1])
        ]
        return frame.column_of_lists(rows, index)


class ColumnsOfClasses(LabelSets):
    """One class per row and column: the one with the highest score of the column's labels."""

    is_ranked = True
    columns: ClassColumns

    @property
    def facts(self) -> dict[str, Any]:
        return {"columns": repr(self.columns.names[0])} | super().facts

    def distributions(self, of_part: Callable[[slice], Array]) -> Any:
        return [of_part(part) for part in self.columns.slices]

    def deciding(self, blocks: Iterator[Array]) -> Iterator[Array]:
        return (self.columns.sets(block) - 0.5 for block in blocks)

    def decide(self, wide: Array) -> Any:
        return self.columns.best(wide)

    def join(self, parts: list[Any], X: Any = None) -> Any:
        return self.columns.table(np.concatenate(parts), self.frame, _index_of(X))


def _index_of(X: Any) -> Any:
    index = getattr(X, "index", None)
    return None if callable(index) else index  # lists have a method of that name


_FORMS = {form.kind: form for form in (LabelSets, OneOfTwo, OneOfMany)}


def form_of_classes(classes: Array) -> TargetForm:
    return (OneOfTwo if len(classes) == 2 else OneOfMany)(classes)


def read_targets(
    y: Any, covariance: Any = None, *, is_related: bool = False
) -> tuple[LabelMatrix, TargetForm]:
    """Read targets of any kind.

    y: labels, NaN where unobserved; or one class per row, None or NaN where it is unobserved.
    covariance: if it is a taxonomy, y may name inner nodes: the classes below are then unobserved in the row,
        the others negative.
    is_related: whether more than the rows informs labels.
    Shapes: labels (n, columns).
    Raises ValueError if y has only one class, or its entries are no labels.
    """
    y = tags_read(y)
    if has_many_labels(y):
        labels = read_labels(y)
        require_observed(labels, is_related=is_related)
        form = label_form(y, labels)
        words = label_names.words_on_alike(labels.words) if form.container == "tags" else None
        if labels.class_columns is not None and not isinstance(y, LabelMatrix):
            words = labels.class_columns.words_on_numbers()
        is_table = form.container != "tags" and labels.class_columns is None
        if is_table and not (is_related or isinstance(y, LabelMatrix)):
            words = words_on_no_negative(labels, in_all=True)  # in one column it may be chance
            words = words and f"{words}; for negative ones use y.fillna(0), or a LabelMatrix to silence this"
        if words is not None:
            warnings.warn(f"In Y {words}", UserWarning, stacklevel=2)
        return labels, form
    targets = read_classes(y, covariance if isinstance(covariance, Taxonomy) else None)
    form = form_of_classes(targets.classes)
    return _one_against_the_rest(targets, slice(-len(form.scored), None)), form


def _one_against_the_rest(targets: ClassTargets, columns: slice) -> LabelMatrix:
    n, n_classes = len(targets.codes), len(targets.classes)
    if targets.shares is not None:
        return LabelMatrix.from_probabilities(targets.shares[:, columns])
    is_whole = targets.is_observed.copy()
    is_whole[targets.partial] = False
    rows = np.flatnonzero(is_whole)
    ones = np.ones(len(rows), np.int8)
    positives = sp.csr_array((ones, (rows, targets.codes[rows])), shape=(n, n_classes))[:, columns]
    if len(rows) == n:
        return LabelMatrix(positives)
    observed = sp.lil_array((n, n_classes), dtype=np.int8)
    observed[rows] = 1
    observed[targets.partial] = ~targets.allowed
    return LabelMatrix(positives, sp.csr_array(observed)[:, columns])


def read_labels(y: Any) -> LabelMatrix:
    """Read labels, or columns of classes where entries are no labels.

    Raises ValueError if they are neither.
    """
    try:
        return LabelMatrix.from_any(y)
    except ValueError:
        if not has_class_columns(y):
            raise
    return read_class_columns(y)


def check_lengths(n_rows: int, n_targets: int) -> None:
    """Check that there is one target per row.

    Raises ValueError if the numbers differ.
    """
    if n_rows != n_targets:
        raise ValueError(f"X has {n_rows} rows but y has {n_targets}; pass one row of labels per row of X.")


def tags_read(y: Any, *, warns: bool = True) -> Any:
    """Return lists of tags as :class:`TagRows`, so that nothing reads them twice; other targets unchanged.

    warns: of how texts were split.
    """
    tags = None if is_plain_array(y) else tag_rows(y, warn_of_targets if warns else None)
    return y if tags is None else tags


def has_many_labels(y: Any) -> bool:
    """Distinguish multi-label targets from one class per row.

    Returns whether y has one column per label.
    """
    y = tags_read(y, warns=False)
    if isinstance(y, ClassProbabilities):
        return False
    is_table = not is_plain_array(y) and is_frame(y)
    if is_table or isinstance(y, (LabelMatrix, TagRows)) or sp.issparse(y):
        return True
    try:
        y = np.asarray(unmasked(y))
    except ValueError:  # rows of different lengths, which reading labels rejects
        return True
    return y.ndim == 2 and (
        y.shape[1] != 1 or bool(np.isin(y[~label_names.unknown_entries(y)], (0, 1, -1)).all())
    )


def label_form(y: Any, labels: LabelMatrix) -> TargetForm:
    y = tags_read(y, warns=False)
    classes = np.arange(labels.n_labels) if labels.names is None else labels.names.astype(object)
    unobserved = tuple(np.flatnonzero(labels.observed_counts() == 0).tolist())
    container: Literal["array", "sparse", "frame", "tags"] = "array"
    frame, negative = None, 0
    if not is_plain_array(y) and is_frame(y):
        container, frame = "frame", FrameForm.of(y)
    if labels.class_columns is not None:
        labels.class_columns.require_classes()
    elif isinstance(y, LabelMatrix) or sp.issparse(y):
        container = "sparse"
    elif isinstance(y, TagRows):
        container, frame = "tags", FrameForm(y.library, y.originals)
    else:
        negative = -1 if ((frame_values(y) if frame else np.asarray(y)) == -1).any() else 0
    form = LabelSets if labels.class_columns is None else ColumnsOfClasses
    return form(classes, container, negative, frame, unobserved, labels.class_columns)


class UnobservedLabelWarning(UserWarning, ValueError):  # noqa: N818
    """A label with no observed value in training, as in a fold of a cross-validation.

    The model scores it alike in all rows; ``unobserved_labels_`` of the model has the numbers of such labels,
    and the scorers of :mod:`labelweave.metrics` ignore them.  There is no warning where a label covariance, a
    taxonomy or a mean relates labels: these then determine its scores.  A graph of labels does not: it only
    states which labels depend on each other, and how they do is learned from rows that have both.
    """


def require_observed(labels: LabelMatrix, *, is_related: bool = False) -> None:
    """Warn of labels with no observed entry; raise if no label has one.

    is_related: whether more than the rows informs them, so that there is nothing to warn of.
    """
    if labels.n_labels == 0:
        raise ValueError("Y has no labels (0 columns); it must have at least one.")
    never = np.flatnonzero(labels.observed_counts() == 0)
    if not len(never) or not len(labels):
        return
    name = never[0] if labels.names is None else repr(str(labels.names[never[0]]))
    said = (
        f"Label {name} has no observed entry in Y ({len(never)} of {labels.n_labels} labels have none); "
        "drop them, or relate them to others, as by label_covariance."
    )
    if len(never) == labels.n_labels:
        raise ValueError(said)
    if not is_related:
        warnings.warn(said, UnobservedLabelWarning, stacklevel=2)


@dataclass(frozen=True)
class ClassTargets:
    """The class of every row.

    classes (C,): the classes, sorted: the distinct entries of y, or leaves of the taxonomy.
    codes: the class of each row; arbitrary where it is not certain.
    is_observed: whether the row has any observed class, inner node or probabilities.
    partial (k,): rows labeled with an inner node of the taxonomy.
    allowed (k, C): the classes under that node.
    shares (n, C): the probabilities of the classes, NaN where unobserved; None where there are none.
    """

    classes: Array
    codes: PerRow
    is_observed: PerRow
    partial: Array
    allowed: Array
    shares: Array | None = None


def read_classes(y: Any, taxonomy: Taxonomy | None = None) -> ClassTargets:
    """Read one class per row.

    y (n,): classes; None or NaN where unobserved.  With a taxonomy the names of its nodes.  Or their
        probabilities, with a taxonomy those of its leaves.
    taxonomy: the classes are its leaves that y names, or that lie under an inner node that y names.
    Raises ValueError if y has fewer than two classes, or names no node; the message names the row.
    """
    if isinstance(y, ClassProbabilities):
        return _probable_classes(y, taxonomy)
    if y is None or isinstance(y, str):
        said = "y should be a 1d array, a table or lists of tags, such as frame['tags']"
        raise ValueError(f"{said}; it is {shown(y)}.")
    if hasattr(y, "iloc") and np.ndim(y) == 1 and not isinstance(y.dtype, np.dtype) and y.dtype.kind in "iub":
        y = y.to_numpy(dtype=object)  # which keeps integers with missing values as integers
    y = column_or_1d(unmasked(y.astype(object)) if np.ma.isMaskedArray(y) else y, warn=True)
    missing = label_names.unknown_entries(y)
    known = y[~missing]
    if len(known) == 0:
        raise ValueError(f"y has {len(y)} rows and no observed class; it must have at least 2 classes.")
    known = label_names.typed(known)
    if known.dtype.kind == "f":
        assert_all_finite(known, input_name="y")
    if known.dtype.kind != "O":
        check_classification_targets(known)
    if taxonomy is None:
        return _flat(known, missing)
    return _leaves(known, missing, taxonomy)


def _probable_classes(y: ClassProbabilities, taxonomy: Taxonomy | None) -> ClassTargets:
    if not y.observed.any():
        raise ValueError(f"y has {len(y)} rows and no observed class; it must have at least 2 classes.")
    names = [label_names.as_text(name) for name in y.classes.tolist()]
    if taxonomy is not None and (strange := sorted(set(names) - set(taxonomy.leaves))):
        raise ValueError(
            f"y has probabilities of {strange[0]!r}, which is not a leaf of the taxonomy; spread the mass of "
            "an inner node over its leaves."
        )
    codes = np.where(y.observed, np.nan_to_num(y.table).argmax(axis=1), 0)
    nothing = np.empty(0, np.intp), np.empty((0, len(names)), bool)
    return ClassTargets(y.classes, codes, y.observed, *nothing, y.table)


def _flat(known: Array, missing: Array) -> ClassTargets:
    classes, found = label_names.distinct_classes(known)
    _require_two(classes)
    codes = np.zeros(len(missing), np.intp)
    codes[~missing] = found
    return ClassTargets(classes, codes, ~missing, np.empty(0, np.intp), np.empty((0, len(classes)), bool))


def _require_two(classes: Array) -> None:
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only, {classes.tolist()[0]!r}; a classifier needs at least 2 classes."
        )


def _leaves(known: Array, missing: Array, taxonomy: Taxonomy) -> ClassTargets:
    rows = np.flatnonzero(~missing)
    entries, which = np.unique([label_names.as_text(entry) for entry in known], return_inverse=True)
    _refuse_unknown(entries, which, rows, taxonomy)
    below = taxonomy.under(entries.tolist(), taxonomy.leaves).toarray() > 0
    kept = np.flatnonzero(below.any(axis=0))
    leaves = label_names.as_given([taxonomy.leaves[leaf] for leaf in kept], known)
    classes, order = np.unique(leaves, return_index=True)
    _require_two(classes)
    below = below[:, kept[order]]
    is_partial = below.sum(axis=1)[which] > 1
    codes = np.zeros(len(missing), np.intp)
    codes[rows] = below.argmax(axis=1)[which]
    return ClassTargets(classes, codes, ~missing, rows[is_partial], below[which[is_partial]])


def _refuse_unknown(entries: Array, which: Array, rows: Array, taxonomy: Taxonomy) -> None:
    unknown = np.array([name not in taxonomy for name in entries.tolist()])[which]
    if unknown.any():
        first = int(unknown.argmax())
        raise ValueError(
            f"y at row {rows[first]} is {str(entries[which[first]])!r}, which is not a node of the taxonomy; "
            "pass a leaf, an inner node if the leaf is unknown, or None."
        )
