"""Thresholds chosen on rows that a first model did not see: which rows those are, and what is best there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from labelweave.foundation.array_types import Array, PerLabel, PerRow, RowsByLabels
from labelweave.foundation.costs import warn_caller
from labelweave.inference import ThresholdChoice, choose_thresholds
from labelweave.inference.labeled_scores import read_labeled_scores
from labelweave.inference.thresholds.objective import ObjectiveName, count_sets
from labelweave.labels import LabelMatrix
from labelweave.splits import IterativeStratifiedKFold, IterativeStratifiedShuffleSplit

_LOOSER_BY_ROWS, _LOOSER_ON_KERNELS = (30, 3e-2), (10, 1e-2)  # times the gap asked for, at most
_FOLDS, _SHARE = 5, 0.2
_FEW_ROWS = 5000  # of more a fifth tells thresholds well enough
_LOOKED_AT = 1000  # training rows, whose quality is compared with that of held-out ones

Share = float | Literal["auto"]


class Rule(NamedTuple):
    """What thresholds are to be best for."""

    objective: ObjectiveName
    scope: Literal["label", "global"] = "label"
    pooling: float | Literal["auto"] = "auto"
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
    """Rows with their scores.

    fitted: scores some of the rows that a model was fitted to, to be compared with.
    """

    labels: LabelMatrix
    scores: RowsByLabels
    weights: PerRow | None
    fitted: Callable[[], HeldOutScores] | None = None


def tolerance_of_part(tol: float, *, by_rows: bool) -> float:
    """Give the relative duality gap that a fit of a part of the rows needs, where thresholds are its use.

    Thresholds of such fits are as good on other rows, at about half the cost (``python -m
    benchmarks.threshold_cost``).  Kernels at 3e-2 lost macro-F1 of rare labels; dense features lose at 1e-2.

    by_rows: whether coordinate ascent walks rows; else there is a kernel matrix.
    """
    looser, loosest = _LOOSER_BY_ROWS if by_rows else _LOOSER_ON_KERNELS
    return max(tol, min(looser * tol, loosest))


def count_parts(share: Share, n_rows: int) -> int:
    """Say how many parts of so many rows are held out in turn."""
    return min(_FOLDS, max(2, n_rows)) if share == "auto" and n_rows <= _FEW_ROWS else 1


def held_out_count(share: Share, n_rows: int) -> int:
    """Say how many of so many rows are held out once."""
    return max(1, round((_SHARE if share == "auto" else share) * n_rows))


def held_out_parts(labels: LabelMatrix, share: Share, seed: int) -> list[tuple[Array, Array]]:
    """Say which rows are fitted and which are scored by that fit, stratified by labels.

    share: of the rows, held out once; "auto" holds each fifth of up to 5,000 rows out in turn, so that every
        row is scored by a model that did not see it, and one fifth of more rows.
    Raises ValueError if there are too few rows to hold some out.
    """
    n_rows = len(labels)
    n_parts = count_parts(share, n_rows)
    n_held = 1 if n_parts > 1 else held_out_count(share, n_rows)
    if n_held >= n_rows:
        raise ValueError(
            f"Rows are to be held out, but that would leave none of {n_rows} (n_samples={n_rows}) to fit; "
            "give more rows, or a number as the threshold."
        )
    if n_parts == 1:
        return [hold_out(labels, n_held, seed)]
    folds = IterativeStratifiedKFold(n_parts, shuffle=True, random_state=seed)
    return [(np.sort(kept), np.sort(held)) for kept, held in folds.split(np.arange(n_rows), labels)]


def some_rows(rows: Array) -> Array:
    """Draw at most a thousand training rows evenly, to compare their quality with that of held-out ones."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), _LOOKED_AT)).round().astype(np.intp)]


def _warn_of_close_fit(held: HeldOutScores, thresholds: PerLabel) -> None:
    """Warn where label sets of training rows are more than twice as good as those of held-out rows."""
    if held.fitted is None:
        return
    of_fitted, of_held = (_micro_f1(rows, thresholds) for rows in (held.fitted(), held))
    if of_fitted > 2.0 * of_held:
        warn_caller(
            f"The micro-averaged F1 score is {of_fitted:.2f} on rows that the model was fitted to and "
            f"{of_held:.2f} on held-out ones; a stronger regularization or more rows may narrow that, and "
            "thresholds cannot."
        )


def _micro_f1(rows: HeldOutScores, thresholds: PerLabel) -> float:
    table = read_labeled_scores(rows.labels.likelier(), rows.scores, rows.weights)
    return count_sets(table, lambda block: block > thresholds).measure("micro_f1")


def hold_out(labels: LabelMatrix, size: float, seed: int) -> tuple[Array, Array]:
    """Split rows, stratified by labels: those to fit, and a number or share of them to hold out."""
    splitter = IterativeStratifiedShuffleSplit(1, test_size=size, random_state=seed)
    kept, held = next(splitter.split(np.arange(len(labels)), labels))
    return np.sort(kept), np.sort(held)


def best_thresholds(held: HeldOutScores, rule: Rule, fallback: float) -> ThresholdChoice:
    """Choose thresholds; the fallback where no row of positive weight has a label.

    A label that is scored alike in all rows, none of them observed, is never predicted.
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
