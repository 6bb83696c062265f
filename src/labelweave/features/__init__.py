"""The input side: one face for dense and sparse features, and kernels between rows."""

from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.features.kernels import (
    ARDKernel,
    CallableKernel,
    ConstantKernel,
    CosineKernel,
    Kernel,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    ProductKernel,
    RBFKernel,
    ScaledKernel,
    SumKernel,
    make_kernel,
)

__all__ = [
    "ARDKernel",
    "CallableKernel",
    "ConstantKernel",
    "CosineKernel",
    "FeatureMatrix",
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
