"""Optimization problems: data, loss and structure combined, with the methods that solvers need."""

from labelweave.problems.kernel_row_margins import (
    BlockMargins,
    MarginBox,
    Resources,
    WorkingSetMargins,
    holds_matrix,
)
from labelweave.problems.make_gram_margins import feature_bytes, feature_margins, kernel_margins, sum_margins
from labelweave.problems.margin_blocks import KeptWeights, MarginBlocks
from labelweave.problems.margin_dual import MarginData
from labelweave.problems.swept_margins import make_margin_dual

__all__ = [
    "BlockMargins",
    "KeptWeights",
    "MarginBlocks",
    "MarginBox",
    "MarginData",
    "Resources",
    "WorkingSetMargins",
    "feature_bytes",
    "feature_margins",
    "holds_matrix",
    "kernel_margins",
    "make_margin_dual",
    "sum_margins",
]
