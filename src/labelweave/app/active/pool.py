"""The pool of rows to choose from: probabilities, known entries, and a factor of a kernel between rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.pipeline import Pipeline

from labelweave.decisions.label_scores import rows_of
from labelweave.decisions.layers import innermost
from labelweave.estimators import TableModel
from labelweave.features import FeatureMatrix, FeatureScaling, LinearKernel, RBFKernel
from labelweave.features.gram.low_rank import incomplete_cholesky
from labelweave.features.gram.sources import KernelSource
from labelweave.foundation.arguments import shown
from labelweave.foundation.array_types import Array, LabelsByLabels, RowsByLabels
from labelweave.foundation.arrays import Workers
from labelweave.labels import LabelCovariance, LabelMatrix
from labelweave.metrics._inputs import row_observed_counts
from labelweave.metrics.known_labels import as_score_table, known_labels, label_probabilities
from labelweave.splits.splitters import take_rows

_MOST_ENTRIES = 4_000_000  # entries of the considered rows
_MOST_NUMBERS = 16_000_000  # in the covariances of all labels' coefficients, 128 MB
_MOST_WORK = 10_000_000_000  # products of entries and squared rank: some seconds
_RANK = 100
_MARGIN_ODDS = 2.0  # log-odds of a score of 1, where a model has no probabilities
_DENSE = 0.5  # least share of nonzero features of dense rows


@dataclass(frozen=True)
class Pool:
    """Rows to choose from.

    n_rows: number of rows passed.
    rows (m,): the indices of the considered rows.
    probabilities, known (m, L)
    names: of the labels; None for numbers.
    features: of the rows, as numbers.
    """

    n_rows: int
    rows: Array
    probabilities: RowsByLabels
    known: RowsByLabels
    names: Array | None
    features: FeatureMatrix

    def factor(self, seed: int) -> Array:
        """Return a factor of a kernel between the rows, with an intercept column: shape (m, r)."""
        most = min(_MOST_NUMBERS / self.known.shape[1], _MOST_WORK / self.known.size)
        rank = int(np.clip(np.sqrt(most), 2, _RANK))
        data = self.features.data  # texts have mostly zeros
        is_sparse = self.features.is_sparse or np.count_nonzero(data) < _DENSE * data.size
        kind, kernel = ("unit", LinearKernel()) if is_sparse else ("standard", RBFKernel(1.0))
        scaled = FeatureScaling.fit(kind, self.features)(self.features).astype(np.float64)
        found = incomplete_cholesky(KernelSource(kernel, scaled), rank, Workers(1), seed).factor
        return np.column_stack([found, np.ones(len(self.rows))])


def read_pool(model: Any, X: Any, known: Any, seed: int) -> Pool:
    """Predict the probabilities of rows, or of a sample of many.

    model: fitted, or None before the first fit.
    known (n, L): the known entries; None for none.
    """
    n_rows, names = rows_of(X), _names(model)
    given = None if known is None else LabelMatrix.from_any(known)
    if given is not None and len(given) != n_rows:
        raise ValueError(f"X_pool has {n_rows} rows but known has {len(given)}; they must be the same rows.")
    n_labels = _count_labels(model, X, given, names)
    labels = _matched(given, names, n_labels, n_rows)
    rows = _drawn(labels, max(2, _MOST_ENTRIES // n_labels), seed)
    some, part = (X, labels) if len(rows) == n_rows else (take_rows(X, rows), labels[rows])
    seen = part.to_signs()
    probabilities = _shares(seen) if model is None else _probabilities(model, some, n_labels)
    return Pool(n_rows, rows, probabilities, seen != 0, labels.names, FeatureMatrix(_features(model, some)))


def _names(model: Any) -> list[str] | None:
    last = model[-1] if isinstance(model, Pipeline) else model
    form = getattr(innermost(getattr(last, "classifier_", last)), "_form", None)
    if form is not None and (form.has_one_class or form.columns is not None):
        raise ValueError(
            f"{type(last).__name__} was fitted to one class per row or column, but suggest_queries needs "
            "many labels per row; fit the model to a table of labels, one column per class."
        )
    found = getattr(last, "label_names_", None)
    return None if found is None else [str(name) for name in found]


def _count_labels(model: Any, X: Any, given: LabelMatrix | None, names: list[str] | None) -> int:
    if names is not None:
        return len(names)
    if given is not None:
        return given.n_labels
    if model is None:
        raise ValueError("Without a model known defines the labels; pass a table with NaN where unknown.")
    found = _responses(model, take_rows(X, np.arange(min(2, rows_of(X)))))
    return len(found) if isinstance(found, list) else int(np.asarray(found).reshape(len(found), -1).shape[1])


def _responses(model: Any, X: Any) -> Any:
    respond = getattr(model, "predict_proba", getattr(model, "decision_function", None))
    if respond is None:
        raise ValueError(
            f"{type(model).__name__} has neither predict_proba nor decision_function; pass a model that "
            "has one."
        )
    return respond(X)


def _matched(given: LabelMatrix | None, names: list[str] | None, n_labels: int, n_rows: int) -> LabelMatrix:
    """Return known entries in the order of the model's labels."""
    if given is not None and names is None:
        return given
    if given is not None and names is not None:
        strange = [] if given.names is None else sorted({*map(str, given.names)} - {*names})
        if strange or given.n_labels > n_labels:
            what = f"the label {strange[0]!r}" if strange else f"{given.n_labels} labels"
            raise ValueError(
                f"known has {what}, but the model has the {n_labels} labels {shown(names)}; pass these."
            )
        found, columns = known_labels(given, names, "raise")
        if len(columns) == n_labels and (np.diff(columns) > 0).all():
            return LabelMatrix(found.positives, found.observed, names)
        entries = np.ones(len(columns), np.int8), (np.arange(len(columns)), columns)
        to = sp.csr_array(entries, shape=(len(columns), n_labels))
        observed = found.to_signs() if found.observed is None else found.observed
        return LabelMatrix(found.positives @ to, abs(sp.csr_array(observed)) @ to, names)
    nothing = sp.csr_array((n_rows, n_labels), dtype=np.int8)
    return LabelMatrix(nothing, nothing, names)


