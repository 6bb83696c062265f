"""Kernels from user input: a name, a kernel object or a function, which becomes a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.features.kernels.distances import LaplacianKernel, RBFKernel
from labelweave.features.kernels.dot_products import CosineKernel, LinearKernel, PolynomialKernel
from labelweave.features.kernels.kernel import Kernel, value_type
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import checked_csr, panels
from labelweave.model_files import storable


def make_kernel(kernel: str | Kernel | Callable[[Any, Any], Any], gamma: float | str = "scale") -> Kernel:
    """Make a kernel from its name or a function, or return one.

    Parameters
    ----------
    kernel : str, Kernel or callable
        "rbf", "poly", "laplacian", "cosine" or "linear"; a kernel, returned as it is; or a function of two
        arrays of rows, see :class:`CallableKernel`.
    gamma : float, "scale" or "auto", default="scale"
        For the names "rbf", "poly" and "laplacian".

    Returns
    -------
    Kernel
        The kernel; its parameters are validated on use.

    Raises
    ------
    ValueError
        If the name is unknown, or the argument is none of these.
    """
    if isinstance(kernel, Kernel):
        return kernel
    named: dict[str, Callable[[], Kernel]] = {
        "rbf": lambda: RBFKernel(gamma),
        "poly": lambda: PolynomialKernel(gamma=gamma),
        "laplacian": lambda: LaplacianKernel(gamma),
        "cosine": CosineKernel,
        "linear": LinearKernel,
    }
    if isinstance(kernel, str) and kernel in named:
        return named[kernel]()
    if isinstance(kernel, type) or not callable(kernel):  # a class is callable, but not a kernel
        raise ValueError(
            f"kernel={_shown(kernel)} is unknown; pass one of {', '.join(map(repr, named))}, "
            "a kernel object such as RBFKernel(), or a function of two arrays of rows."
        )
    return CallableKernel(kernel)


def _shown(kernel: Any) -> str:
    return f"{kernel.__name__} (a class)" if isinstance(kernel, type) else repr(kernel)


_DIAGONAL_ROWS = 64


@storable("CallableKernel")  # registered, so that to_state explains why it cannot be stored
class CallableKernel(Kernel):
    """The values of a function, which must be symmetric and positive semi-definite.

    Parameters
    ----------
    function : callable
        ``function(X_rows, X_columns)`` gets two arrays or CSR arrays of shapes (m, d) and
        (n, d) and returns the kernel between their rows, shape (m, n).
    """

    _may_overflow = False  # the function's values are checked first
    _is_code_of_users = True

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function

    @property
    def _name(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def to_state(self) -> NoReturn:
        """Raise TypeError, since a model file holds no code; see :meth:`Kernel.to_state`."""
        raise TypeError(
            f"A kernel that is a function ({self._name}) cannot be stored in a model file; "
            "use a kernel object, such as RBFKernel(gamma=0.5), or your own subclass of Kernel "
            "registered with @storable."
        )

    def _check_parameters(self) -> None:
        if not callable(self.function) or isinstance(self.function, type):
            raise ValueError(
                f"CallableKernel has function={self.function!r}; pass a function of two arrays of rows."
            )

    def _block(self, rows: FeatureMatrix, columns: FeatureMatrix) -> Array:
        due = (len(rows), len(columns))
        if 0 in due:
            return np.empty(due, dtype=value_type(rows, columns))
        given = self.function(rows.data, columns.data)
        if sp.issparse(given):
            given = checked_csr(given, f"What the kernel function {self._name} returned").toarray()
        table = np.asarray(given)
        self._check_table(table, due)
        # copied, since kernels are multiplied and added in place
        values = np.array(table, dtype=value_type(rows, columns), order="C")
        self._refuse_non_finite(values)
        return values

    def _diagonal(self, rows: FeatureMatrix) -> Array:
        values = np.empty(len(rows))
        for some in panels(len(rows), _DIAGONAL_ROWS):
            few = rows.rows(some)
            values[some] = self._block(few, few).diagonal()
        return values

    def _check_table(self, table: Array, due: tuple[int, int]) -> None:
        if table.dtype.kind not in "biuf":
            raise ValueError(
                f"The kernel function {self._name} returned entries of type {table.dtype}; "
                f"it must return real numbers, an array of shape {due}."
            )
        if table.shape != due:
            raise ValueError(
                f"The kernel function {self._name} returned shape {table.shape} for {due[0]} and "
                f"{due[1]} rows; it must return shape {due}, one value per pair of rows."
            )

    def _refuse_non_finite(self, values: Array) -> None:
        if np.isfinite(values.sum()) or np.isfinite(values).all():
            return
        row, column = (int(k) for k in np.argwhere(~np.isfinite(values))[0])
        raise ValueError(
            f"The kernel function {self._name} returned {values[row, column]} at row {row}, "
            f"column {column}; its values must be finite numbers in {values.dtype}."
        )
