"""The base class of kernels; sums, products and multiples of kernels; the constant kernel.

The public methods of :class:`Kernel` validate their arguments; the hooks of subclasses, ``_block``,
``_diagonal`` and the rest, do not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from numbers import Real
from operator import iadd, imul
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone

from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.array_types import Array
from labelweave.foundation.arrays import namespace, numbers_of
from labelweave.foundation.arrays.homes import refuse
from labelweave.foundation.arrays.linear_algebra import HOME, beside, dot, numpy_type
from labelweave.model_files import StoredParameters, storable
from labelweave.model_files.schema import LARGEST, LARGEST_WIDTH, Made, Number


class Kernel(StoredParameters, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn's classes carry no types
    """A positive semi-definite function of two rows of features; parameters are validated on use.

    Kernels can be added and multiplied with each other and with numbers >= 0:
    ``2.0 * RBFKernel(gamma=0.5) + LinearKernel()``.
    """

    # arrays and NumPy numbers defer `array * kernel` to the methods below
    __array_ufunc__: ClassVar[None] = None

    # whether values may grow with the features and overflow
    _may_overflow: ClassVar[bool] = True
    _is_code_of_users: ClassVar[bool] = False

    def block(self, rows: FeatureMatrix, columns: FeatureMatrix) -> Array:
        """Compute the kernel between rows and columns; this needs memory for about two such arrays.

        Parameters
        ----------
        rows, columns : FeatureMatrix of m and n rows
            The rows and columns of the result; one object for a Gram matrix.

        Returns
        -------
        ndarray of shape (m, n)
            The values, float32 if both features are float32 and float64 otherwise.

        Raises
        ------
        ValueError
            If a parameter is invalid or not yet estimated from data, the numbers of
            features differ, or a value is too large for the result's type.
        """
        self._check_at_home()
        _check_pair(rows, columns)
        with np.errstate(over="ignore", invalid="ignore"):  # the check below names the kernel
            return self._checked(self._block(rows, columns), len(rows), len(columns))

    def diagonal(self, rows: FeatureMatrix) -> npt.NDArray[np.float64]:
        """Compute the kernel of every row with itself, (n,) in float64; see :meth:`block`."""
        self._check_at_home()
        _check_pair(rows, rows)
        with np.errstate(over="ignore", invalid="ignore"):
            return self._checked(np.asarray(self._diagonal(rows), dtype=np.float64), len(rows))

    def parameter_names(self) -> list[str]:
        """Return the names of the continuous positive parameters, which gradients can learn.

        Returns
        -------
        list of str
            Names as in ``get_params``, such as ``left__gamma``.
        """
        self._check_parameters()
        return self._parameter_names()

    def derivatives(self, rows: FeatureMatrix, columns: FeatureMatrix) -> dict[str, Array]:
        """Differentiate :meth:`block` with respect to the logarithm of every continuous parameter.

        Returns an array like the block per name of :meth:`parameter_names`, in that order; see :meth:`block`.
        """
        self._check_at_home()
        _check_pair(rows, columns)
        with np.errstate(over="ignore", invalid="ignore"):
            found = self._derivatives(rows, columns)
            names, sizes = self._parameter_names(), (len(rows), len(columns))
            return {name: self._checked(found[name], *sizes) for name in names}

    def gradient(self, rows: FeatureMatrix, columns: FeatureMatrix, weights: Array) -> Array:
        """Sum the derivatives, each entry times its weight (m, n): shape (p,); see :meth:`derivatives`."""
        found = self.derivatives(rows, columns)
        return np.array([dot(derivative, weights) for derivative in found.values()])

    def log_parameters(self) -> npt.NDArray[np.float64]:
        """Return the logarithms of the continuous parameters, shape (p,); see :meth:`parameter_names`.

        Raises
        ------
        ValueError
            If one of them is not yet estimated from data.
        """
        self._check_parameters()
        return np.asarray(np.log(np.array(self._parameter_values(), dtype=np.float64)))

    def with_log_parameters(self, theta: npt.ArrayLike) -> Self:
        """Return the same kernel with other continuous parameters.

        Parameters
        ----------
        theta : array-like of shape (p,)
            The logarithms of the parameters, in the order of :meth:`parameter_names`.

        Returns
        -------
        Kernel
            A new kernel.

        Raises
        ------
        ValueError
            If their number differs from the number of parameters.
        """
        names, logarithms = self.parameter_names(), numbers_of(theta, "theta").astype(np.float64)
        if logarithms.shape != (len(names),):
            raise ValueError(
                f"theta has shape {logarithms.shape}, but the kernel has {len(names)} continuous parameters "
                f"({', '.join(names) or 'none'}); pass one number per parameter."
            )
        with np.errstate(over="ignore"):
            values = [float(value) for value in np.exp(logarithms)]
        return self._with_values(dict(zip(names, values, strict=True)))

    def resolved(self, features: FeatureMatrix) -> Kernel:
        """Replace parameters such as "scale" by numbers estimated from data.

        Parameters
        ----------
        features : FeatureMatrix
            The training rows.

        Returns
        -------
        Kernel
            A new kernel, independent of this one.
        """
        self._check_parameters()
        return self._resolved(features)

    def _check_at_home(self) -> None:
        self._check_parameters()
        if HOME.get() is not None and (other := part_of_others(self)) is not None:
            refuse(type(other).__name__, "use a kernel of labelweave.features, or X as a NumPy array")

    def explicit_features(self, features: FeatureMatrix) -> FeatureMatrix | None:
        """Return features whose dot products are the kernel, if they are cheap.

        Parameters
        ----------
        features : FeatureMatrix of n rows
            The rows.

        Returns
        -------
        FeatureMatrix of n rows, or None
            The features; ``None`` if the kernel has no cheap ones.
        """
        self._check_at_home()
        return features.transformed(self._explicit_features)

    def __add__(self, other: Any) -> Kernel:
        term = _as_term(other)
        return NotImplemented if term is None else SumKernel(self, term)

    def __radd__(self, other: Any) -> Kernel:
        term = _as_term(other)
        return NotImplemented if term is None else term + self

    def __mul__(self, other: Any) -> Kernel:
        return ProductKernel(self, other) if isinstance(other, Kernel) else self.__rmul__(other)

    def __rmul__(self, other: Any) -> Kernel:
        return ScaledKernel(self, cast(float, other)) if isinstance(other, Real) else NotImplemented

    @abstractmethod
    def _block(self, rows: FeatureMatrix, columns: FeatureMatrix) -> Array:
        """Compute a new array of the values, of the type :func:`value_type`."""

    @abstractmethod
    def _diagonal(self, rows: FeatureMatrix) -> Array: ...

    def _check_parameters(self) -> None:
        """Raise a ValueError for an invalid parameter."""

    def _parameter_names(self) -> list[str]:
        return []

    def _parameter_values(self) -> list[float]:
        parameters = self.get_params()
        return [number_of(self, name, parameters[name]) for name in self._parameter_names()]

    def _with_values(self, values: dict[str, float]) -> Self:
        other: Self = clone(self)
        other.set_params(**values)
        return other

    def _derivatives(self, rows: FeatureMatrix, columns: FeatureMatrix) -> dict[str, Array]:
        """Compute new arrays, one per name in ``_parameter_names``."""
        return {}

    def _resolved(self, features: FeatureMatrix) -> Kernel:
        return copy(self)

    def _explicit_features(self, features: FeatureMatrix) -> FeatureMatrix | None:
        return None

    def _checked(self, values: Array, *shape: int) -> Array:
        found = getattr(values, "shape", type(values).__name__)
        if found != shape:
            raise ValueError(f"{type(self).__name__} returned {found}; it must return an array {shape}.")
        # a finite sum has finite terms; an infinite one may only have overflowed itself
        xp = namespace(values)
        if self._may_overflow and not xp.isfinite(xp.sum(values)) and not xp.all(xp.isfinite(values)):
            raise ValueError(
                f"{type(self).__name__} has values too large for {values.dtype}; "
                "scale the features down, for example to rows of length 1."
            )
        return values


def part_of_others(kernel: Kernel) -> Kernel | None:
    """Return a part that is not of this library, whose own kernels are positive semi-definite."""
    parts = (part for part in (kernel, *kernel.get_params().values()) if isinstance(part, Kernel))
    return next(
        (part for part in parts
         if part._is_code_of_users or not type(part).__module__.startswith("labelweave.")), None
    )  # fmt: skip


def value_type(rows: FeatureMatrix, columns: FeatureMatrix) -> type[np.floating[Any]]:
    """Return the type of the kernel's values: float32 if both features are float32."""
    single = all(numpy_type(part.data) == np.float32 for part in (rows, columns))
    return np.float32 if single else np.float64


