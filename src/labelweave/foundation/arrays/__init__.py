"""Dense linear algebra for any array library; with NumPy in panels: same bits for any number of threads."""

from labelweave.foundation.arrays.linear_algebra import (
    HOME,
    RowPanels,
    Workers,
    is_collection,
    namespace,
    numbers_of,
    panels,
    refuse_lazy,
    unmasked,
)
from labelweave.foundation.arrays.sparse_structure import check_sparse, checked_csr, from_gaps, to_gaps
from labelweave.foundation.arrays.tables import CholeskyFactor, aligned_empty, largest_columns, ratios

__all__ = [
    "HOME",
    "CholeskyFactor",
    "RowPanels",
    "Workers",
    "aligned_empty",
    "check_sparse",
    "checked_csr",
    "from_gaps",
    "is_collection",
    "largest_columns",
    "namespace",
    "numbers_of",
    "panels",
    "ratios",
    "refuse_lazy",
    "to_gaps",
    "unmasked",
]
