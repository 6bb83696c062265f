"""Data, loss and structure put together: objectives with the methods their solvers ask for."""

from labelweave.problems.block_margins import BlockMargins, holds_matrix
from labelweave.problems.coupled_margins import make_margin_dual
from labelweave.problems.gram_margins import MarginBox
from labelweave.problems.make_gram_margins import feature_margins, kernel_margins, sum_margins
from labelweave.problems.margin_blocks import KeptWeights, MarginBlocks
from labelweave.problems.margin_dual import MarginData
from labelweave.problems.memory_plan import feature_bytes
from labelweave.problems.resources import Resources
from labelweave.problems.working_set_margins import WorkingSetMargins

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