def _drawn(labels: LabelMatrix, most: int, seed: int) -> Array:
    """Sample rows, half of them among the rows with known entries, if there are as many."""
    every = np.arange(len(labels))
    if len(labels) <= most:
        return every
    counts = row_observed_counts(labels)
    order = np.random.default_rng(seed).permutation(every)
    known, rest = order[counts[order] > 0][: most // 2], order[counts[order] < labels.n_labels]
    others = np.setdiff1d(rest, known, assume_unique=True)[: most - len(known)]
    return np.unique(np.concatenate([known, others]))


def _shares(signs: Array) -> RowsByLabels:
    """Estimate probabilities as shares of positives, with one pseudo-count of each sign."""
    shares = ((signs > 0).sum(axis=0) + 1.0) / ((signs != 0).sum(axis=0) + 2.0)
    return np.tile(shares, (len(signs), 1))


def _probabilities(model: Any, X: Any, n_labels: int) -> RowsByLabels:
    if hasattr(model, "predict_proba"):
        found = label_probabilities(model, X, n_labels)
    else:
        found = expit(_MARGIN_ODDS * as_score_table(_responses(model, X), model, n_labels))
    if not np.isfinite(found).all() or found.min(initial=0.0) < 0 or found.max(initial=0.0) > 1:
        raise ValueError(f"{type(model).__name__} has probabilities outside 0 to 1.")
    if n_labels > 2 and len(found) and np.allclose(found.sum(axis=1), 1.0) and not _has_many(model):
        raise ValueError(
            f"{type(model).__name__} has one class per row, but suggest_queries needs many labels per row; "
            "fit the model to a table of labels, one column per class."
        )
    return np.asarray(found, np.float64)


def _has_many(model: Any) -> bool:
    """Whether a model of another library has many labels per row, as far as its attributes show."""
    has_lists = isinstance(getattr(model, "classes_", None), list)
    return has_lists or hasattr(model, "label_names_") or bool(getattr(model, "multilabel_", False))


def _features(model: Any, X: Any) -> Any:
    """Return rows as numbers: the input of a pipeline's last step or of a table model's classifier."""
    if isinstance(model, Pipeline):
        return _features(model[-1], model[:-1].transform(X)) if len(model) > 1 else _features(model[-1], X)
    if isinstance(model, TableModel):
        return model.vectorizer_.transform(X)
    try:
        return FeatureMatrix(X).data
    except (ValueError, TypeError):  # texts, or cells that the model itself encodes
        if model is None:
            raise
    inner = innermost(model)
    if isinstance(inner, Pipeline):
        return _features(inner, X)
    return _probabilities(model, X, len(_names(model) or []) or _count_labels(model, X, None, None))


def label_correlations(model: Any, n_labels: int) -> LabelsByLabels | None:
    """Return the correlations of label scores in a model; None where labels are independent."""
    last = model[-1] if isinstance(model, Pipeline) else model
    inner = innermost(getattr(last, "classifier_", last))
    covariance, prior = getattr(inner, "label_covariance_", None), getattr(inner, "prior_", None)
    if isinstance(covariance, LabelCovariance):
        return covariance.correlations() if covariance.ties_labels else None
    if prior is not None and getattr(prior, "ties_labels", False):
        total = sum(term.covariance.to_dense() for term in prior.terms)
        return LabelCovariance.dense(total).correlations()
    factors = getattr(inner, "label_factors_", None)
    if factors is None or len(factors) != n_labels:
        return None
    return LabelCovariance.low_rank(np.asarray(factors, np.float64), 1e-9).correlations()
