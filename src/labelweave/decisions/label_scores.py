"""One table of scores, a column a label, from any fitted classifier: of new rows, and of held-out ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from labelweave.array_types import Array
from labelweave.arrays import check_sparse, panels
from labelweave.estimators.held_out import HeldOutScores, hold_out
from labelweave.labels import LabelMatrix
from labelweave.metrics.responses import label_scores
from labelweave.sklearn_compat import _num_samples, _safe_indexing, _safe_split
from labelweave.splits import IterativeStratifiedKFold
from labelweave.splits.given_splits import splits_by

_SCORES_AT_ONCE = 16_000_000
Split = tuple[Array, Array]

_MOST_SCORES = 250_000_000  # 1 GB
_MOST_PRECISE = 32_000_000  # scores that are kept in double precision


def decision_level(estimator: Any, response: str = "auto") -> float:
    """Say above which score an estimator predicts a label: 1/2 for probabilities, 0 for other scores."""
    is_score = response != "predict_proba" and hasattr(estimator, "decision_function")
    return 0.0 if is_score else 0.5


def take_rows(table: Any, rows: Any) -> Any:
    """Take rows of what users hold, of the same kind."""
    return table[rows] if isinstance(table, LabelMatrix) else _safe_indexing(table, rows)


def rows_of(table: Any) -> int:
    """Count the rows of what users hold."""
    return int(_num_samples(table))


def score_blocks(estimator: Any, X: Any, n_labels: int, response: str = "auto") -> Iterator[Array]:
    """Score rows, some at a time."""
    check_sparse(X, "X")
    return (label_scores(estimator, part, n_labels, response) for part in row_blocks(estimator, X, n_labels))


def row_blocks(estimator: Any, X: Any, n_labels: int) -> Iterator[Any]:
    """Hand out rows, so many at a time that their scores fit into memory."""
    n_rows, size = rows_of(X), max(1, _SCORES_AT_ONCE // max(1, n_labels))
    if n_rows <= size or get_tags(estimator).input_tags.pairwise:
        yield X
        return
    for rows in panels(n_rows, size):
        yield take_rows(X, np.arange(rows.start, rows.stop))


@dataclass(frozen=True)
class TrainingRows:
    """What a fit was given: X and y as the user has them, and y read."""

    X: Any
    y: Any
    labels: LabelMatrix
    weights: Array | None


class FittedPart(NamedTuple):
    """A model and the numbers of the rows it was fitted to."""

    model: Any
    rows: Array | None


def split_rows(cv: Any, data: TrainingRows, validation_fraction: float, seed: int) -> list[Split]:
    """Say which rows each model is fitted to and which it scores.

    cv: none for one split; a number of folds; or what scikit-learn takes as ``cv``.  Splits by None or a
        number are stratified by labels.
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
    """Draw the rows to score evenly, without a look at labels."""
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
    if rows is not None and hasattr(whole, "_for_a_part"):
        whole = whole._for_a_part()
    if part is not None and hasattr(whole, "_fit_from"):
        return whole._fit_from(part.model, part.rows, X, y, **extra)
    return whole.fit(X, y, **extra)


def score_held_out(
    data: TrainingRows, splits: Sequence[tuple[Any, Array]], response: str, fit: Callable[[Any], Any]
) -> tuple[HeldOutScores, FittedPart]:
    """Fit a model to the one part of every split and score the other.

    splits: rows to fit, None for a model fitted elsewhere, and rows to score; only some, evenly drawn,
        where all scores would take more than a gigabyte.
    Returns the scores of all splits, and the last of the models.
    """
    n_labels = data.labels.n_labels
    most = max(1, _MOST_SCORES // (n_labels * len(splits)))
    splits = [(train, _thinned(held, most)) for train, held in splits]
    rows, done = np.concatenate([held for _, held in splits]), 0
    precise = len(rows) * n_labels <= _MOST_PRECISE
    scores = np.empty((len(rows), n_labels), np.float64 if precise else np.float32)
    for train, held in splits:
        part = FittedPart(fit(train), train)
        for block in score_blocks(part.model, _held_rows(part, data, held), n_labels, response):
            scores[done : done + len(block)] = block
            done += len(block)
    weights = None if data.weights is None else data.weights[rows]
    return HeldOutScores(data.labels[rows], scores, weights), part


def _held_rows(part: FittedPart, data: TrainingRows, held: Array) -> Any:
    if part.rows is not None:  # a precomputed kernel has columns to leave out
        return _safe_split(part.model, data.X, None, held, part.rows)[0]
    return data.X if len(held) == len(data.labels) else take_rows(data.X, held)


def _thinned(rows: Array, most: int) -> Array:
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(np.intp)]
