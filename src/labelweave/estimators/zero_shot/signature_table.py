"""Classes described by attributes: what a user gives, checked and put in the order of the attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.array_types import Array
from labelweave.labels import LabelMatrix
from labelweave.labels.covariance.sources import checked_class_weights


def read_signatures(signatures: Any, attributes: LabelMatrix) -> tuple[Array, Array]:
    """Read signatures for the attributes (n, L) of some training rows.

    signatures (classes, L): 0/1 or -1/1, NaN where unknown; a frame's index names the classes. Returns them
    as -1 or 1, 0 where unknown, columns in the order of the attributes; and the names of the classes
        (classes,), or their numbers.
    Raises ValueError if there are none, an entry is no label, or the attributes are others.
    """
    if signatures is None:
        raise ValueError("signatures is None; give the attributes of the classes, of shape (classes, L).")
    table = LabelMatrix.from_any(signatures)
    if len(table) < 1 or table.n_labels != attributes.n_labels:
        raise ValueError(
            f"signatures has shape {table.shape} but y has {attributes.n_labels} attributes; give one row a "
            "class and one column an attribute."
        )
    signs = table.to_signs().astype(np.float64)
    if table.names is not None and attributes.names is not None:
        signs = signs[:, _column_order(table.names, attributes.names)]
    index = getattr(signatures, "index", None) if hasattr(signatures, "columns") else None
    classes = np.arange(len(table)) if index is None else np.asarray(index)
    return signs, classes


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

    Raises ValueError if there are not as many, a weight is negative, infinite or NaN, or all are 0.
    """
    given = np.ones(len(classes)) if class_prior is None else class_prior
    prior = checked_class_weights(given, [str(name) for name in classes])
    return np.asarray(prior / prior.sum())
