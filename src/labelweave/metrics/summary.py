"""The usual metrics of one model in one table, for reports and the command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.labels import LabelMatrix
from labelweave.metrics._inputs import (
    Scores,
    check_k,
    mean_of_defined,
    read_predictions,
    read_scores,
    read_targets,
)
from labelweave.metrics._score_groups import per_line
from labelweave.metrics._top_labels import top_hits
from labelweave.metrics.area_under_curve import area_under_curve, average_auc
from labelweave.metrics.label_sets import f1_score, hamming_loss, subset_accuracy
from labelweave.metrics.ranking import average_precision, coverage, pairs_out_of_order
from labelweave.metrics.top_k import row_gains, row_precisions

__all__ = ["score_table"]


def score_table(
    Y_true: Any, scores: Any | None = None, Y_pred: Any | None = None, k: Iterable[int] = (1, 3, 5)
) -> dict[str, float]:
    """Collect the usual metrics of scores, of predicted label sets, or of both.

    Unobserved entries are never counted; each metric states its own rule.

    Parameters
    ----------
    Y_true : LabelMatrix, DataFrame, sparse matrix or array-like of shape (n, L)
        True labels, 0/1 or -1/1, NaN where not observed.
    scores : DataFrame, sparse matrix or array-like of shape (n, L) or None, default=None
        The higher the better; needed for the ranking metrics.
    Y_pred : DataFrame, sparse matrix or array-like of shape (n, L) or None, default=None
        Predicted labels; by default those with a score above 0.
    k : iterable of int, default=(1, 3, 5)
        For precision and discounted gain at k; those above L are left out.

    Returns
    -------
    dict of str to float
        From the label sets "hamming_loss", "subset_accuracy", "micro_f1",
        "macro_f1" and "example_f1"; with scores also "precision@1", "ndcg@1" and
        so on for each k, "auc_label", "auc_example", "ranking_loss",
        "coverage_error" and "label_ranking_average_precision".  NaN where no
        label or example defines the metric.

    Raises
    ------
    ValueError
        If neither scores nor Y_pred is given, the shapes disagree, an entry of
        either is NaN, a k is not a positive whole number or nothing was observed.
    """
    if scores is None and Y_pred is None:
        raise ValueError("Neither scores nor Y_pred was given; give at least one of them.")
    targets = read_targets(Y_true)
    if scores is None:
        return _set_table(targets, Y_pred)
    values = read_scores(scores, targets)
    predicted = _positive_scores(values) if Y_pred is None else Y_pred
    return _set_table(targets, predicted) | _top_table(targets, values, k) | _rank_table(targets, values)


def _positive_scores(scores: Scores) -> Any:
    return scores > 0 if not sp.issparse(scores) else (scores > 0).astype(np.int8)


def _set_table(targets: LabelMatrix, Y_pred: Any) -> dict[str, float]:
    Y_pred = read_predictions(Y_pred, targets)
    return {
        "hamming_loss": hamming_loss(targets, Y_pred),
        "subset_accuracy": subset_accuracy(targets, Y_pred),
        "micro_f1": float(f1_score(targets, Y_pred, average="micro")),
        "macro_f1": float(f1_score(targets, Y_pred, average="macro")),
        "example_f1": float(f1_score(targets, Y_pred, average="example")),
    }


def _top_table(targets: LabelMatrix, scores: Scores, k: Iterable[int]) -> dict[str, float]:
    sizes = [check_k(size, targets) for size in k if not _exceeds(size, targets.n_labels)]
    if not sizes:
        return {}
    hits = top_hits(targets, scores, max(sizes))
    weights = np.ones(len(targets))
    table = {f"precision@{j}": mean_of_defined(row_precisions(targets, hits, j), weights) for j in sizes}
    return table | {f"ndcg@{j}": mean_of_defined(row_gains(targets, hits, j), weights) for j in sizes}


def _exceeds(size: Any, n_labels: int) -> bool:
    return isinstance(size, (int, np.integer)) and int(size) > n_labels


def _rank_table(targets: LabelMatrix, scores: Scores) -> dict[str, float]:
    """Compute the metrics of whole rankings; those of examples share one sort."""
    statistics = (area_under_curve, pairs_out_of_order, coverage, average_precision)
    by_row = per_line(targets, scores, *statistics)
    names = ("auc_example", "ranking_loss", "coverage_error", "label_ranking_average_precision")
    weights = np.ones(len(targets))
    means = {name: mean_of_defined(row, weights) for name, row in zip(names, by_row, strict=True)}
    return {"auc_label": average_auc(targets, scores, average="label")} | means
