"""Label noise: which labels are wrong, how often, and their true values."""

from labelweave.app.noise.annotators import CombinedAnswers, combine_annotators
from labelweave.app.noise.label_errors import LabelErrors, Reason, find_label_errors
from labelweave.labels.flip_rates import FlipRates

__all__ = ["CombinedAnswers", "FlipRates", "LabelErrors", "Reason", "combine_annotators", "find_label_errors"]
