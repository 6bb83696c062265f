"""Conversion of user tables to labels or label probabilities; masks and indices of labels.

An uncertain target q is stored as the more likely value and its flip probability f: q is 1 - f for a positive
entry, else f.  Flip probabilities are at most one half; corrections for flipped labels yield some that are
negative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.arrays import checked_csr, numbers_of, refuse_lazy
from labelweave.foundation.frames import column_labels, is_frame
from labelweave.labels.tags import tag_rows

_NAME = "The table of probabilities"


def frame_names(table: Any) -> list[str] | None:
    labels = column_labels(table)
    return None if labels is None else [str(label) for label in labels]


def shown_name(names: Sequence[Any] | npt.NDArray[Any] | None, label: int) -> str:
    return str(label) if names is None else repr(str(names[label]))


def or_probabilities(table: npt.NDArray[Any]) -> str:
    """Return a hint on how to pass probabilities, if a table refused as labels holds only these."""
    with np.errstate(invalid="ignore"):
        is_share = bool(((table >= 0) & (table <= 1) | np.isnan(table)).all())
    if not is_share:
        return ""
    return (
        "; for probabilities pass LabelMatrix.from_probabilities(Y), for those of one class per row "
        "ClassProbabilities(Y)"
    )


def read_probabilities(P: Any, names: Any, read: Callable[[Any], Any]) -> tuple[sp.csr_array, Any, Any]:
    """Read a table of label probabilities.

    read: returns the numbers of a dense table.
    Returns the nonzero ones, the pattern of observed entries, None for all, and names.
    """
    refuse_lazy(P, _NAME)
    if sp.issparse(P):
        shares = sp.csr_array(checked_csr(P, _NAME), dtype=np.float64, copy=True)
        shares.sum_duplicates()
        _refuse_others(sp.coo_array(shares), names)
        return shares, None, names
    is_array = isinstance(P, np.ndarray) and P.dtype.kind != "O"
    if not is_array and not is_frame(P) and tag_rows(P) is not None:
        raise ValueError("The probabilities are lists of tags; pass numbers, one column per label.")
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
            "probabilities must be between 0 and 1, or NaN where unknown."
        )


def label_places(labels: Any, n_labels: int) -> npt.NDArray[np.int64]:
    """Convert label indices, where negative ones count from the end, or a mask, to indices."""
    try:
        places = np.asarray(labels)
    except ValueError:
        places = np.empty((0, 0))
    if places.dtype.kind == "b" and places.shape == (n_labels,):
        return np.flatnonzero(places)
    places = places.astype(np.int64) if places.size == 0 and places.ndim == 1 else places
    if places.dtype.kind not in "iu" or places.ndim != 1:
        raise ValueError(f"labels is {labels!r}; pass a list of label positions (integers).")
    if len(places) and not (-n_labels <= places.min() and places.max() < n_labels):
        raise ValueError(
            f"labels has positions from {places.min()} to {places.max()}, but there are "
            f"{n_labels} labels; use positions from 0 to {n_labels - 1}."
        )
    return places.astype(np.int64, copy=False)


def row_index(rows: Any) -> npt.NDArray[Any]:
    if isinstance(rows, tuple):
        raise ValueError(f"The index is {rows!r}; index rows only, and choose labels with select_labels.")
    index = np.atleast_1d(np.asarray(rows))
    if index.ndim != 1:
        raise ValueError(f"The index of rows has shape {index.shape}; use a list of rows or a mask.")
    return index if index.size else index.astype(np.intp)


def _check_shape(given: Any, name: str, positives: sp.csr_array) -> None:
    if given.shape != positives.shape:
        shape = f"{given.shape} but the positives have shape {positives.shape}"
        raise ValueError(f"{name} has shape {shape}; both must be (rows, labels).")


def signed_pattern(positives: sp.csr_array, observed: sp.csr_array) -> sp.csr_array:
    _check_shape(observed, "observed", positives)
    # a positive adds 3 to -1 or 0, so that no entry cancels: 2 inside the mask, 3 outside
    signed = 3 * positives - observed
    outside = np.flatnonzero(signed.data == 3)
    if len(outside):
        row = int(np.searchsorted(signed.indptr, outside[0], side="right")) - 1
        raise ValueError(
            f"The entry at row {row}, label {signed.indices[outside[0]]} is positive but not in the observed "
            f"mask ({len(outside)} are); add it, or use LabelMatrix(positives).masked(observed)."
        )
    signed.data = np.where(signed.data > 0, 1, -1).astype(np.int8)
    signed.sort_indices()
    return signed


_FLIPS = "flip_probabilities"
LEAST_GRADE = 1e-9  # the grade of a target of 0.5, as 0 means unobserved


def split_targets(targets: sp.csr_array) -> tuple[sp.csr_array, sp.csr_array | None]:
    """Split targets, 0 where not stored, into positive entries and flip probabilities, None without any."""
    is_positive = targets.data > 0.5
    flips = np.where(is_positive, 1.0 - targets.data, targets.data)
    parts = targets.indices, targets.indptr
    positives = sp.csr_array((is_positive.astype(np.int8), *parts), shape=targets.shape)
    return positives, sp.csr_array((flips, *parts), shape=targets.shape) if flips.any() else None


def checked_flips(flips: Any, positives: sp.csr_array, observed: sp.csr_array | None) -> sp.csr_array | None:
    """Check flip probabilities (n, L), and keep those of observed entries; None if there are none."""
    given = flips if sp.issparse(flips) else np.atleast_2d(numbers_of(flips, _FLIPS))
    _check_shape(given, _FLIPS, positives)
    known = given if sp.issparse(given) else sp.csr_array(given)
    table = sp.csr_array(checked_csr(known, _FLIPS), dtype=np.float64)
    if observed is not None:
        table = sp.csr_array(table.multiply(abs(observed)))
    if not table.data.all():
        table = table.copy()
        table.eliminate_zeros()
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    bad = np.flatnonzero(~((table.data <= 0.5) & (table.data > -np.inf)))
    if len(bad):
        raise ValueError(
            f"{_FLIPS} has {table.data[bad[0]]}; it must be the probability of the less likely value, at "
            "most 0.5."
        )
    return table if table.nnz else None


def expected_positives(positives: sp.csr_array, flips: sp.csr_array) -> sp.csr_array:
    return sp.csr_array(positives + flips - 2.0 * positives.multiply(flips))


def graded(signs: npt.NDArray[np.int8], flips: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return 2 q - 1 of targets q from signs and flip probabilities (n, L); 0 where the sign is 0."""
    return np.asarray(signs * np.maximum(1.0 - 2.0 * flips, LEAST_GRADE))
