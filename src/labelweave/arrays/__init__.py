"""Dense linear algebra of any array library, for NumPy in panels: the same bits for any number of threads."""

from labelweave.arrays.linear_algebra import CholeskyFactor, RowPanels, Workers, namespace, panels
from labelweave.arrays.tables import aligned_empty, largest_columns, ratios

__all__ = [
    "CholeskyFactor",
    "RowPanels",
    "Workers",
    "aligned_empty",
    "largest_columns",
    "namespace",
    "panels",
    "ratios",
]
