"""Read the splits of a cross-validation: those that were given, or those that a splitter gives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.foundation.arguments import shown
from labelweave.foundation.sklearn_compat import _num_samples
from labelweave.labels import LabelMatrix
from labelweave.splits.splitters import IterativeStratifiedKFold, IterativeStratifiedShuffleSplit

Rows = npt.NDArray[np.intp]


def splits_by(cv: Any, X: Any, y: Any) -> list[tuple[Rows, Rows]]:
    """List the rows of both parts of every split that a splitter makes, or of those given.

    cv: what scikit-learn takes as ``cv``, but no number.
    y: the targets; of a LabelMatrix other libraries' splitters get the positive entries.
    """
    own = isinstance(cv, IterativeStratifiedKFold | IterativeStratifiedShuffleSplit)
    if isinstance(y, LabelMatrix) and not own:
        y = y.positives
    is_splitter = hasattr(cv, "split") and not isinstance(cv, (str, bytes))
    return read_splits(cv.split(X, y) if is_splitter else cv, _num_samples(X))


def read_splits(splits: Iterable[Any], n_rows: int) -> list[tuple[Rows, Rows]]:
    """List the rows of both parts of every split, given as row numbers or as marks of all rows."""
    if isinstance(splits, (str, bytes)) or getattr(splits, "ndim", 1) == 0:
        raise ValueError(f"cv is {shown(splits)}; give pairs of rows to train on and rows to hold out.")
    found = [_parts(split, n_rows, number) for number, split in enumerate(splits)]
    if not found:
        raise ValueError("cv gives no folds; give at least one pair of rows to train on and to hold out.")
    return found


def _parts(split: Any, n_rows: int, number: int) -> tuple[Rows, Rows]:
    try:
        train, held = split
    except (ValueError, TypeError):
        raise ValueError(
            f"Fold {number} of cv is no pair; give pairs of the rows to train on and the rows to hold out."
        ) from None
    train, held = _row_numbers(train, n_rows, number), _row_numbers(held, n_rows, number)
    if not len(train) or not len(held):
        counts = f"{len(train)} rows to train on and {len(held)} to hold out"
        raise ValueError(f"Fold {number} of cv has {counts}; it needs both.")
    return train, held


def _row_numbers(part: Any, n_rows: int, number: int) -> Rows:
    """Number the rows of a part, which lists or marks them."""
    try:
        rows = np.asarray(part if len(part) else np.empty(0, np.intp))
        if rows.ndim == 1:
            return np.asarray(np.arange(n_rows)[rows])
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(f"Fold {number} of cv names rows that are not there ({error}).") from None
    raise ValueError(
        f"Fold {number} of cv has rows of shape {rows.shape}; give one list of row numbers, or a mark for "
        "every row."
    )
