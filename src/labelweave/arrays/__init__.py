"""Dense linear algebra in fixed panels: the same bits for any number of threads."""

from labelweave.arrays.cholesky import CholeskyFactor
from labelweave.arrays.workers import Workers, panels

__all__ = ["CholeskyFactor", "Workers", "panels"]
