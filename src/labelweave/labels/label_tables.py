"""Tables that users hold, read as labels or as probabilities of labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.arrays import checked_csr, refuse_lazy
from labelweave.frames import column_labels, is_frame
from labelweave.labels.tags import tag_rows

_NAME = "The table of probabilities"


def frame_names(table: Any) -> list[str] | None:
    """Read label names off the columns of a frame; None if it is no frame."""
    labels = column_labels(table)
    return None if labels is None else [str(label) for label in labels]


def shown_name(names: Sequence[Any] | npt.NDArray[Any] | None, label: int) -> str:
    """Say in a message which label is meant, by its quoted name or its index."""
    return str(label) if names is None else repr(str(names[label]))


def or_probabilities(table: npt.NDArray[Any]) -> str:
    """Say how probabilities are given, where a table that is refused as labels has nothing else."""
    with np.errstate(invalid="ignore"):
        is_share = bool(((table >= 0) & (table <= 1) | np.isnan(table)).all())
    return "; probabilities are given as LabelMatrix.from_probabilities(Y)" if is_share else ""


def read_probabilities(P: Any, names: Any, read: Callable[[Any], Any]) -> tuple[sp.csr_array, Any, Any]:
    """Read the probabilities that labels hold.

    read: gives the numbers of a table that is not sparse.
    Returns those that are not 0, the pattern of what was observed, None for everything, and names.
    """
    refuse_lazy(P, _NAME)
    if sp.issparse(P):
        shares = sp.csr_array(checked_csr(P, _NAME), dtype=np.float64, copy=True)
        shares.sum_duplicates()
        _refuse_others(sp.coo_array(shares), names)
        return shares, None, names
    is_array = isinstance(P, np.ndarray) and P.dtype.kind != "O"
    if not is_array and not is_frame(P) and tag_rows(P) is not None:
        raise ValueError("The probabilities are lists of tags; give a table of numbers, a column a label.")
    names = frame_names(P) if names is None else names
    table = read(P).astype(np.float64)
    seen = ~np.isnan(table)
    shares = sp.csr_array(np.where(seen, table, 0.0))
    _refuse_others(sp.coo_array(shares), names)
    return shares, None if seen.all() else seen, names


def _refuse_others(shares: sp.coo_array, names: Sequence[Any] | npt.NDArray[Any] | None) -> None:
    bad = np.flatnonzero(~((shares.data >= 0) & (shares.data <= 1)))
    if len(bad):
        row, label = (int(part[bad[0]]) for part in shares.coords)
        raise ValueError(
            f"The probability at row {row}, label {shown_name(names, label)} is {shares.data[bad[0]]:g}; "
            "probabilities are numbers from 0 to 1, NaN where nothing is known."
        )
