"""Held-out rows: the folds of cross-validation, and the rows on which thresholds are chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.model_selection import KFold

from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array, PerLabel, PerRow, RowsByLabels
from labelweave.foundation.costs import warn_caller
from labelweave.labels import LabelMatrix
from labelweave.postprocessing import ThresholdChoice, choose_thresholds
from labelweave.postprocessing.labeled_scores import read_labeled_scores
from labelweave.postprocessing.thresholds.objective import ObjectiveName, count_sets
from labelweave.splits import IterativeStratifiedKFold, IterativeStratifiedShuffleSplit
from labelweave.splits.splitters import read_splits

_LOOSER_BY_ROWS, _LOOSER_ON_KERNELS = (30, 3e-2), (10, 1e-2)  # times the gap requested, at most
_FOLDS, _SHARE = 5, 0.2
_FEW_ROWS = 5000  # with more, a fifth of them determines thresholds well enough
_LOOKED_AT = 1000  # training rows, whose score is compared with that of held-out ones

Share = float | Literal["auto"]
_PARTS = 5


@dataclass(frozen=True)
class LearningBlock:
    """Rows (m,) that are cross-validated together, and which of them each fold holds out, (m, folds)."""

    rows: Array
    held_out: Array

    def part(self, which: Array) -> LearningBlock:
        return LearningBlock(self.rows[which], self.held_out[which])


def drawn_blocks(candidates: Array, rows: int | None, blocks: int, seed: int) -> list[Array]:
    """Draw disjoint blocks of rows to learn on.

    candidates (m,): the eligible rows, ascending.
    rows: rows per block; None to divide all of them among the blocks.  A single block may have fewer.
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
            "have known labels; use fewer or smaller blocks."
        )
    drawn = np.random.default_rng(seed).permutation(candidates)
    return [np.sort(block) for block in np.array_split(drawn if rows is None else drawn[:needed], blocks)]


def reusable_splits(cv: Any) -> Any:
    """Convert splits that can be iterated over only once, such as those of a generator, to a list."""
    return list(cv) if isinstance(cv, Iterator) else cv


def shown_splits(cv: Any) -> Any:
    """Describe folds as a number, as lists of rows, or by the ``repr`` of a splitter."""
    return cv if cv is None or isinstance(cv, Integral | list) else repr(cv)


