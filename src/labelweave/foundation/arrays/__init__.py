"""Dense linear algebra for any array library; with NumPy in panels: same bits for any number of threads."""

from labelweave.foundation.arrays.linear_algebra import HOME as HOME
from labelweave.foundation.arrays.linear_algebra import RowPanels as RowPanels
from labelweave.foundation.arrays.linear_algebra import Workers as Workers
from labelweave.foundation.arrays.linear_algebra import is_collection as is_collection
from labelweave.foundation.arrays.linear_algebra import namespace as namespace
from labelweave.foundation.arrays.linear_algebra import numbers_of as numbers_of
from labelweave.foundation.arrays.linear_algebra import panels as panels
from labelweave.foundation.arrays.linear_algebra import read_row_weights as read_row_weights
from labelweave.foundation.arrays.linear_algebra import refuse_lazy as refuse_lazy
from labelweave.foundation.arrays.linear_algebra import unmasked as unmasked
from labelweave.foundation.arrays.sparse_structure import check_sparse as check_sparse
from labelweave.foundation.arrays.sparse_structure import checked_csr as checked_csr
from labelweave.foundation.arrays.sparse_structure import from_gaps as from_gaps
from labelweave.foundation.arrays.sparse_structure import to_gaps as to_gaps
from labelweave.foundation.arrays.tables import CholeskyFactor as CholeskyFactor
from labelweave.foundation.arrays.tables import aligned_empty as aligned_empty
from labelweave.foundation.arrays.tables import largest_columns as largest_columns
from labelweave.foundation.arrays.tables import ratios as ratios
