"""Classes described by attributes: reading signatures and priors, and storing names in model files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelweave.estimators.targets import node_name, read_classes
from labelweave.foundation.array_types import Array
from labelweave.foundation.sklearn_compat import _num_samples, _safe_indexing
from labelweave.labels import LabelMatrix
from labelweave.labels.covariance.sources import checked_class_weights, in_class_order
from labelweave.labels.label_names import typed
from labelweave.model_files.schema import FLAG, Maybe, Numbers, Sizes, Texts, refuse


def attributes_of_classes(signatures: Any, y: Any) -> tuple[Any, Any, Array, Array]:
    """Look up the attributes of rows whose classes y (n,) names.

    signatures: of all classes; None where every class is an attribute of its own.
    Returns the attributes of the rows, in the container of the signatures; the signatures (classes, L); the
    names of their classes; and the class of every row by these names.
    Raises ValueError if a row has no class, or a class no signature.
    """
    targets = read_classes(y)
    unknown = np.flatnonzero(~targets.is_observed)
    if len(unknown):
        raise ValueError(f"y at row {unknown[0]} has no class; remove such rows, or pass attributes as y.")
    if signatures is None:
        table = np.eye(len(targets.classes))
        return table[targets.codes], table, targets.classes, targets.classes[targets.codes]
    names = class_names(signatures)
    place = {node_name(name): row for row, name in enumerate(names.tolist())}
    strangers = [name for name in targets.classes.tolist() if node_name(name) not in place]
    if strangers:
        raise ValueError(
            f"The class {strangers[0]!r} of y has no signature; pass a DataFrame with one row per class, or "
            "attributes as y."
        )
    rows = np.array([place[node_name(name)] for name in targets.classes.tolist()])[targets.codes]
    is_matrix = isinstance(signatures, LabelMatrix)
    table = signatures[rows] if is_matrix else _safe_indexing(signatures, rows)
    return table, signatures, names, names[rows]


def class_names(signatures: Any) -> Array:
    """Return the names of the classes: a frame's index, or their numbers; ValueError if names repeat."""
    index = getattr(signatures, "index", None) if hasattr(signatures, "columns") else None
    if index is None:
        return np.arange(_num_samples(signatures))
    names, once = typed(np.asarray(index)), set[str]()
    for name in map(node_name, names.tolist()):
        if name in once:
            raise ValueError(f"signatures has the class {name!r} more than once; pass one row per class.")
        once.add(name)
    return names


def read_signatures(signatures: Any, attributes: LabelMatrix) -> Array:
    """Read signatures for the attributes (n, L) of some training rows.

    signatures (classes, L): 0/1 or -1/1, NaN where unknown.
    Returns them as -1 or 1, 0 where unknown, columns in the order of the attributes.
    Raises ValueError if there are none, an entry is no label, or the attributes differ.
    """
    if signatures is None:
        raise ValueError("signatures is None; pass attributes of classes, of shape (classes, attributes).")
    table = LabelMatrix.from_any(signatures)
    if len(table) < 1 or table.n_labels != attributes.n_labels:
        raise ValueError(
            f"signatures has shape {table.shape} but y has {attributes.n_labels} attributes; pass one row "
            "per class and one column per attribute."
        )
    signs = table.to_signs().astype(np.float64)
    if table.names is not None and attributes.names is not None:
        signs = signs[:, _column_order(table.names, attributes.names)]
    return signs


def _column_order(names: Array, wanted: Array) -> list[int]:
    place = {str(name): column for column, name in enumerate(names)}
    for name in wanted:
        if str(name) not in place:
            raise ValueError(
                f"The attribute {str(name)!r} of y is not in signatures; both must have the same attributes."
            )
    return [place[str(name)] for name in wanted]


def read_class_prior(class_prior: Any, classes: Array) -> Array:
    """Read the weights of the classes, None for equal ones, and scale them to sum to 1.

    A Series or dict is matched by name.
    Raises ValueError if their number is wrong, a weight is negative, infinite or NaN, or all are 0.
    """
    names = [str(name) for name in classes]
    given = np.ones(len(names)) if class_prior is None else in_class_order(class_prior, names, len(names))
    prior = checked_class_weights(given, names)
    return np.asarray(prior / prior.sum())


@dataclass(frozen=True)
class StoredNames:
    """The field of names: an array, and whether they were objects."""

    letter: str

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) is not tuple or len(value) != 2:
            refuse(where, "names")
        Maybe(Texts(self.letter), Numbers(self.letter, "iufb"), none=False).check(value[0], where, sizes)
        FLAG.check(value[1], where, sizes)


def storable_names(names: Array) -> tuple[Array, bool]:
    """Return names as text where they are objects, and whether they were."""
    is_object = names.dtype == object
    return (names.astype(np.str_) if is_object else names), is_object


def names_again(stored: tuple[Array, bool]) -> Array:
    """Reverse :func:`storable_names`."""
    names, is_object = stored
    return names.astype(object) if is_object else names
