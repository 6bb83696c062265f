"""The rows of a report as users read them, and the model's predictions next to the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from labelweave.app.facts.model_facts import feature_names, outer_classifier
from labelweave.decisions.label_scores import row_blocks, rows_of, score_blocks
from labelweave.decisions.layers import Shown, innermost, shown_labels
from labelweave.estimators import TableModel
from labelweave.features.feature_matrix import filled
from labelweave.foundation.arguments import shown
from labelweave.foundation.array_types import Array, PerLabel, PerRow
from labelweave.foundation.arrays import checked_csr, numbers_of, panels
from labelweave.foundation.frames import as_pandas
from labelweave.labels import LabelMatrix
from labelweave.splits.splitters import take_rows

SEARCHED = 64  # best labels to search for per row
MOST_SCORES = 16_000_000  # with more scores, only the best labels are searched
_FEW_LABELS, _ROWS_AT_ONCE = 1000, 1000
_LONGEST_CELL = 600
_MOST_COLUMNS = 12  # of a pipeline's DataFrame


@dataclass(frozen=True)
class ReportedRows:
    """A classifier of the library, perhaps in a meta-classifier, rows (n, d) in its features, and names.

    frame: the table that the features were made from.
    columns: its visible columns.
    text_columns: text columns, with features ``column:word``.
    weights (n,): sample weights of metrics; None for equal ones.
    """

    classifier: Any
    X: Any
    names: list[str]
    feature_names: Array | None
    frame: Any = None
    columns: tuple[str, ...] = ()
    text_columns: tuple[str, ...] = ()
    weights: Array | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def label_names(self) -> list[str]:
        return [str(name) for name in self.classifier.label_names_]

    @property
    def has_classes(self) -> bool:
        return bool(self.classifier._form.has_one_class)

    def cells(self, row: int) -> list[tuple[str, str]]:
        """Return the columns that features were made from with their contents, shortened."""
        if self.frame is None:
            return []
        part = self.frame.iloc[[row]]
        cells = [part[column] for column in self.columns]  # selecting a row would convert integers to floats
        texts = ["" if cell.isna().iloc[0] else str(cell.iloc[0]) for cell in cells]
        cut = [text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]} ..." for text in texts]
        return list(zip(self.columns, cut, strict=True))


def read_rows(model: Any, X: Any, row_names: Sequence[Any] | Array | None) -> ReportedRows:
    """Convert user input to rows of features, named as given, or by a DataFrame's index or numbers."""
    last, (classifier, _) = model[-1] if isinstance(model, Pipeline) else model, outer_classifier(model)
    if not all(hasattr(classifier, name) for name in ("label_names_", "_form", "decision_function")):
        raise TypeError(
            f"A {type(last).__name__} was given; a report needs a fitted classifier of labelweave, one in "
            "its TunedThresholdClassifier, or a pipeline that ends in one."
        )
    names = _row_names(X, row_names)
    if not names:
        raise ValueError("The data have no rows, so there is nothing to report.")
    if isinstance(model, Pipeline) and len(model) > 1:
        return _piped_rows(model, classifier, X, names)
    if isinstance(last, TableModel):
        vectorizer, own = last.vectorizer_, np.asarray(last.feature_names_)
        columns = (*vectorizer.text, *vectorizer.categorical, *vectorizer.numeric)
        frame = as_pandas(X)
        return ReportedRows(
            classifier, vectorizer.transform(X), names, own, frame, columns, tuple(vectorizer.text)
        )
    features = checked_csr(X, "X") if sp.issparse(X) else X if hasattr(X, "columns") else numbers_of(X, "X")
    means = getattr(innermost(classifier), "feature_means_", None)
    features = features if means is None or hasattr(X, "columns") else filled(features, means)
    given = getattr(classifier, "feature_names_in_", feature_names(innermost(classifier)))
    return ReportedRows(
        classifier, features, names, None if given is None else np.asarray(given, dtype=object)
    )


def _piped_rows(model: Pipeline, classifier: Any, X: Any, names: list[str]) -> ReportedRows:
    """Transform rows by the steps before the classifier; texts and DataFrames are shown as given."""
    own, features = feature_names(model), model[:-1].transform(X)
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return ReportedRows(classifier, features, names, own, X, tuple(X.columns[:_MOST_COLUMNS]))
    if not all(isinstance(row, str) for row in X):
        return ReportedRows(classifier, features, names, own)
    import pandas as pd

    own = None if own is None else np.char.add("text:", own)
    frame = pd.DataFrame({"text": list(X)})
    return ReportedRows(classifier, features, names, own, frame, ("text",), ("text",))


def _row_names(X: Any, row_names: Sequence[Any] | Array | None) -> list[str]:
    n_rows = rows_of(X)
    if row_names is None:
        index = getattr(X, "index", None)
        row_names = range(n_rows) if index is None or callable(index) else list(index)
    is_list = isinstance(row_names, Iterable) and not isinstance(row_names, (str, bytes))
    if not is_list or getattr(row_names, "ndim", 1) != 1:
        raise ValueError(f"row_names is {shown(row_names)}; pass a list of names, one per row.")
    names = [str(name) for name in row_names]
    if len(names) != n_rows:
        raise ValueError(f"{len(names)} row names were given for {n_rows} rows; pass one name per row.")
    return names


OnProgress = Callable[[str], None]


