"""Which rows each fold of a cross-validation holds out."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import KFold, check_cv

__all__ = ["held_out_rows"]

Array = npt.NDArray[Any]


def held_out_rows(cv: Any, n_rows: int, targets: Array, seed: int) -> Array:
    """Split rows.

    Parameters
    ----------
    cv : int, splitter or iterable
        A number of random parts, or what scikit-learn takes as ``cv``.
    n_rows : int
        How many rows.
    targets : ndarray of shape (n,) or (n, L)
        What a splitter may stratify by.
    seed : int
        Fixes random parts.

    Returns
    -------
    ndarray of bool, shape (n, folds)
        Which rows each fold holds out; no folds for fewer than two rows.

    Raises
    ------
    ValueError
        If a fold has no rows to train on or none to hold out.
    """
    if n_rows < 2:
        return np.zeros((n_rows, 0), bool)
    if isinstance(cv, Integral):
        splitter = KFold(min(int(cv), n_rows), shuffle=True, random_state=seed)
    else:
        splitter = check_cv(cv)
    parts = list(splitter.split(np.zeros((n_rows, 1)), targets))
    held_out = np.zeros((n_rows, len(parts)), bool)
    for fold, (train, test) in enumerate(parts):
        if not len(train) or not len(test):
            raise ValueError(
                f"Fold {fold} of cv has {len(train)} rows to train on and {len(test)} to hold out; it needs both."
            )
        held_out[:, fold] = True
        held_out[train, fold] = False
        unused = np.setdiff1d(np.arange(n_rows), np.concatenate([train, test]))
        if len(unused):
            raise ValueError(
                f"Fold {fold} of cv leaves {len(unused)} rows out of both parts; every row must be in one."
            )
    return held_out
