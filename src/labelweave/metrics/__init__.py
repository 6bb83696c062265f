"""Metrics for label sets, rankings and classes; all of them ignore unobserved entries."""

from labelweave.foundation.views import exported
from labelweave.metrics.class_metrics import column_accuracy_score as column_accuracy_score
from labelweave.metrics.class_metrics import error_reject_curve as error_reject_curve
from labelweave.metrics.class_metrics import harmonic_mean_accuracy as harmonic_mean_accuracy
from labelweave.metrics.class_metrics import mean_reciprocal_rank as mean_reciprocal_rank
from labelweave.metrics.class_metrics import parent_accuracy as parent_accuracy
from labelweave.metrics.class_metrics import taxonomic_loss as taxonomic_loss
from labelweave.metrics.hierarchies import depth_table as depth_table
from labelweave.metrics.hierarchies import fmax_score as fmax_score
from labelweave.metrics.hierarchies import h_loss as h_loss
from labelweave.metrics.hierarchies import hierarchical_f1_score as hierarchical_f1_score
from labelweave.metrics.hierarchies import hierarchical_precision_score as hierarchical_precision_score
from labelweave.metrics.hierarchies import hierarchical_recall_score as hierarchical_recall_score
from labelweave.metrics.hierarchies import information_content as information_content
from labelweave.metrics.hierarchies import smin_loss as smin_loss
from labelweave.metrics.label_sets import f1_score as f1_score
from labelweave.metrics.label_sets import hamming_loss as hamming_loss
from labelweave.metrics.label_sets import precision_score as precision_score
from labelweave.metrics.label_sets import recall_score as recall_score
from labelweave.metrics.label_sets import subset_accuracy as subset_accuracy
from labelweave.metrics.probabilities import expected_calibration_error as expected_calibration_error
from labelweave.metrics.probabilities import log_loss as log_loss
from labelweave.metrics.rankings import average_auc as average_auc
from labelweave.metrics.rankings import average_precision_score as average_precision_score
from labelweave.metrics.rankings import coverage_error as coverage_error
from labelweave.metrics.rankings import label_ranking_average_precision as label_ranking_average_precision
from labelweave.metrics.rankings import ranking_loss as ranking_loss
from labelweave.metrics.scorers import get_scorer as get_scorer
from labelweave.metrics.scorers import get_scorer_names as get_scorer_names
from labelweave.metrics.summary import class_summary as class_summary
from labelweave.metrics.summary import score_table as score_table
from labelweave.metrics.top_k import ndcg_at_k as ndcg_at_k
from labelweave.metrics.top_k import precision_at_k as precision_at_k
from labelweave.metrics.top_k import propensities as propensities
from labelweave.metrics.top_k import propensity_scored_precision_at_k as propensity_scored_precision_at_k

__all__ = list(exported(__name__))
