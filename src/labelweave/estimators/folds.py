"""Which rows each fold of a cross-validation holds out."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import KFold, check_cv

__all__ = ["held_out_rows"]

Array = npt.NDArray[Any]

_PARTS = 5


def held_out_rows(cv: Any, chosen: Array, targets: Array, seed: int) -> Array:
    """Split rows.

    Parameters
    ----------
    cv : int, None, splitter or iterable
        A number of random parts, None for 5, or what scikit-learn takes as ``cv``, which splits all rows.
    chosen : ndarray of int, shape (m,)
        The rows that take part.
    targets : ndarray of shape (n,) or (n, L)
        What a splitter may stratify all rows by.
    seed : int
        Fixes random parts.

    Returns
    -------
    ndarray of bool, shape (m, folds)
        Which of the chosen rows each fold holds out, for folds that hold out any; no folds for fewer
        than two rows.

    Raises
    ------
    ValueError
        If a fold has no rows to train on or none to hold out, or leaves rows out.
    """
    if len(chosen) < 2:
        return np.zeros((len(chosen), 0), bool)
    if cv is None or isinstance(cv, Integral):
        parts = min(_PARTS if cv is None else int(cv), len(chosen))
        splitter = KFold(parts, shuffle=True, random_state=seed)
        return _table(list(splitter.split(chosen)), len(chosen))
    held_out = _table(list(check_cv(cv).split(np.zeros((len(targets), 1)), targets)), len(targets))[chosen]
    held_out = held_out[:, held_out.any(axis=0)]
    untrained = np.flatnonzero(held_out.all(axis=0))
    if held_out.shape[1] == 0 or len(untrained):
        raise ValueError(
            f"cv splits {len(targets)} rows, but of the {len(chosen)} rows that are learned on some fold has "
            "none to train on, or no fold has one to hold out; give other folds."
        )
    return held_out


def _table(folds: list[tuple[Array, Array]], n_rows: int) -> Array:
    if not folds:
        raise ValueError("cv gives no folds; give at least one pair of rows to train on and to hold out.")
    held_out = np.ones((n_rows, len(folds)), bool)
    for fold, parts in enumerate(folds):
        train, test = (_rows(part, n_rows, fold) for part in parts)
        if not train.any() or not test.any():
            counts = f"{train.sum()} rows to train on and {test.sum()} to hold out"
            raise ValueError(f"Fold {fold} of cv has {counts}; it needs both.")
        if not (train ^ test).all():
            row = int((train ^ test).argmin())
            where = "both parts" if train[row] else "neither part"
            raise ValueError(
                f"Fold {fold} of cv has row {row} in {where}; every row must be trained on or held out."
            )
        held_out[:, fold] = test
    return held_out


def _rows(part: Array, n_rows: int, fold: int) -> Array:
    """Mark the rows of a part, which lists or marks them."""
    marked = np.zeros(n_rows, bool)
    try:
        marked[part if len(part) else []] = True
    except IndexError as error:
        raise ValueError(f"Fold {fold} of cv names rows that are not there ({error}).") from None
    return marked
