"""Several models on the same folds: all metrics, times, sizes, and what their differences are worth."""

from labelweave.decisions.comparison.compare import compare
from labelweave.decisions.comparison.outcome import Comparison

__all__ = ["Comparison", "compare"]
