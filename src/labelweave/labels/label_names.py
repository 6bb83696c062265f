"""Names of labels: read from what users hold, checked once, shown in messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labelweave.array_types import Array

__all__ = ["checked_names", "frame_names", "shown_name"]


def checked_names(names: Sequence[Any] | Array | None, n_labels: int) -> Array | None:
    """Check that there is one name a label and that names, written as text, are distinct."""
    if names is None:
        return None
    array = np.asarray([str(name) for name in names], dtype=np.str_)
    if len(array) != n_labels:
        raise ValueError(f"{len(array)} label names were given for {n_labels} labels; give one name a label.")
    unique, counts = np.unique(array, return_counts=True)
    if len(unique) < len(array):
        raise ValueError(
            f"The label name {str(unique[counts > 1][0])!r} occurs more than once; names must be distinct."
        )
    return array


def frame_names(table: Any) -> list[str] | None:
    """Read label names off the columns of a frame; None if it is no frame."""
    return [str(column) for column in table.columns] if hasattr(table, "columns") else None


def shown_name(names: Sequence[Any] | Array | None, label: int) -> str:
    """Say in a message which label is meant, by its quoted name or its index."""
    return str(label) if names is None else repr(str(names[label]))