@dataclass(frozen=True)
class Outcomes:
    """Truth and prediction of n rows and L labels, or of one class per row as labels.

    truth (n, L): named; unobserved entries are neither missed nor wrong.
    scores: scores, or probabilities if the model has them; CSR of the best labels of each row if only
        these were searched for.
    thresholds (L,): lower bounds of predicted labels' scores; None if other rules predict.
    rows: the numbers of the rows in the data.
    columns: the indices of the labels in the model.
    Shapes: predicted (n, L).
    """

    truth: LabelMatrix
    predicted: sp.csr_array
    scores: Any
    rows: PerRow
    columns: PerLabel
    number: str = "score"
    thresholds: PerLabel | None = None

    @property
    def names(self) -> list[str]:
        return self.truth.words

    @property
    def is_searched(self) -> bool:
        """Whether only the scores of the best labels are available."""
        return bool(sp.issparse(self.scores))

    def scores_of(self, labels: Any) -> Array:
        """Return scores of labels, or of one; labels not found in a search score below all others."""
        table = self.scores[:, labels]
        if not self.is_searched:
            return np.asarray(table)
        lowest = float(self.scores.data.min(initial=0.0)) - 1.0
        found = sp.coo_array(table)
        filled = np.full(found.shape, lowest)
        filled[found.coords] = found.data
        return filled

    def highest_score(self, label: int) -> float:
        """Return the highest score of a label where it is observed; NaN if a search found none."""
        observed, column = self.truth.observed, self.scores[:, [label]]
        column = column if observed is None else column[observed[:, [label]].nonzero()[0]]
        found = column.data if self.is_searched else column
        return float(found.max()) if found.size else float("nan")

    @cached_property
    def counted(self) -> sp.csr_array:
        """The predicted labels whose truth was observed."""
        observed = self.truth.observed
        return self.predicted if observed is None else _ones(self.predicted.multiply(abs(observed)))

    @cached_property
    def hits(self) -> sp.csr_array:
        return _ones(self.truth.positives.multiply(self.predicted))

    @cached_property
    def missed(self) -> sp.csr_array:
        return _ones(self.truth.positives - self.hits)

    @cached_property
    def wrong(self) -> sp.csr_array:
        return _ones(self.counted - self.hits)

    @cached_property
    def expected_missed(self) -> sp.csr_array:
        """The weight of every entry as missed: 1, or the probability that it is positive."""
        expected = self.truth.expected_positives.astype(np.float64)
        return sp.csr_array(expected - expected.multiply(self.predicted))

    @cached_property
    def expected_wrong(self) -> sp.csr_array:
        """The weight of every entry as wrongly predicted: 1, or the probability that it is negative."""
        return sp.csr_array(self.counted - self.truth.expected_positives.multiply(self.predicted))


def _ones(matrix: Any) -> sp.csr_array:
    """Return the nonzero pattern of a matrix, as integers for sums."""
    found = sp.csr_array(matrix != 0).astype(np.int64)
    found.sort_indices()
    return found


def all_labels(rows: ReportedRows, columns: Array, on_progress: OnProgress) -> Shown:
    """Score and predict rows of many labels in blocks, for some labels.

    A large table from a model with label search has only the numbers of the best labels per row.
    """
    n_labels, searches = len(rows.label_names), getattr(rows.classifier, "_searches", lambda k: False)
    if n_labels > _FEW_LABELS and len(rows) * n_labels > MOST_SCORES and searches(SEARCHED):
        return _searched_labels(rows, columns, on_progress)
    parts, word, done = list[Any](), "score", 0
    for block in row_blocks(rows.classifier, rows.X, len(rows.label_names)):
        word, numbers, predicted = shown_labels(rows.classifier, block)
        parts.append((numbers[:, columns], sp.csr_array(predicted[:, columns].astype(np.int8))))
        done += len(numbers)
        on_progress(f"scored {done} of {len(rows)} rows")
    every, found = zip(*parts, strict=True)
    return Shown(word, np.concatenate(every), sp.csr_array(sp.vstack(found)))


def _searched_labels(rows: ReportedRows, columns: Array, on_progress: OnProgress) -> Shown:
    n_labels, parts = len(rows.label_names), list[Any]()
    for part in panels(len(rows), _ROWS_AT_ONCE):
        block = take_rows(rows.X, np.arange(part.start, part.stop))
        labels, scores = rows.classifier.predict_top(block, SEARCHED)
        entries = scores.ravel(), labels.ravel(), SEARCHED * np.arange(len(labels) + 1)
        numbers = sp.csr_array(entries, shape=(len(labels), n_labels))
        deciding = rows.classifier._deciding_blocks(block)
        predicted = sp.vstack([sp.csr_array(one > 0).astype(np.int8) for one in deciding])
        parts.append((numbers, predicted))
        on_progress(f"scored {part.stop} of {len(rows)} rows")
    numbers, predicted = (sp.csr_array(sp.vstack(tables))[:, columns] for tables in zip(*parts, strict=True))
    numbers.sort_indices()
    return Shown("score", numbers, predicted)


def all_scores(rows: ReportedRows, response: str, on_progress: OnProgress) -> Array:
    """Score the classes of rows with one class each, in blocks: shape (n, k)."""
    is_binary, blocks, done = rows.classifier._form.is_pair, list[Array](), 0
    n_columns = 2 if is_binary and response == "predict_proba" else 1 if is_binary else len(rows.label_names)
    for block in score_blocks(rows.classifier, rows.X, n_columns, response):
        blocks.append(np.column_stack([-block, block]) if block.shape[1] == 1 and is_binary else block)
        done += len(block)
        on_progress(f"scored {done} of {len(rows)} rows")
    return np.concatenate(blocks)
