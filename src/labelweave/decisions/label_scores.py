"""Scores of any fitted classifier as a table with one column per label, of new and of held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils import get_tags

from labelweave.estimators.held_out import HeldOutScores, Share, held_out_parts, some_rows
from labelweave.estimators.journal import Journal, data_fingerprint
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import check_sparse, panels
from labelweave.foundation.sklearn_compat import _num_samples, _safe_split
from labelweave.labels import LabelMatrix
from labelweave.metrics.known_labels import as_score_table, label_probabilities, label_scores
from labelweave.splits import IterativeStratifiedKFold
from labelweave.splits.splitters import splits_by, take_rows

_SCORES_AT_ONCE = 16_000_000
Split = tuple[Array, Array]

_MOST_SCORES = 250_000_000  # 1 GB
_MOST_PRECISE = 32_000_000  # up to this many scores are kept in double precision


def decision_level(estimator: Any, response: str = "auto") -> float:
    """Return the score above which an estimator predicts a label: 1/2 for probabilities, else 0."""
    is_score = response != "predict_proba" and hasattr(estimator, "decision_function")
    return 0.0 if is_score else 0.5


def targets_for(estimator: Any, y: Any) -> Any:
    """Convert a complete LabelMatrix for other libraries' estimators to a table, sparse where it is large.

    Entries with probabilities become the more likely label.
    """
    if not isinstance(y, LabelMatrix) or hasattr(type(estimator), "label_names_"):
        return y
    y = y.most_likely()
    if y.has_missing:
        return y
    return y.positives.toarray() if y.shape[0] * y.shape[1] <= _MOST_PRECISE else y.positives


def precision_of(n_rows: int, n_labels: int) -> type[np.floating[Any]]:
    return np.float64 if n_rows * n_labels <= _MOST_PRECISE else np.float32


def rows_of(table: Any) -> int:
    return int(_num_samples(table))


def score_blocks(
    estimator: Any, X: Any, n_labels: int, response: str = "auto", classes: Array | None = None
) -> Iterator[Array]:
    """Score rows in blocks, with probabilities of classes where each row has one class."""
    check_sparse(X, "X")
    for part in row_blocks(estimator, X, n_labels):
        if classes is None:
            yield label_scores(estimator, part, n_labels, response)
        else:
            yield _class_probabilities(estimator, part, classes, response)


def _class_probabilities(estimator: Any, X: Any, classes: Array, response: str) -> Array:
    """Return the probabilities of classes, 0 for classes that the estimator lacks: shape (n, C).

    Without ``predict_proba``, or for another response, they are the softmax of the scores.
    """
    places = {one: place for place, one in enumerate(classes.tolist())}
    known = np.array([places[one] for one in estimator.classes_.tolist()], np.intp)
    asked = response == "predict_proba" or (response == "auto" and hasattr(estimator, "predict_proba"))
    if asked:
        found = label_probabilities(estimator, X, len(known))
    else:
        scores = np.asarray(estimator.decision_function(X))
        found = softmax(
            as_score_table(
                np.column_stack([-scores, scores]) if scores.ndim == 1 else scores, estimator, len(known)
            ),
            axis=1,
        )
    table = np.zeros((len(found), len(classes)))
    table[:, known] = found
    return table


def rows_at_once(n_labels: int) -> int:
    return max(1, _SCORES_AT_ONCE // max(1, n_labels))


def most_scored(n_labels: int, n_splits: int = 1) -> int:
    return max(1, _MOST_SCORES // (n_labels * n_splits))


def row_blocks(estimator: Any, X: Any, n_labels: int) -> Iterator[Any]:
    """Yield rows in blocks whose scores fit into memory."""
    n_rows, size = rows_of(X), rows_at_once(n_labels)
    if n_rows <= size or get_tags(estimator).input_tags.pairwise:
        yield X
        return
    for rows in panels(n_rows, size):
        yield take_rows(X, np.arange(rows.start, rows.stop))


@dataclass(frozen=True)
class TrainingRows:
    """The data of a fit: X and y as passed, and y as labels.

    classes: the classes where each row has one; None for many labels per row or two classes.
    callbacks: receives the progress of fits for scikit-learn's callbacks.
    journal: stores the states of all fits, if the estimator has a checkpoint.
    """

    X: Any
    y: Any
    labels: LabelMatrix
    weights: Array | None
    classes: Array | None = None
    callbacks: Any = None
    journal: Journal = field(default_factory=Journal)

    @property
    def facts(self) -> dict[str, Any]:
        """Keyword arguments for callbacks."""
        metadata = None if self.weights is None else {"sample_weight": self.weights}
        return {"X": self.X, "y": self.y, "metadata": metadata}

    def fit(
        self, decider: Any, rows: Array | None = None, part: FittedPart | None = None, estimator: Any = None,
        *, is_kept: bool = False,
    ) -> Any:  # fmt: skip
        """Fit a clone of the decider's estimator to some rows, or to all, warm-started if possible.

        estimator: replaces the decider's own.
        is_kept: whether this is the final model, which is solved as precisely as one of all rows.

        Parts are warm-started only from other parts, whose dual variables do not make held-out rows easier to
        score.
        """
        estimator = decider.estimator if estimator is None else estimator
        X, y, weights = self.X, self.y, self.weights
        if rows is not None:
            X, y = _safe_split(estimator, X, None, rows)[0], take_rows(y, rows)
            weights = None if weights is None else weights[rows]
        y = targets_for(estimator, y)
        extra = {} if weights is None else {"sample_weight": weights}
        whole, fit = clone(estimator), "fit to all rows" if rows is None else "fit to a part"
        if rows is not None and not is_kept and hasattr(whole, "_for_a_part"):
            whole = whole._for_a_part()
            if part is not None:
                whole._begin_at(part.model, part.rows, rows)
        if self.journal.path is not None:
            name = "all rows" if rows is None else f"rows {data_fingerprint(rows)[:16]}"
            whole._outer_journal = self.journal.part(name)
        told = TrainingRows(X, y, self.labels, weights).facts
        task = self.callbacks.subcontext(task_name=fit)
        with task.propagate_callback_context(whole):
            task.call_on_fit_task_begin(estimator=decider, **told)
            try:
                if part is not None and rows is None and hasattr(whole, "_fit_from"):
                    whole._fit_from(part.model, part.rows, X, y, **extra)
                else:
                    whole.fit(X, y, **extra)
            except KeyboardInterrupt:
                self.journal.close(is_done=False)
                raise
            task.call_on_fit_task_end(estimator=decider, **told)
        return whole

    def score_blocks(self, part: FittedPart, rows: Array, response: str) -> Iterator[Array]:
        """Score some rows by a model, in blocks: shape (n, L)."""
        X = self.X
        if part.rows is not None:  # a precomputed kernel also needs its columns selected
            X = _safe_split(part.model, X, None, rows, part.rows)[0]
        elif len(rows) < len(self.labels):
            X = take_rows(X, rows)
        return score_blocks(part.model, X, self.labels.n_labels, response, self.classes)

    def looked_at(self, part: FittedPart, response: str) -> Callable[[], HeldOutScores] | None:
        """Return a function that scores some rows of the fit; None for a model fitted elsewhere."""
        return None if part.rows is None else partial(self._score_fitted, part, response)

    def _score_fitted(self, part: FittedPart, response: str) -> HeldOutScores:
        assert part.rows is not None, "the part was fitted here"
        rows = some_rows(some_rows(part.rows), most_scored(self.labels.n_labels))
        scores = np.concatenate(list(self.score_blocks(part, rows, response)))
        return HeldOutScores(self.labels[rows], scores, _taken(self.weights, rows))


class FittedPart(NamedTuple):
    """A model and the indices of its training rows."""

    model: Any
    rows: Array | None


def split_rows(cv: Any, data: TrainingRows, share: Share, seed: int) -> list[Split]:
    """Return the rows to fit and the rows to score of each split.

    cv: None to hold out this share of the rows; a number of folds; or any ``cv`` of scikit-learn.
        Splits by None or a number are stratified by labels.
    """
    if cv is None:
        _require_rows(len(data.labels), 2)
        return held_out_parts(data.labels, share, seed)
    targets = data.y
    if isinstance(cv, Integral):
        _require_rows(len(data.labels), int(cv))
        cv, targets = IterativeStratifiedKFold(int(cv), random_state=seed, shuffle=True), data.labels
    return [(np.sort(train), np.sort(held)) for train, held in splits_by(cv, data.X, targets)]


def one_split(n_rows: int, validation_fraction: float, seed: int) -> Split:
    """Draw the rows to score evenly, ignoring labels."""
    _require_rows(n_rows, 2)
    order = np.random.default_rng(seed).permutation(n_rows)
    n_held = min(n_rows - 1, max(1, round(validation_fraction * n_rows)))
    return np.sort(order[n_held:]), np.sort(order[:n_held])


def _require_rows(n_rows: int, least: int) -> None:
    if n_rows < least:
        raise ValueError(
            f"X has {n_rows} row(s) (n_samples={n_rows}), but at least {least} are needed for held-out rows."
        )


def score_held_out(
    data: TrainingRows,
    splits: Sequence[tuple[Any, Array]],
    response: str,
    fit: Callable[[Any, FittedPart | None], Any],
) -> tuple[HeldOutScores, FittedPart]:
    """Fit a model to the training rows of every split and score the held-out rows.

    splits: rows to fit, None for a model fitted elsewhere, and rows to score; only an even sample of
        these where all scores would take more than a gigabyte.
    fit: fits the given rows, warm-started from the part before.
    Returns the scores of all splits, and the last model.
    """
    n_labels = data.labels.n_labels
    most = most_scored(n_labels, len(splits))
    splits = [(train, some_rows(held, most)) for train, held in splits]
    rows, done = np.concatenate([held for _, held in splits]), 0
    scores = np.empty((len(rows), n_labels), precision_of(len(rows), n_labels))
    part: FittedPart | None = None
    for train, held in splits:
        part = FittedPart(fit(train, part), train)
        for block in data.score_blocks(part, held, response):
            scores[done : done + len(block)] = block
            done += len(block)
    assert part is not None, "there are splits"
    fitted = data.looked_at(part, response)
    return HeldOutScores(data.labels[rows], scores, _taken(data.weights, rows), fitted), part


def _taken(weights: Array | None, rows: Array) -> Array | None:
    return None if weights is None else weights[rows]
