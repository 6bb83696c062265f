"""Data, loss and structure put together: objectives with the methods their solvers ask for."""

from labelweave.problems.gram_margins import GramMargins, MarginBox
from labelweave.problems.make_gram_margins import Resources, feature_margins, kernel_margins
from labelweave.problems.make_margin_dual import make_margin_dual
from labelweave.problems.margin_dual import MarginData, MarginDual
from labelweave.problems.memory_plan import feature_bytes

__all__ = [
    "GramMargins",
    "MarginBox",
    "MarginData",
    "MarginDual",
    "Resources",
    "feature_bytes",
    "feature_margins",
    "kernel_margins",
    "make_margin_dual",
]
