"""Dense linear algebra in fixed panels: the same bits for any number of threads."""

from labelweave.arrays.cholesky import CholeskyFactor
from labelweave.arrays.row_panels import RowPanels
from labelweave.arrays.tables import aligned_empty
from labelweave.arrays.workers import Workers, panels

__all__ = ["CholeskyFactor", "RowPanels", "Workers", "aligned_empty", "panels"]