def held_out_rows(cv: Any, chosen: Array, targets: Array | LabelMatrix, seed: int) -> Array:
    """Split rows.

    cv: A number of random folds, in which labels are spread evenly, None for 5; or a scikit-learn ``cv``
        that splits all rows.
    chosen (m,): the rows to split, at least two.
    targets (n,): what rows are stratified by.  A number of folds only stratifies multi-label targets, some of
        which may be unobserved (NaN); a splitter accepts no LabelMatrix.
    Returns (m, folds): which of the chosen rows each fold holds out, for folds that hold out any.
    Raises ValueError if a fold has no rows to train on or none to hold out, or a row is never held out.
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
            f"cv leaves a fold without training rows, or no held-out rows, among the {len(chosen)} of "
            f"{len(targets)} rows for learning; use other folds, or more learning rows."
        )
    return held_out


def _splits(cv: Any, targets: Array | LabelMatrix) -> list[Any]:
    if not hasattr(cv, "split"):
        if getattr(cv, "ndim", 1) == 0:
            raise ValueError("cv is an array with one number; pass a number, a splitter or folds.")
        return list(cv)
    try:
        return list(cv.split(np.zeros((len(targets), 1)), targets))
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"cv={cv!r} cannot split the rows by y alone ({error}); pass splits, such as "
            "cv=list(splitter.split(X, y, groups))."
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


def fold_numbers(splits: list[Any], n_rows: int) -> Array:
    """Number the fold that holds each row out, (n,); raise if splits do not test every row once."""
    held_out = _table(splits, n_rows)
    counts = held_out.sum(axis=1)
    if (counts != 1).any():
        row = int(np.argmax(counts != 1))
        raise ValueError(
            f"cv holds row {row} out {counts[row]} times, but must hold every row out once; use folds such "
            "as KFold(5)."
        )
    return np.asarray(held_out.argmax(axis=1))


class Rule(NamedTuple):
    """The metric that thresholds optimize."""

    objective: ObjectiveName
    scope: Literal["label", "global"] = "label"
    shrinkage: float | Literal["auto"] = "auto"
    target: float | None = None


THRESHOLD_RULES = {
    "f1": Rule("micro_f1", "global"),
    "micro_f1": Rule("micro_f1"),
    "macro_f1": Rule("macro_f1"),
    "example_f1": Rule("example_f1"),
    "hamming_loss": Rule("hamming_loss"),
}


@dataclass(frozen=True)
class HeldOutScores:
    """Rows with their scores; ``fitted`` has scores of some training rows, for comparison."""

    labels: LabelMatrix
    scores: RowsByLabels
    weights: PerRow | None
    fitted: Callable[[], HeldOutScores] | None = None


def tolerance_of_part(tol: float, *, by_rows: bool) -> float:
    """Return the relative duality gap that suffices for fits to parts of the rows that tune thresholds.

    Thresholds of such fits are as good on other rows, at about half the cost (``python -m
    benchmarks.threshold_cost``).  Kernels at 3e-2 lost macro-F1 of rare labels; dense features lose at 1e-2.

    by_rows: whether coordinate ascent iterates over rows; else there is a kernel matrix.
    """
    looser, loosest = _LOOSER_BY_ROWS if by_rows else _LOOSER_ON_KERNELS
    return max(tol, min(looser * tol, loosest))


def count_parts(share: Share, n_rows: int) -> int:
    return min(_FOLDS, max(2, n_rows)) if share == "auto" and n_rows <= _FEW_ROWS else 1


def held_out_count(share: Share, n_rows: int) -> int:
    return max(1, round((_SHARE if share == "auto" else share) * n_rows))


def held_out_parts(labels: LabelMatrix, share: Share, seed: int) -> list[tuple[Array, Array]]:
    """Return which rows are fitted and which are scored by that fit, stratified by labels.

    share: of the rows, held out once; "auto" holds each fifth of up to 5,000 rows out in turn, so that every
        row has an out-of-fold score, and one fifth of more rows.
    Raises ValueError if there are too few rows to hold some out.
    """
    n_rows = len(labels)
    n_parts = count_parts(share, n_rows)
    n_held = 1 if n_parts > 1 else held_out_count(share, n_rows)
    if n_held >= n_rows:
        raise ValueError(
            f"Holding out rows leaves none of {n_rows} (n_samples={n_rows}) for training; pass more rows, or "
            "a number as threshold."
        )
    if n_parts == 1:
        return [hold_out(labels, n_held, seed)]
    folds = IterativeStratifiedKFold(n_parts, shuffle=True, random_state=seed)
    return [(np.sort(kept), np.sort(held)) for kept, held in folds.split(np.arange(n_rows), labels)]


def some_rows(rows: Array, most: int = _LOOKED_AT) -> Array:
    """Sample at most so many rows evenly."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), most)).round().astype(np.intp)]


def _warn_of_close_fit(held: HeldOutScores, thresholds: PerLabel) -> None:
    """Warn where label sets of training rows are more than twice as good as those of held-out rows."""
    if held.fitted is None:
        return
    of_fitted, of_held = (_micro_f1(rows, thresholds) for rows in (held.fitted(), held))
    if of_fitted > 2.0 * of_held:
        warn_caller(
            f"The micro-averaged F1 score is {of_fitted:.2f} on rows that the model was fitted to and "
            f"{of_held:.2f} on held-out rows, so the model overfits; regularize more, or use more rows."
        )


def _micro_f1(rows: HeldOutScores, thresholds: PerLabel) -> float:
    table = read_labeled_scores(rows.labels.most_likely(), rows.scores, rows.weights)
    return count_sets(table, lambda block: block > thresholds).measure("micro_f1")


def hold_out(labels: LabelMatrix, size: float, seed: int) -> tuple[Array, Array]:
    """Split rows, stratified by labels: those to fit, and a number or share of them to hold out."""
    splitter = IterativeStratifiedShuffleSplit(1, test_size=size, random_state=seed)
    kept, held = next(splitter.split(np.arange(len(labels)), labels))
    return np.sort(kept), np.sort(held)


def best_thresholds(held: HeldOutScores, rule: Rule, fallback: float) -> ThresholdChoice:
    """Choose thresholds; the fallback where no row of positive weight has a label.

    A label with equal scores in all rows and no observed value is never predicted.
    """
    choice = choose_thresholds(held.labels, held.scores, **rule._asdict(), sample_weight=held.weights)
    never = np.flatnonzero(held.labels.observed_counts() == 0)
    alike = never[np.ptp(held.scores[:, never], axis=0) == 0]
    choice.thresholds[alike] = np.maximum(choice.thresholds[alike], held.scores[0, alike])
    weights = np.ones(len(held.labels)) if held.weights is None else held.weights
    if (held.labels.expected_positives.T @ weights).any():
        _warn_of_close_fit(held, choice.thresholds)
        return choice
    return choice._replace(thresholds=np.full(held.labels.n_labels, fallback))
