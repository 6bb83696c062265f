"""Kernels from user input: a name, a kernel object or a function, which becomes a kernel."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.features.kernels import distances
from labelweave.features.kernels.distances import GammaKernel, LaplacianKernel, RBFKernel
from labelweave.features.kernels.kernel import Kernel, check_not_negative, value_type
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import checked_csr, namespace, panels
from labelweave.foundation.arrays.linear_algebra import beside, copied, is_foreign, set_diagonal, to_numpy
from labelweave.model_files import storable
from labelweave.model_files.schema import WIDTH, Number, count

_DEGREE = count(least=1, most=100)


@storable("LinearKernel", {})
class LinearKernel(Kernel):
    """The dot product ``<x, x'>``."""

    def _block(self, rows: FeatureMatrix, columns: FeatureMatrix) -> Array:
        return distances.dot_products(rows, columns, value_type(rows, columns))

    def _diagonal(self, rows: FeatureMatrix) -> Array:
        return rows.squared_norms()

    def _explicit_features(self, features: FeatureMatrix) -> FeatureMatrix:
        return features


@storable("CosineKernel", {})
class CosineKernel(Kernel):
    """The cosine of the angle between two rows; 0 if one of them is zero.

    Blocks also need memory for a copy of the features.
    """

    _may_overflow = False

    def _block(self, rows: FeatureMatrix, columns: FeatureMatrix) -> Array:
        left = _of_length_one(rows)
        if not distances.are_same(rows, columns):
            return distances.dot_products(left, _of_length_one(columns), value_type(rows, columns))
        values = distances.dot_products(left, left, value_type(rows, rows))
        set_diagonal(values, self._diagonal(rows))
        return values

    def _diagonal(self, rows: FeatureMatrix) -> Array:
        return np.sign(_largest_sizes(rows))

    def _explicit_features(self, features: FeatureMatrix) -> FeatureMatrix:
        return _of_length_one(features)


def _largest_sizes(features: FeatureMatrix) -> Array:
    table, sizes = features.data, np.zeros(len(features))
    if is_foreign(table):
        xp = namespace(table)
        sizes = to_numpy(xp.max(xp.abs(table), axis=1)).astype(np.float64)
    elif features.is_sparse:
        has_entries = np.diff(table.indptr) > 0
        begins = table.indptr[:-1][has_entries]
        sizes[has_entries] = np.maximum.reduceat(np.abs(table.data), begins)
    else:
        np.maximum(table.max(axis=1, initial=0.0), -table.min(axis=1, initial=0.0), out=sizes)
    return sizes


def _of_length_one(features: FeatureMatrix) -> FeatureMatrix:
    table = features.data
    made = FeatureMatrix._unchecked(table.copy() if features.is_sparse else copied(table), features.names)

    def divide(by: Array) -> None:
        entries = made.data.data if made.is_sparse else made.data
        of_entries = np.repeat(by, np.diff(made.data.indptr)) if made.is_sparse else by[:, None]
        entries /= beside(of_entries, entries)

    # first by powers of two, which is exact, so that no square underflows or overflows
    divide(np.ldexp(1.0, np.frexp(_largest_sizes(made))[1] - 1))
    lengths = np.sqrt(made.squared_norms())
    divide(np.where(lengths > 0, lengths, 1.0))
    return made


@storable("PolynomialKernel", {"degree": _DEGREE, "gamma": WIDTH, "coef0": Number(0)})
class PolynomialKernel(GammaKernel):
    """``(gamma <x, x'> + coef0)^degree``.

    Parameters
    ----------
    degree : int, default=3
        The degree, from 1 to 100.
    gamma : float, "scale" or "auto", default="scale"
        The factor of the dot product, > 0; see :class:`RBFKernel` for "scale" and "auto".
    coef0 : float, default=1.0
        The added constant, >= 0; with a negative one the kernel is not positive semi-definite.
    """

    def __init__(self, degree: int = 3, gamma: float | str = "scale", coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        degree: Any = self.degree
        is_whole = isinstance(degree, Integral) and not isinstance(degree, bool)
        if not is_whole or not 1 <= int(degree) <= _DEGREE.most:
            raise ParameterError(
                f"{type(self).__name__} has `degree={degree!r}`; pass an integer from 1 to {_DEGREE.most:g}."
            )
        check_not_negative(self, "coef0")

    def _parameter_names(self) -> list[str]:
        return ["gamma", "coef0"] if self.coef0 > 0 else ["gamma"]

    def _block(self, rows: FeatureMatrix, columns: FeatureMatrix) -> Array:
        gamma, coef0, degree = self._gamma(), float(self.coef0), int(self.degree)
        values = distances.dot_products(rows, columns, value_type(rows, columns))
        for some in distances.cache_slices(values):
            part = values[some, ...]
            part *= gamma
            part += coef0
            _raise(part, degree)
        return values

    def _diagonal(self, rows: FeatureMatrix) -> Array:
        return (self._gamma() * rows.squared_norms() + float(self.coef0)) ** int(self.degree)

    def _derivatives(self, rows: FeatureMatrix, columns: FeatureMatrix) -> dict[str, Array]:
        """With b = gamma <x, x'> + coef0: ``degree b^(degree - 1)`` times each term of b."""
        coef0, degree = float(self.coef0), int(self.degree)
        term = distances.dot_products(rows, columns, value_type(rows, columns))
        term *= self._gamma()
        by_constant = term + coef0
        for some in distances.cache_slices(by_constant):
            _raise(by_constant[some, ...], degree - 1)
        by_constant *= degree
        term *= by_constant
        by_constant *= coef0
        return {"gamma": term, "coef0": by_constant} if coef0 > 0 else {"gamma": term}


def _raise(values: Array, power: int) -> None:
    """Raise to a power >= 0 in place, by repeated squaring from its highest bit."""
    if power == 0:
        values[...] = 1.0
        return
    base = copied(values) if power & (power - 1) else values
    for bit in bin(power)[3:]:
        values *= values
        if bit == "1":
            values *= base


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
