"""Kernels made of kernels: sums, products and multiples; and the constant one."""

from __future__ import annotations

import numpy as np

from labelweave.array_types import Array
from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.features.kernels.kernel import Kernel, value_type
from labelweave.features.kernels.parameters import check_not_negative
from labelweave.model_files import storable

__all__ = ["ConstantKernel", "ProductKernel", "ScaledKernel", "SumKernel"]


class _TwoKernels(Kernel):
    """A kernel made of a left and a right one."""

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    def _check_parameters(self) -> None:
        _check_part(self, "left")
        _check_part(self, "right")

    def _parameter_names(self) -> list[str]:
        return [
            *_prefixed("left", self.left._parameter_names()),
            *_prefixed("right", self.right._parameter_names()),
        ]

    def _resolved(self, features: FeatureMatrix) -> Kernel:
        left, right = self.left._resolved(features), self.right._resolved(features)
        return self if left is self.left and right is self.right else type(self)(left, right)


@storable("SumKernel")
class SumKernel(_TwoKernels):
    """``k1(x, x') + k2(x, x')``.

    Parameters
    ----------
    left, right : Kernel
        The kernels to add.
    """

    def _block(self, rows: FeatureMatrix, columns: FeatureMatrix) -> Array:
        values = self.left._block(rows, columns)
        values += self.right._block(rows, columns)
        return values

    def _diagonal(self, rows: FeatureMatrix) -> Array:
        return self.left._diagonal(rows) + self.right._diagonal(rows)

    def _derivatives(self, rows: FeatureMatrix, columns: FeatureMatrix) -> dict[str, Array]:
        left = self.left._derivatives(rows, columns)
        right = self.right._derivatives(rows, columns)
        return _keyed("left", left) | _keyed("right", right)


@storable("ProductKernel")
class ProductKernel(_TwoKernels):
    """``k1(x, x') k2(x, x')``.

    Parameters
    ----------
    left, right : Kernel
        The kernels to multiply.
    """

    def _block(self, rows: FeatureMatrix, columns: FeatureMatrix) -> Array:
        values = self.left._block(rows, columns)
        values *= self.right._block(rows, columns)
        return values

    def _diagonal(self, rows: FeatureMatrix) -> Array:
        return self.left._diagonal(rows) * self.right._diagonal(rows)

    def _derivatives(self, rows: FeatureMatrix, columns: FeatureMatrix) -> dict[str, Array]:
        left = _keyed("left", self.left._derivatives(rows, columns))
        right = _keyed("right", self.right._derivatives(rows, columns))
        _multiply(left, self.right, rows, columns)
        _multiply(right, self.left, rows, columns)
        return left | right


def _multiply(
    derivatives: dict[str, Array], kernel: Kernel, rows: FeatureMatrix, columns: FeatureMatrix
) -> None:
    if not derivatives:
        return
    values = kernel._block(rows, columns)
    for derivative in derivatives.values():
        np.multiply(derivative, values, out=derivative)


@storable("ScaledKernel")
class ScaledKernel(Kernel):
    """``scale k(x, x')``.

    Parameters
    ----------
    kernel : Kernel
        The kernel to multiply.
    scale : float, default=1.0
        The factor, >= 0.
    """

    def __init__(self, kernel: Kernel, scale: float = 1.0) -> None:
        self.kernel = kernel
        self.scale = scale

    def _check_parameters(self) -> None:
        _check_part(self, "kernel")
        check_not_negative(self, "scale")

    def _parameter_names(self) -> list[str]:
        own = ["scale"] if self.scale > 0 else []
        return [*_prefixed("kernel", self.kernel._parameter_names()), *own]

    def _block(self, rows: FeatureMatrix, columns: FeatureMatrix) -> Array:
        values = self.kernel._block(rows, columns)
        values *= float(self.scale)
        return values

    def _diagonal(self, rows: FeatureMatrix) -> Array:
        return float(self.scale) * self.kernel._diagonal(rows)

    def _derivatives(self, rows: FeatureMatrix, columns: FeatureMatrix) -> dict[str, Array]:
        found = _keyed("kernel", self.kernel._derivatives(rows, columns))
        for derivative in found.values():
            np.multiply(derivative, float(self.scale), out=derivative)
        return found | {"scale": self._block(rows, columns)} if self.scale > 0 else found

    def _resolved(self, features: FeatureMatrix) -> Kernel:
        kernel = self.kernel._resolved(features)
        return self if kernel is self.kernel else ScaledKernel(kernel, self.scale)

    def _explicit_features(self, features: FeatureMatrix) -> FeatureMatrix | None:
        found = self.kernel._explicit_features(features)
        if found is None:
            return None
        names = None if found.names is None else list(found.names)
        return FeatureMatrix(found.data * float(np.sqrt(self.scale)), names)


@storable("ConstantKernel")
class ConstantKernel(Kernel):
    """The same value for all rows, as a constant feature ``sqrt(value)`` has.

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
        return np.full((len(rows), len(columns)), float(self.value), dtype=value_type(rows, columns))

    def _diagonal(self, rows: FeatureMatrix) -> Array:
        return np.full(len(rows), float(self.value))

    def _derivatives(self, rows: FeatureMatrix, columns: FeatureMatrix) -> dict[str, Array]:
        return {"value": self._block(rows, columns)} if self.value > 0 else {}


def _check_part(kernel: Kernel, name: str) -> None:
    part = getattr(kernel, name)
    if not isinstance(part, Kernel):
        raise ValueError(
            f"{type(kernel).__name__} has {name}={part!r}; it must be a kernel object, such as RBFKernel()."
        )
    part._check_parameters()


def _prefixed(part: str, names: list[str]) -> list[str]:
    return [f"{part}__{name}" for name in names]


def _keyed(part: str, derivatives: dict[str, Array]) -> dict[str, Array]:
    return {f"{part}__{name}": derivative for name, derivative in derivatives.items()}
