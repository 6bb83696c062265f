"""Mercer kernels between rows: named, composed with ``+`` and ``*``, or user functions.

::

    kernel = 2.0 * RBFKernel(gamma="scale") + LinearKernel()
    kernel = kernel.resolved(features)         # gamma as a number, from the training rows
    gram = kernel.block(features, features)

They are scikit-learn estimators, so that a search may tune ``kernel__gamma`` or
``kernel__left__gamma``, and model files can store them.
"""

from labelweave.features.kernels.distances import ARDKernel, LaplacianKernel, RBFKernel
from labelweave.features.kernels.forest_kernel import ForestKernel
from labelweave.features.kernels.kernel import ConstantKernel, Kernel, ProductKernel, ScaledKernel, SumKernel
from labelweave.features.kernels.make_kernel import (
    CallableKernel,
    CosineKernel,
    LinearKernel,
    PolynomialKernel,
    make_kernel,
)

__all__ = [
    "ARDKernel",
    "CallableKernel",
    "ConstantKernel",
    "CosineKernel",
    "ForestKernel",
    "Kernel",
    "LaplacianKernel",
    "LinearKernel",
    "PolynomialKernel",
    "ProductKernel",
    "RBFKernel",
    "ScaledKernel",
    "SumKernel",
    "make_kernel",
]
