"""Dense linear algebra in fixed panels: the same bits for any number of threads."""

from labelweave.arrays.cholesky import CholeskyFactor
from labelweave.arrays.tables import aligned_empty, largest_columns, ratios
from labelweave.arrays.workers import RowPanels, Workers, panels

__all__ = [
    "CholeskyFactor",
    "RowPanels",
    "Workers",
    "aligned_empty",
    "largest_columns",
    "panels",
    "ratios",
]
