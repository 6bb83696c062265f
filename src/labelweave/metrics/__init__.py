"""Metrics for label sets, rankings and classes; all of them ignore unobserved entries."""

from labelweave.metrics.class_metrics import (
    column_accuracy_score,
    error_reject_curve,
    harmonic_mean_accuracy,
    mean_reciprocal_rank,
    parent_accuracy,
    taxonomic_loss,
)
from labelweave.metrics.hierarchies import (
    depth_table,
    fmax_score,
    h_loss,
    hierarchical_f1_score,
    hierarchical_precision_score,
    hierarchical_recall_score,
    information_content,
    smin_loss,
)
from labelweave.metrics.label_sets import (
    f1_score,
    hamming_loss,
    precision_score,
    recall_score,
    subset_accuracy,
)
from labelweave.metrics.probabilities import expected_calibration_error, log_loss
from labelweave.metrics.rankings import (
    average_auc,
    average_precision_score,
    coverage_error,
    label_ranking_average_precision,
    ranking_loss,
)
from labelweave.metrics.scorers import get_scorer, get_scorer_names
from labelweave.metrics.summary import class_summary, score_table
from labelweave.metrics.top_k import ndcg_at_k, precision_at_k, propensities, propensity_scored_precision_at_k

__all__ = [
    "average_auc",
    "average_precision_score",
    "class_summary",
    "column_accuracy_score",
    "coverage_error",
    "depth_table",
    "error_reject_curve",
    "expected_calibration_error",
    "f1_score",
    "fmax_score",
    "get_scorer",
    "get_scorer_names",
    "h_loss",
    "hamming_loss",
    "harmonic_mean_accuracy",
    "hierarchical_f1_score",
    "hierarchical_precision_score",
    "hierarchical_recall_score",
    "information_content",
    "label_ranking_average_precision",
    "log_loss",
    "mean_reciprocal_rank",
    "ndcg_at_k",
    "parent_accuracy",
    "precision_at_k",
    "precision_score",
    "propensities",
    "propensity_scored_precision_at_k",
    "ranking_loss",
    "recall_score",
    "score_table",
    "smin_loss",
    "subset_accuracy",
    "taxonomic_loss",
]
