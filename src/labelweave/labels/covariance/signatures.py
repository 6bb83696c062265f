"""The factor of a covariance from class signatures: ``sqrt(p(c)) y_c`` for every class c."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.array_types import Array
from labelweave.labels.covariance.named_matrix import row_names
from labelweave.labels.label_matrix import LabelMatrix
from labelweave.labels.label_names import frame_names, shown_name

__all__ = ["signature_factor"]


def signature_factor(signatures: Any, class_prior: Any) -> tuple[Array, Any]:
    """Read signatures and a prior over their classes.

    factor (L, r): A column ``sqrt(p(c)) y_c`` for every class of positive weight.
    Shapes: signatures (classes, L), class_prior (classes,).
    Raises ValueError if an entry is no label, or the prior is no prior.
    """
    table, names = _numbers(signatures)
    classes = row_names(signatures)
    signs = _signs(table, classes, names)
    prior = _checked_prior(class_prior, classes, len(signs))
    met = prior > 0
    return np.ascontiguousarray(signs[met].T) * np.sqrt(prior[met]), names


def _numbers(signatures: Any) -> tuple[Array, Any]:
    if isinstance(signatures, LabelMatrix):
        return signatures.to_dense(), signatures.names
    cells = signatures.toarray() if sp.issparse(signatures) else np.asarray(signatures)
    try:
        table = cells.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The signatures have entries that are not numbers ({error}); they must be 0/1 or -1/1."
        ) from None
    if table.ndim != 2 or table.size == 0:
        raise ValueError(
            f"The signatures have shape {table.shape}; they need at least one class and one label, "
            "(classes, labels)."
        )
    return table, frame_names(signatures)


def _signs(table: Array, classes: Any, names: Any) -> Array:
    """Turn 0/1 or -1/1 into -1/1."""
    _refuse_first(~np.isin(table, (-1, 0, 1)), table, classes, names)
    if (table == 0).any():
        _refuse_first(table == -1, table, classes, names, "while other entries are 0")
    return np.where(table > 0, 1.0, -1.0)


def _refuse_first(bad: Array, table: Array, classes: Any, names: Any, also: str = "") -> None:
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"The signature of class {shown_name(classes, row)} at label {shown_name(names, column)} is "
            f"{table[row, column]:g}{also and f' {also}'}; signatures are 0/1 or -1/1 throughout."
        )


def _checked_prior(class_prior: Any, classes: list[str] | None, n_classes: int) -> Array:
    if class_prior is None:
        return np.full(n_classes, 1.0 / n_classes)
    prior = np.asarray(_in_class_order(class_prior, classes, n_classes), dtype=np.float64)
    if prior.shape != (n_classes,):
        raise ValueError(
            f"class_prior has shape {prior.shape}; give one number for each of {n_classes} classes."
        )
    bad = np.flatnonzero(~np.isfinite(prior) | (prior < 0))
    if len(bad):
        name, weight = shown_name(classes, int(bad[0])), prior[bad[0]]
        raise ValueError(f"class_prior of class {name} is {weight}; it must be a number >= 0.")
    if not prior.any():
        raise ValueError("class_prior is 0 for every class; at least one must be positive.")
    prior = prior / prior.max()  # so that the sum of huge weights is finite
    return np.asarray(prior / prior.sum())


def _in_class_order(class_prior: Any, classes: list[str] | None, n_classes: int) -> Any:
    """Put weights that carry the classes' names, or their numbers, in the order of the classes."""
    if isinstance(class_prior, Mapping):
        weights = {str(name): weight for name, weight in class_prior.items()}
    elif (named := row_names(class_prior)) is not None:
        weights = dict(zip(named, np.asarray(class_prior), strict=True))
    else:
        return class_prior
    wanted = [str(number) for number in range(n_classes)] if classes is None else classes
    strangers = sorted(set(weights) ^ set(wanted))
    if strangers:
        holder, other = ("class_prior", "signatures")[:: 1 if strangers[0] in weights else -1]
        raise ValueError(
            f"The class {strangers[0]!r} is in {holder} but not in {other}; both must have the same classes, "
            "or class_prior be an array in the order of the signatures."
        )
    return [weights[name] for name in wanted]
