"""What classifiers with a kernel share: its parameters, its expansion, prediction in bounded memory."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from labelweave.array_types import Array
from labelweave.estimators.base import LabelClassifier
from labelweave.estimators.scorers import dense_rows
from labelweave.features import CallableKernel, FeatureMatrix, Kernel, make_kernel
from labelweave.features.gram.sources import (
    GramSource,
    KernelSource,
    PrecomputedSource,
    check_positive_semidefinite,
    checked_kernel_matrix,
    is_known_semidefinite,
)
from labelweave.sklearn_compat import Interval, StrOptions

__all__ = ["KernelClassifier"]

_KERNELS = {"linear", "rbf", "polynomial", "poly", "laplacian", "cosine", "precomputed"}


class KernelClassifier(LabelClassifier):
    """Base of classifiers whose scores are weights of features or a sum of kernels to support rows.

    A fit sets ``coef_``, or ``dual_coef_`` with ``support_`` and ``support_vectors_``.
    """

    kernel: Any
    gamma: Any
    degree: int
    coef0: float
    kernel_: Kernel
    coef_: Array
    dual_coef_: Array
    support_: Array
    support_vectors_: Any
    intercept_: Array

    _kernel_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(_KERNELS), Kernel, callable],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, 0, None, closed="left")],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _forget_expansion(self) -> None:
        """Drop what a fit with another kind of kernel left behind."""
        for name in ("scorer_", "coef_", "dual_coef_", "support_", "support_vectors_", "kernel_"):
            self.__dict__.pop(name, None)

    def _read_kernel(self, features: FeatureMatrix, seed: int) -> tuple[GramSource, FeatureMatrix | None]:
        """Give the kernel of the training rows, and its explicit features where it has them."""
        if self.kernel == "precomputed":
            given = PrecomputedSource(checked_kernel_matrix(dense_rows(features)))
            check_positive_semidefinite(given, seed)
            return given, None
        kernel = make_kernel(self.kernel, self.gamma, self.degree, self.coef0)
        self.kernel_ = kernel.resolved(features)
        self._check_kernel(self.kernel_, features, seed)
        return KernelSource(self.kernel_, features), self.kernel_.explicit_features(features)

    def _check_kernel(self, kernel: Kernel, features: FeatureMatrix, seed: int) -> None:
        """Refuse a kernel of the user's that is not positive semi-definite."""
        if not is_known_semidefinite(kernel):
            check_positive_semidefinite(KernelSource(kernel, features), seed)

    def _keep_support(self, features: FeatureMatrix, support: Array, coefficients: Array) -> None:
        self.support_, self.dual_coef_ = support, coefficients
        if self.kernel != "precomputed":
            self.support_vectors_ = features.rows(support).data

    def _storable_parameters(self) -> dict[str, Any]:
        if callable(self.kernel) and not isinstance(self.kernel, Kernel):
            CallableKernel(self.kernel).to_state()  # says why it cannot be stored
        return super()._storable_parameters()
