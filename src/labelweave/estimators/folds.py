"""Which rows take part in cross-validations, and which of them each fold holds out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array
from labelweave.labels import LabelMatrix
from labelweave.splits import IterativeStratifiedKFold
from labelweave.splits.splitters import read_splits

_PARTS = 5


@dataclass(frozen=True)
class LearningBlock:
    """Rows that are cross-validated together.

    held_out (m, folds): which of them each fold holds out.
    Shapes: rows (m,).
    """

    rows: Array
    held_out: Array

    def part(self, which: Array) -> LearningBlock:
        """Keep some of the rows.

        which: positions among the block's rows.
        """
        return LearningBlock(self.rows[which], self.held_out[which])


def drawn_blocks(candidates: Array, rows: int | None, blocks: int, seed: int) -> list[Array]:
    """Draw disjoint blocks of rows to learn on.

    candidates (m,): the rows that may take part, ascending.
    rows: rows a block; None to share all of them out.  A single block may have fewer.
    Returns the rows of every block, ascending.
    Raises ValueError if there are too few rows for so many blocks.
    """
    if blocks == 1 and (rows is None or rows >= len(candidates)):
        return [candidates]
    needed = blocks * (2 if rows is None else rows)
    if needed > len(candidates):
        each = "of at least 2" if rows is None else f"of `learning_rows={rows}`"
        raise ParameterError(
            f"`learning_blocks={blocks}` blocks {each} rows need {needed} rows, but only {len(candidates)} "
            "with known labels are there to learn on; give fewer or smaller blocks."
        )
    drawn = np.random.default_rng(seed).permutation(candidates)
    return [np.sort(block) for block in np.array_split(drawn if rows is None else drawn[:needed], blocks)]


def reusable_splits(cv: Any) -> Any:
    """Make a list of splits that can be gone through only once, such as those of a generator.

    cv: what tells how to split.
    Returns the same, to be used any number of times.
    """
    return list(cv) if isinstance(cv, Iterator) else cv


def shown_splits(cv: Any) -> Any:
    """Write folds as a number, as lists of rows, or as what a splitter says of itself."""
    return cv if cv is None or isinstance(cv, Integral | list) else repr(cv)


def held_out_rows(cv: Any, chosen: Array, targets: Array | LabelMatrix, seed: int) -> Array:
    """Split rows.

    cv: A number of random parts, in which labels are spread evenly, None for 5; or what scikit-learn takes as
        ``cv``, which splits all rows.
    chosen (m,): the rows that take part, at least two.
    targets (n,): what rows are stratified by.  A number of parts takes only many labels, of which some may be
        unobserved (NaN), into account; a splitter takes no LabelMatrix.
    Returns (m, folds): which of the chosen rows each fold holds out, for folds that hold out any.
    Raises ValueError if a fold has no rows to train on or none to hold out, or leaves rows out.
    """
    if cv is None or isinstance(cv, Integral):
        parts = min(_PARTS if cv is None else int(cv), len(chosen))
        kind: Any = IterativeStratifiedKFold if len(targets.shape) == 2 else KFold
        splitter = kind(parts, shuffle=True, random_state=seed)
        folds = [held for _, held in splitter.split(chosen, targets[chosen])]
        return np.column_stack([np.isin(np.arange(len(chosen)), held) for held in folds])
    held_out = _table(_splits(cv, targets), len(targets))[chosen]
    held_out = held_out[:, held_out.any(axis=0)]
    untrained = np.flatnonzero(held_out.all(axis=0))
    if held_out.shape[1] == 0 or len(untrained):
        raise ValueError(
            f"cv splits {len(targets)} rows, but of the {len(chosen)} rows that are learned on some fold has "
            "none to train on, or no fold has one to hold out; give other folds, or more rows to learn on."
        )
    return held_out


def _splits(cv: Any, targets: Array | LabelMatrix) -> list[Any]:
    """List the parts of every fold of all rows."""
    if not hasattr(cv, "split"):
        if getattr(cv, "ndim", 1) == 0:
            raise ValueError("cv is one number in an array; give a number, a splitter or folds.")
        return list(cv)
    try:
        return list(cv.split(np.zeros((len(targets), 1)), targets))
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"cv={cv!r} cannot split the rows by y alone ({error}); give the splits of all rows themselves, "
            "for groups cv=list(splitter.split(X, y, groups))."
        ) from None


def _table(folds: list[Any], n_rows: int) -> Array:
    splits = read_splits(folds, n_rows)
    held_out = np.zeros((n_rows, len(splits)), bool)
    for fold, (train, test) in enumerate(splits):
        is_trained = np.zeros(n_rows, bool)
        is_trained[train], held_out[test, fold] = True, True
        is_once = is_trained ^ held_out[:, fold]
        if not is_once.all():
            row = int(is_once.argmin())
            where = "both parts" if is_trained[row] else "neither part"
            raise ValueError(
                f"Fold {fold} of cv has row {row} in {where}; every row must be trained on or held out."
            )
    return held_out
