"""Metrics of the k best-scored labels: precision, discounted gain and propensity-scored precision.

Propensities follow Jain, Prabhu and Varma, "Extreme multi-label loss functions for recommendation, tagging,
ranking and other missing label applications" (KDD 2016), with the normalization of the Extreme
Classification Repository.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Array, Floats
from labelweave.foundation.arrays import largest_columns, numbers_of, ratios
from labelweave.labels import LabelMatrix
from labelweave.labels.label_names import rows_by_name
from labelweave.metrics import _inputs
from labelweave.metrics._inputs import Scores

Integers = npt.NDArray[np.int64]

_MOST_EXPONENT, _MOST_OFFSET = 10, 1e9


def precision_at_k(Y_true: Any, scores: Any, k: int = 5, *, sample_weight: Any = None) -> float:
    """Compute the mean fraction of positives among the k best-scored labels of an example.

    Unobserved labels are removed from a ranking first; an example with fewer than k observed labels is
    divided by their number, and one without any is ignored.  Ties go to the lower label index.  A label with
    the score -inf, or without a stored score in a sparse matrix, is not ranked, and an empty rank is a miss.
    For the other parameters and errors see :func:`ranking_loss`.

    Parameters
    ----------
    k : int, default=5
        The number of labels, from 1 to L.

    Returns
    -------
    float
        The precision, from 0 to 1 (best).
    """
    return _row_mean(Y_true, scores, k, sample_weight, row_precisions)


def ndcg_at_k(Y_true: Any, scores: Any, k: int = 5, *, sample_weight: Any = None) -> float:
    """Compute the mean discounted gain of the k best-scored labels, relative to the best possible gain.

    A positive at rank i = 1, ..., k gains 1 / log2(i + 1).  An example with no observed positive counts 0,
    as in scikit-learn.  Ties go to the lower label index (scikit-learn averages over them by default).  For
    the other parameters and errors see :func:`precision_at_k`.

    Returns
    -------
    float
        The normalized gain, from 0 to 1 (best).
    """
    return _row_mean(Y_true, scores, k, sample_weight, row_gains)


def _row_mean(Y_true: Any, scores: Any, k: int, sample_weight: Any, of_rows: Callable[..., Floats]) -> float:
    targets = _inputs.read_targets(Y_true)
    k = _inputs.check_k(k, targets)
    hits = top_hits(targets, _inputs.read_scores(scores, targets), k)
    return _inputs.mean_of_defined(of_rows(targets, hits, k), _inputs.read_weights(sample_weight, targets))


@checked
def propensities(Y_train: Any, a: float = 0.55, b: float = 1.5) -> Floats:
    """Estimate the probability that a relevant label is annotated.

    Jain et al. (2016): p_l = 1 / (1 + C (N_l + b)^-a) with C = (log N - 1) (b + 1)^a, where N_l counts the
    positives of label l and N the examples.  Unobserved entries are not positives, and examples without an
    observed entry are not in N.  C is at least 0, so p_l is 1 for N below 3.

    Parameters
    ----------
    Y_train : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        Training labels, 0/1 or -1/1, NaN where not observed.
    a : float, default=0.55
        The exponent, from -10 to 10; the Repository uses 0.5 for Wikipedia, 0.6 for Amazon.  Powers of counts
        overflow beyond these limits.
    b : float, default=1.5
        The offset, above 0 and at most 1e9; the Repository uses 0.4 for Wikipedia, 2.6 for Amazon.

    Returns
    -------
    ndarray of float64, shape (L,)
        The propensities, above 0 and at most 1.

    Raises
    ------
    ValueError
        If nothing is observed, or a or b is out of range.
    """
    if not 0 < b <= _MOST_OFFSET:
        raise ValueError(f"b is {b}; pass an offset of the label counts above 0 and at most 1e9.")
    if not -_MOST_EXPONENT <= a <= _MOST_EXPONENT:
        raise ValueError(
            f"a is {a}; pass an exponent of the label counts from -10 to 10, beyond which powers overflow."
        )
    targets = _inputs.read_targets(Y_train)
    n_rows = int(np.count_nonzero(_inputs.row_observed_counts(targets)))
    return propensities_of_counts(n_rows, targets.positive_counts(), float(a), float(b))


def propensities_of_counts(n_rows: int, positives: Any, a: float = 0.55, b: float = 1.5) -> Floats:
    """Estimate propensities from N and the positives of each label; see :func:`propensities`."""
    C = max(0.0, np.log(max(1, n_rows)) - 1) * (b + 1) ** a
    return np.asarray(1 / (1 + C * (positives + b) ** -a), dtype=np.float64)


def propensity_scored_precision_at_k(
    Y_true: Any, scores: Any, propensity: Any, k: int = 5, *, sample_weight: Any = None
) -> float:
    """Compute precision at k with higher weights for rare labels, relative to the best possible value.

    Every positive in the top k gains 1 / p_l; the sum over all examples is divided by the sum of the best
    ranking, as in the Extreme Classification Repository.  For the other parameters and errors see
    :func:`precision_at_k`.

    Parameters
    ----------
    propensity : array-like of shape (L,) or Series by label
        Above 0 and at most 1, as :func:`propensities` estimates them from the training labels.
    sample_weight : array-like of shape (n,) or None, default=None
        Non-negative weights of the rows, in both sums.

    Returns
    -------
    float
        The score, from 0 to 1 (best); NaN if there is no observed positive.
    """
    targets = _inputs.read_targets(Y_true)
    k = _inputs.check_k(k, targets)
    chances = _read_propensity(propensity, targets)
    gains = np.ldexp(1.0, np.frexp(chances.min())[1]) / chances  # a power of two keeps ratios exact
    hits = top_hits(targets, _inputs.read_scores(scores, targets), k)
    weights = _inputs.read_weights(sample_weight, targets)
    best = _best_gain(targets, gains, weights, k)
    return float((gains[hits.labels] * weights[hits.rows]).sum() / best) if best > 0 else float("nan")


def row_precisions(targets: LabelMatrix, hits: TopHits, k: int) -> Floats:
    """Compute precision at k per row from hits at k or more ranks, NaN where nothing is observed."""
    seen = np.minimum(_inputs.row_observed_counts(targets), k)
    return ratios(hits.first(k).row_sums(len(targets)), seen, np.nan)


def row_gains(targets: LabelMatrix, hits: TopHits, k: int) -> Floats:
    """Compute normalized gains per row from hits at k or more ranks, NaN where nothing is observed."""
    discounts = 1 / np.log2(np.arange(k) + 2)
    hits = hits.first(k)
    gains = hits.row_sums(len(targets), discounts[hits.places])
    positives = np.minimum(np.diff(targets.positives.indptr), k)
    best = np.concatenate([[0.0], np.cumsum(discounts)])[positives]
    return np.where(_inputs.row_observed_counts(targets) > 0, ratios(gains, best), np.nan)


def _best_gain(targets: LabelMatrix, gains: Floats, weights: Floats, k: int) -> float:
    """Sum the k largest gains among the positives of every row, weighted by row."""
    rows = _inputs.stored_rows(targets.positives)
    values = gains[targets.positives.indices]
    values = values[np.lexsort((-values, rows))]
    places = np.arange(len(rows)) - targets.positives.indptr[rows]
    return float((values * weights[rows])[places < k].sum())


def _read_propensity(propensity: Any, targets: LabelMatrix) -> Floats:
    in_order = rows_by_name(propensity, targets.words, "propensity")
    values: Floats = numbers_of(in_order, "propensity").astype(np.float64)
    if values.shape != (targets.n_labels,):
        raise ValueError(
            f"propensity has shape {values.shape} but there are {targets.n_labels} labels; "
            "pass one propensity per label."
        )
    bad = ~((values > 0) & (values <= 1))
    if bad.any():
        label = int(np.argmax(bad))
        raise ValueError(
            f"propensity of label {label} is {values[label]}; pass numbers above 0 and at most 1."
        )
    return values


class TopHits(NamedTuple):
    """The positives among the top k: row, label and rank (0 is the best) of each."""

    rows: Integers
    labels: Integers
    places: Integers

    def first(self, k: int) -> TopHits:
        return TopHits(*(column[self.places < k] for column in self))

    def row_sums(self, n_rows: int, gains: Floats | None = None) -> Floats:
        return np.bincount(self.rows, weights=gains, minlength=n_rows).astype(np.float64)


def top_hits(targets: LabelMatrix, scores: Scores, k: int) -> TopHits:
    """Return the positives among the k best-scored observed labels of every row."""
    find = _top_of_sparse if sp.issparse(scores) else _top_of_dense
    parts = []
    for block in _inputs.row_blocks(scores):
        rows, labels, places = find(targets[block], scores[block], k)
        positive = _inputs.signs_at(targets[block], rows, labels) > 0
        parts.append((rows[positive] + block.start, labels[positive], places[positive]))
    return TopHits(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _top_of_dense(targets: LabelMatrix, scores: Array, k: int) -> tuple[Integers, Integers, Integers]:
    if targets.has_missing:
        scores = np.where(targets.to_signs() == 0, -np.inf, scores)
    labels = largest_columns(scores, k)
    offered = np.take_along_axis(scores, labels, axis=1) > -np.inf
    rows, places = np.nonzero(offered)
    return rows, labels[offered], places


def _top_of_sparse(targets: LabelMatrix, scores: sp.csr_array, k: int) -> tuple[Integers, Integers, Integers]:
    rows, labels, values = _inputs.stored_rows(scores), scores.indices.astype(np.int64), scores.data
    if targets.has_missing:
        seen = _inputs.signs_at(targets, rows, labels) != 0
        rows, labels, values = rows[seen], labels[seen], values[seen]
    order = np.lexsort((labels, -values, rows))
    counts = np.bincount(rows, minlength=len(targets))
    places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = places < k
    return rows[kept], labels[order][kept], places[kept]