def _as_term(other: Any) -> Kernel | None:
    if isinstance(other, Kernel):
        return other
    return ConstantKernel(cast(float, other)) if isinstance(other, Real) else None


def _check_pair(rows: Any, columns: Any) -> None:
    for features in (rows, columns):
        if not isinstance(features, FeatureMatrix):
            raise TypeError(
                f"A kernel got a {type(features).__name__}; pass a FeatureMatrix, such as FeatureMatrix(X)."
            )
    if rows.shape[1] != columns.shape[1]:
        raise ValueError(
            f"The rows have {rows.shape[1]} features and the columns {columns.shape[1]}; "
            "pass rows with the same features."
        )


def check_not_negative(kernel: Kernel, name: str) -> None:
    """Raise ValueError for a parameter that is not a number >= 0 that model files can store."""
    value = getattr(kernel, name)
    if not is_number(value) or not 0 <= value <= LARGEST:
        raise ParameterError(
            f"{type(kernel).__name__} has `{name}={value!r}`; pass a number from 0 to {LARGEST:g}, "
            "so that the kernel is positive semi-definite."
        )


def number_of(kernel: Kernel, name: str, value: Any) -> float:
    """Return the value of a parameter; raise ValueError if it is not yet estimated from data."""
    if isinstance(value, str):
        raise ValueError(
            f"{type(kernel).__name__} has {name}={value!r}, which is estimated from data; "
            "call its method resolved(features) with the training rows and use the result."
        )
    return float(value)


