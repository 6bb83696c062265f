"""Optimization problems: data, loss and structure combined, with the methods that solvers need."""

from labelweave.problems.kernel_row_margins import BlockMargins as BlockMargins
from labelweave.problems.kernel_row_margins import MarginBox as MarginBox
from labelweave.problems.kernel_row_margins import Resources as Resources
from labelweave.problems.kernel_row_margins import WorkingSetMargins as WorkingSetMargins
from labelweave.problems.kernel_row_margins import holds_matrix as holds_matrix
from labelweave.problems.make_gram_margins import feature_bytes as feature_bytes
from labelweave.problems.make_gram_margins import feature_margins as feature_margins
from labelweave.problems.make_gram_margins import kernel_margins as kernel_margins
from labelweave.problems.make_gram_margins import sum_margins as sum_margins
from labelweave.problems.margin_blocks import KeptWeights as KeptWeights
from labelweave.problems.margin_blocks import MarginBlocks as MarginBlocks
from labelweave.problems.margin_dual import MarginData as MarginData
from labelweave.problems.swept_margins import make_margin_dual as make_margin_dual
