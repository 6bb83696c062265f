"""Scores of rows by models that were not fitted to them."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from labelweave.array_types import Array
from labelweave.decisions.label_scores import score_blocks, take_rows
from labelweave.estimators.held_out import HeldOutScores, hold_out
from labelweave.labels import LabelMatrix
from labelweave.sklearn_compat import _safe_split
from labelweave.splits import IterativeStratifiedKFold
from labelweave.splits.given_splits import splits_by

__all__ = [
    "TrainingRows",
    "fit_on",
    "one_split",
    "score_all_rows",
    "score_held_out",
    "score_one_split",
    "split_rows",
]

Split = tuple[Array, Array]

_MOST_SCORES = 250_000_000  # 1 GB
_MOST_PRECISE = 32_000_000  # scores that are kept in double precision


@dataclass(frozen=True)
class TrainingRows:
    """What a fit was given.

    X: the features, as the user has them.
    y: the targets, as the user has them.
    Shapes: labels (n, L), weights (n,).
    """

    X: Any
    y: Any
    labels: LabelMatrix
    weights: Array | None


class FittedPart(NamedTuple):
    """A model and the numbers of the rows it was fitted to."""

    model: Any
    rows: Array


def split_rows(cv: Any, data: TrainingRows, validation_fraction: float, seed: int) -> list[Split]:
    """Say which rows each model is fitted to and which it scores.

    cv: none for one split; a number of folds; or what scikit-learn takes as ``cv``.
    data: the rows; splits by None or a number are stratified by their labels.
    validation_fraction: the share of rows to score, for None.
    Returns rows to fit and rows to score.
    Raises ValueError if a split is no pair of rows that there are, or has no rows to fit or to score.
    """
    if cv is None:
        _require_rows(len(data.labels), 2)
        return [hold_out(data.labels, validation_fraction, seed)]
    targets = data.y
    if isinstance(cv, Integral):
        _require_rows(len(data.labels), int(cv))
        cv, targets = IterativeStratifiedKFold(int(cv), random_state=seed, shuffle=True), data.labels
    return [(np.sort(train), np.sort(held)) for train, held in splits_by(cv, data.X, targets)]


def one_split(n_rows: int, validation_fraction: float, seed: int) -> Split:
    """Draw the rows to score evenly, without a look at labels.

    validation_fraction: the share of rows to score.
    """
    _require_rows(n_rows, 2)
    order = np.random.default_rng(seed).permutation(n_rows)
    n_held = min(n_rows - 1, max(1, round(validation_fraction * n_rows)))
    return np.sort(order[n_held:]), np.sort(order[:n_held])


def _require_rows(n_rows: int, least: int) -> None:
    if n_rows < least:
        raise ValueError(
            f"X has {n_rows} row(s) (n_samples={n_rows}), but {least} are needed to hold some out."
        )


def fit_on(
    estimator: Any, data: TrainingRows, rows: Array | None = None, part: FittedPart | None = None
) -> Any:
    """Fit a clone of an estimator to some rows, or to all; it goes on from the model of a part if it can."""
    X, y, weights = data.X, data.y, data.weights
    if rows is not None:
        X, y = _safe_split(estimator, X, None, rows)[0], take_rows(y, rows)
        weights = None if weights is None else weights[rows]
    if isinstance(y, LabelMatrix) and not y.has_missing and not hasattr(type(estimator), "label_names_"):
        y = y.positives  # which every scikit-learn classifier of sparse labels takes
    extra = {} if weights is None else {"sample_weight": weights}
    whole = clone(estimator)
    if part is not None and hasattr(whole, "_fit_from"):
        return whole._fit_from(part.model, part.rows, X, y, **extra)
    return whole.fit(X, y, **extra)


def score_held_out(
    estimator: Any, data: TrainingRows, splits: list[Split], response: str
) -> tuple[HeldOutScores, FittedPart]:
    """Fit a clone to the one part of every split and score the other.

    splits: rows to fit and rows to score.  Where all scores would take more than a gigabyte, only some of
        these rows are scored, evenly drawn.
    Returns the scores of all splits, and the last of the models.
    """
    n_labels = data.labels.n_labels
    most = max(1, _MOST_SCORES // (n_labels * len(splits)))
    splits = [(train, _thinned(held, most)) for train, held in splits]
    rows = np.concatenate([held for _, held in splits])
    scores, done = _empty_scores(len(rows), n_labels), 0
    for train, held in splits:
        part = scores[done : done + len(held)]
        fitted = FittedPart(fit_on(estimator, data, train), train)
        _score_part(fitted.model, data, (train, held), response, part)
        done += len(held)
    return _with_labels(data, rows, scores), fitted


def score_one_split(fitted: Any, data: TrainingRows, split: Split, response: str) -> HeldOutScores:
    """Score the held-out rows by a model that was fitted to the others.

    split: rows that were fitted and rows to score, of which only some are scored where that would take more
        than a gigabyte.
    """
    rows = _thinned(split[1], max(1, _MOST_SCORES // data.labels.n_labels))
    scores = _empty_scores(len(rows), data.labels.n_labels)
    _score_part(fitted, data, (split[0], rows), response, scores)
    return _with_labels(data, rows, scores)


def score_all_rows(fitted: Any, data: TrainingRows, response: str) -> HeldOutScores:
    """Score rows by a model that was fitted elsewhere.

    data: the rows, of which only some are scored, evenly drawn, where all scores would take more than a
        gigabyte.
    """
    n_rows, n_labels = data.labels.shape
    rows = _thinned(np.arange(n_rows), max(1, _MOST_SCORES // n_labels))
    scores = _empty_scores(len(rows), n_labels)
    _write_scores(fitted, data.X if len(rows) == n_rows else take_rows(data.X, rows), response, scores)
    return _with_labels(data, rows, scores)


def _score_part(fitted: Any, data: TrainingRows, split: Split, response: str, scores: Array) -> None:
    """Score the second part of a split by a model that was fitted to the first."""
    train, held = split
    _write_scores(fitted, _safe_split(fitted, data.X, None, held, train)[0], response, scores)


def _write_scores(fitted: Any, X: Any, response: str, scores: Array) -> None:
    """Score some rows at a time."""
    done = 0
    for block in score_blocks(fitted, X, scores.shape[1], response):
        scores[done : done + len(block)] = block
        done += len(block)


def _empty_scores(n_rows: int, n_labels: int) -> Array:
    return np.empty((n_rows, n_labels), np.float64 if n_rows * n_labels <= _MOST_PRECISE else np.float32)


def _with_labels(data: TrainingRows, rows: Array, scores: Array) -> HeldOutScores:
    weights = None if data.weights is None else data.weights[rows]
    return HeldOutScores(data.labels[rows], scores, weights)


def _thinned(rows: Array, most: int) -> Array:
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(np.intp)]