def is_number(value: Any) -> bool:
    value = value.item() if isinstance(value, np.number) else value  # the limit overflows float32
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    return is_real and bool(abs(value) <= LARGEST_WIDTH)


class _Composed(Kernel):
    """A kernel composed of others, its parts by name."""

    _parts: ClassVar[tuple[str, ...]]

    def _check_parameters(self) -> None:
        for name in self._parts:
            part = getattr(self, name)
            if not isinstance(part, Kernel):
                own = type(self).__name__
                raise ValueError(f"{own} has {name}={part!r}; pass a kernel object, such as RBFKernel().")
            part._check_parameters()

    def _parameter_names(self) -> list[str]:
        return [f"{part}__{name}" for part in self._parts for name in getattr(self, part)._parameter_names()]

    def _parameter_values(self) -> list[float]:
        values = [value for part in self._parts for value in getattr(self, part)._parameter_values()]
        own = self._parameter_names()[len(values) :]  # after those of parts
        return [*values, *(float(getattr(self, name)) for name in own)]

    def _with_values(self, values: dict[str, float]) -> Self:
        rest, changed = dict(values), {}
        for part in self._parts:
            kernel = getattr(self, part)
            of_part = {name: rest.pop(f"{part}__{name}") for name in kernel._parameter_names()}
            changed[part] = kernel._with_values(of_part)
        return type(self)(**(self.get_params(deep=False) | changed | rest))

    def _derivatives(self, rows: FeatureMatrix, columns: FeatureMatrix) -> dict[str, Array]:
        found = {part: getattr(self, part)._derivatives(rows, columns) for part in self._parts}
        return {f"{part}__{name}": values for part, own in found.items() for name, values in own.items()}

    def _resolved(self, features: FeatureMatrix) -> Kernel:
        changed = {part: getattr(self, part)._resolved(features) for part in self._parts}
        return type(self)(**(self.get_params(deep=False) | changed))


