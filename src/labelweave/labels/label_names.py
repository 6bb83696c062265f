"""Names of labels, checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from labelweave.array_types import Array


def checked_names(names: Sequence[Any] | Array | None, n_labels: int | None) -> Array | None:
    """Check that there is one name a label, where that is known, and that names, as text, are distinct."""
    if names is None:
        return None
    if not isinstance(names, Iterable) or getattr(names, "ndim", 1) != 1:
        raise ValueError(f"The label names are {names!r}; give a list of names, one a label.")
    array = np.asarray([str(name) for name in names], dtype=np.str_)
    if n_labels is not None and len(array) != n_labels:
        raise ValueError(f"{len(array)} label names were given for {n_labels} labels; give one name a label.")
    unique, counts = np.unique(array, return_counts=True)
    if len(unique) < len(array):
        raise ValueError(
            f"The label name {str(unique[counts > 1][0])!r} occurs more than once; names must be distinct."
        )
    return array
