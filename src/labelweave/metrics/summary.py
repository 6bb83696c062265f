"""The usual metrics of one model in one table, for reports and the command line."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.foundation.arguments import checked
from labelweave.foundation.array_types import Floats
from labelweave.labels import LabelMatrix, Taxonomy
from labelweave.metrics import _classes, _inputs, rankings
from labelweave.metrics._classes import Classes, ClassRows, Codes
from labelweave.metrics._inputs import Scores
from labelweave.metrics.class_metrics import parent_accuracy, reciprocal_ranks, taxonomic_loss
from labelweave.metrics.label_sets import EntryCounts, f1_of, label_counts, row_counts
from labelweave.metrics.probabilities import class_log_loss
from labelweave.metrics.top_k import row_gains, row_precisions, top_hits


@checked
def score_table(
    Y_true: Any,
    scores: Any | None = None,
    Y_pred: Any | None = None,
    k: Iterable[int] = (1, 3, 5),
    *,
    sample_weight: Any = None,
) -> dict[str, float]:
    """Compute the usual metrics of scores, of predicted label sets, or of both.

    For Y_true and errors see :func:`ranking_loss`.

    Parameters
    ----------
    scores : DataFrame, sparse matrix or array-like of shape (n, L) or None, default=None
        Higher is better; needed for the ranking metrics.
    Y_pred : DataFrame, sparse matrix or array-like of shape (n, L) or None, default=None
        Predicted labels; by default those with a score above 0.
    k : iterable of int, default=(1, 3, 5)
        For precision and discounted gain at k; those above L are ignored.
    sample_weight : array-like of shape (n,) or None, default=None
        Non-negative weights of the rows, in every metric.

    Returns
    -------
    dict of str to float
        "hamming_loss", "subset_accuracy", "micro_f1", "macro_f1" and "example_f1"; of scores also
        "precision@1", "ndcg@1" and so on for each k, "auc_label", "auc_example", "ranking_loss",
        "coverage_error" and "label_ranking_average_precision".  NaN where a metric is undefined.
    """
    if scores is None and Y_pred is None:
        raise ValueError("Neither scores nor Y_pred was given; pass at least one of them.")
    targets = _inputs.read_targets(Y_true, Y_pred, is_soft=True)
    weights = _inputs.read_weights(sample_weight, targets)
    values = None if scores is None else _inputs.read_scores(scores, targets)
    table = TableSums.of(targets, values, Y_pred, k, weights).table()
    if values is None:
        return table
    area = rankings.average_auc(
        targets.most_likely(), values, sample_weight=None if sample_weight is None else weights
    )
    found = list(table.items())
    found.insert(list(table).index("auc_example"), ("auc_label", area))
    return dict(found)


@dataclass(frozen=True)
class TableSums:
    """Sums over rows for the metrics that are fractions of entries or means over examples.

    counts: per label, every entry with the weight of its row.
    sums: per name of an example metric, its values times the weights of the rows that define it, and these
        weights.
    """

    counts: EntryCounts
    sums: dict[str, tuple[float, float]]

    @classmethod
    def of(
        cls, targets: LabelMatrix, scores: Scores | None, Y_pred: Any, k: Iterable[int], weights: Floats
    ) -> TableSums:
        """Compute the sums of the given rows.

        targets: labels, possibly with probabilities.
        Y_pred: predicted labels; None for those with a score above 0.
        """
        if Y_pred is None and scores is not None:
            Y_pred = scores > 0 if not sp.issparse(scores) else (scores > 0).astype(np.int8)
        predicted, most_likely = _inputs.read_predictions(Y_pred, targets), targets.most_likely()
        sure = row_counts(most_likely, predicted)
        by_row = {
            "subset_accuracy": np.where(sure.observed > 0, sure.wrong == 0, np.nan),
            "example_f1": f1_of(row_counts(targets, predicted)),
        }
        if scores is not None:
            by_row |= _top_rows(most_likely, scores, k) | _ranking_rows(most_likely, scores)
        sums = {}
        for name, values in by_row.items():
            defined = ~np.isnan(values)
            sums[name] = float(values[defined] @ weights[defined]), float(weights[defined].sum())
        return cls(label_counts(targets, predicted, weights), sums)

    def __add__(self, other: TableSums) -> TableSums:
        counts = EntryCounts(*(one + two for one, two in zip(self.counts, other.counts, strict=True)))
        sums = {
            name: (total + other.sums[name][0], weight + other.sums[name][1])
            for name, (total, weight) in self.sums.items()
        }
        return TableSums(counts, sums)

    def without(self, names: Container[str]) -> TableSums:
        return TableSums(self.counts, {name: sums for name, sums in self.sums.items() if name not in names})

    def table(self) -> dict[str, float]:
        whole = self.counts.of_all
        means = {
            name: total / weight if weight > 0 else np.nan for name, (total, weight) in self.sums.items()
        }
        observed = whole.observed[0]
        return {
            "hamming_loss": float(whole.wrong[0] / observed) if observed > 0 else np.nan,
            "subset_accuracy": means.pop("subset_accuracy"),
            "micro_f1": float(f1_of(whole)[0]),
            "macro_f1": _inputs.mean_of_defined(f1_of(self.counts)),
            **means,
        }


def _top_rows(targets: LabelMatrix, scores: Scores, k: Iterable[int]) -> dict[str, Floats]:
    n_labels = targets.n_labels
    sizes = [
        _inputs.check_k(j, targets) for j in k if not (isinstance(j, (int, np.integer)) and j > n_labels)
    ]
    if not sizes:
        return {}
    hits = top_hits(targets, scores, max(sizes))
    table = {f"precision@{j}": row_precisions(targets, hits, j) for j in sizes}
    return table | {f"ndcg@{j}": row_gains(targets, hits, j) for j in sizes}


def _ranking_rows(targets: LabelMatrix, scores: Scores) -> dict[str, Floats]:
    statistics = {
        "auc_example": rankings.area_under_curve,
        "ranking_loss": rankings.pairs_out_of_order,
        "coverage_error": rankings.coverage,
        "label_ranking_average_precision": rankings.average_precision,
    }
    return dict(zip(statistics, rankings.per_line(targets, scores, *statistics.values()), strict=True))


@checked
def class_summary(
    y_true: Any,
    probabilities: Any,
    classes: Classes = None,
    *,
    taxonomy: Taxonomy | None = None,
    y_pred: Any = None,
    sample_weight: Any = None,
) -> dict[str, float]:
    """Compute the usual metrics of class probabilities and of the classes predicted from them.

    Rows whose truth is an inner node are excluded from the accuracy and the mean reciprocal rank.  For the
    other parameters and errors see :func:`log_loss`.

    Parameters
    ----------
    taxonomy : Taxonomy or None, default=None
        A tree in which every class is a node.
    y_pred : array-like of shape (n,) or None, default=None
        Predicted classes, by default the most probable ones.

    Returns
    -------
    dict of str to float
        "accuracy", "mean_reciprocal_rank" and "log_loss", with a taxonomy also "taxonomic_loss" and
        "parent_accuracy".  NaN where a metric is undefined.

    Examples
    --------
    >>> from labelweave.metrics import class_summary
    >>> class_summary(["a", "b"], [[0.5, 0.5], [0.5, 0.5]], ["a", "b"])["accuracy"]
    0.5
    """
    given = _classes.read_class_rows(y_true, probabilities, classes, sample_weight, taxonomy)
    predicted = _predicted_codes(given, y_pred)
    known = given.codes >= 0
    exact = given.where(known)
    right = given.codes[known] == predicted[known]
    table = {
        "accuracy": float(np.average(right, weights=exact.weights)) if len(right) else np.nan,
        "mean_reciprocal_rank": _inputs.mean_of_defined(reciprocal_ranks(exact), exact.weights),
        "log_loss": class_log_loss(given, taxonomy),
    }
    if taxonomy is None:
        return table
    names, weights = [given.classes[code] for code in predicted], given.weights
    return table | {
        "taxonomic_loss": taxonomic_loss(given.values, names, taxonomy, sample_weight=weights),
        "parent_accuracy": parent_accuracy(given.values, names, taxonomy, sample_weight=weights),
    }


def _predicted_codes(given: ClassRows, y_pred: Any) -> Codes:
    if y_pred is None:
        return given.per_row(lambda block, _: block.argmax(axis=1))
    values = _classes.read_predicted(y_pred, len(given.table))
    codes = _classes.class_codes(values, given.classes)
    other = np.flatnonzero(codes == _classes.NOT_A_CLASS)
    if len(other):
        raise ValueError(
            f"y_pred at row {other[0]} is {values[other[0]]!r}, which is not among the {len(given.classes)} "
            "classes; pass one of them."
        )
    return codes[given.numbers]
