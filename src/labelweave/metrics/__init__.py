"""Metrics for label sets and rankings; in every one an unobserved entry is never counted."""

from labelweave.metrics.area_under_curve import average_auc
from labelweave.metrics.label_sets import (
    f1_score,
    hamming_loss,
    precision_score,
    recall_score,
    subset_accuracy,
)
from labelweave.metrics.ranking import coverage_error, label_ranking_average_precision, ranking_loss
from labelweave.metrics.summary import score_table
from labelweave.metrics.top_k import (
    ndcg_at_k,
    precision_at_k,
    propensities,
    propensity_scored_precision_at_k,
)

__all__ = [
    "average_auc",
    "coverage_error",
    "f1_score",
    "hamming_loss",
    "label_ranking_average_precision",
    "ndcg_at_k",
    "precision_at_k",
    "precision_score",
    "propensities",
    "propensity_scored_precision_at_k",
    "ranking_loss",
    "recall_score",
    "score_table",
    "subset_accuracy",
]