class _TwoKernels(_Composed):
    """Two kernels whose values are combined by an operator, in place."""

    _parts = ("left", "right")
    _join: Any

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    def _block(self, rows: FeatureMatrix, columns: FeatureMatrix) -> Array:
        return self._join(self.left._block(rows, columns), self.right._block(rows, columns))

    def _diagonal(self, rows: FeatureMatrix) -> Array:
        return np.asarray(self._join(self.left._diagonal(rows), self.right._diagonal(rows)))


@storable("SumKernel", {"left": Made(Kernel), "right": Made(Kernel)})
class SumKernel(_TwoKernels):
    """``k1(x, x') + k2(x, x')``.

    Parameters
    ----------
    left, right : Kernel
        The kernels to add.
    """

    _join = staticmethod(iadd)


@storable("ProductKernel", {"left": Made(Kernel), "right": Made(Kernel)})
class ProductKernel(_TwoKernels):
    """``k1(x, x') k2(x, x')``.

    Parameters
    ----------
    left, right : Kernel
        The kernels to multiply.
    """

    _join = staticmethod(imul)

    def _derivatives(self, rows: FeatureMatrix, columns: FeatureMatrix) -> dict[str, Array]:
        found = super()._derivatives(rows, columns)
        for part, other in (("left", self.right), ("right", self.left)):
            own = [derivative for name, derivative in found.items() if name.startswith(f"{part}__")]
            values = other._block(rows, columns) if own else np.empty(0)
            for derivative in own:
                self._join(derivative, values)
        return found


@storable("ScaledKernel", {"kernel": Made(Kernel), "scale": Number(0)})
class ScaledKernel(_Composed):
    """``scale k(x, x')``.

    Parameters
    ----------
    kernel : Kernel
        The kernel to multiply.
    scale : float, default=1.0
        The factor, >= 0.
    """

    _parts = ("kernel",)

    def __init__(self, kernel: Kernel, scale: float = 1.0) -> None:
        self.kernel = kernel
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_not_negative(self, "scale")

    def _parameter_names(self) -> list[str]:
        return [*super()._parameter_names(), *(["scale"] if self.scale > 0 else [])]

    def _block(self, rows: FeatureMatrix, columns: FeatureMatrix) -> Array:
        values = self.kernel._block(rows, columns)
        values *= float(self.scale)
        return values

    def _diagonal(self, rows: FeatureMatrix) -> Array:
        return float(self.scale) * self.kernel._diagonal(rows)

    def _derivatives(self, rows: FeatureMatrix, columns: FeatureMatrix) -> dict[str, Array]:
        found = super()._derivatives(rows, columns)
        for derivative in found.values():
            ProductKernel._join(derivative, float(self.scale))
        return found | {"scale": self._block(rows, columns)} if self.scale > 0 else found

    def _explicit_features(self, features: FeatureMatrix) -> FeatureMatrix | None:
        found = self.kernel._explicit_features(features)
        if found is None:
            return None
        names = None if found.names is None else list(found.names)
        return FeatureMatrix.of_any_library(found.data * float(np.sqrt(self.scale)), names)


@storable("ConstantKernel", {"value": Number(0)})
class ConstantKernel(Kernel):
    """The same value for all rows, like a constant feature ``sqrt(value)``.

    Parameters
    ----------
    value : float, default=1.0
        The value, >= 0.
    """

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    def _check_parameters(self) -> None:
        check_not_negative(self, "value")

    def _parameter_names(self) -> list[str]:
        return ["value"] if self.value > 0 else []

    def _block(self, rows: FeatureMatrix, columns: FeatureMatrix) -> Array:
        values = np.full((len(rows), len(columns)), float(self.value), dtype=value_type(rows, columns))
        return beside(values, rows.data)

    def _diagonal(self, rows: FeatureMatrix) -> Array:
        return np.full(len(rows), float(self.value))

    def _derivatives(self, rows: FeatureMatrix, columns: FeatureMatrix) -> dict[str, Array]:
        return {"value": self._block(rows, columns)} if self.value > 0 else {}
