"""Several models on the same folds: all metrics, times, sizes, and what their differences are worth."""

from labelweave.comparison.compare import compare
from labelweave.comparison.outcome import Comparison

__all__ = ["Comparison", "compare"]
