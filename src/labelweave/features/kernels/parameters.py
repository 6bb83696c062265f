"""Checks of kernel parameters, and the width gamma found from data."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone

from labelweave.features.feature_matrix import FeatureMatrix
from labelweave.features.kernels.kernel import Kernel, is_number

__all__ = ["GammaKernel", "check_positive_integer", "gamma_from_data"]


class GammaKernel(Kernel):
    """A kernel with a width ``gamma``: a number > 0, "scale" or "auto"."""

    gamma: Any

    def _check_parameters(self) -> None:
        if isinstance(self.gamma, str):
            allowed = self.gamma in ("scale", "auto")
        else:
            allowed = is_number(self.gamma) and 0 < self.gamma < np.inf
        if not allowed:
            raise ValueError(
                f"{type(self).__name__} has gamma={self.gamma!r}; it must be a number > 0, 'scale' or 'auto'."
            )

    def _parameter_names(self) -> list[str]:
        return ["gamma"]

    def _resolved(self, features: FeatureMatrix) -> Kernel:
        if not isinstance(self.gamma, str):
            return self
        other: Kernel = clone(self)
        other.set_params(gamma=gamma_from_data(self.gamma, features))
        return other

    def _gamma(self) -> float:
        if isinstance(self.gamma, str):
            raise ValueError(
                f"{type(self).__name__} has gamma={self.gamma!r}, which is to be found from data; "
                "call its method resolved(features) with the training rows and use what it returns."
            )
        return float(self.gamma)


def gamma_from_data(gamma: str, features: FeatureMatrix) -> float:
    """Find the width as :class:`sklearn.svm.SVC` does.

    gamma: ``1 / (d * variance of all entries)`` or ``1 / d``.
    Returns the width; 1.0 where the formula divides by zero.
    """
    scatter = 1.0 if gamma == "auto" else _variance(features)
    # the variance of equal sparse entries may come out as a rounding error below zero
    return float(1.0 / (features.shape[1] * scatter)) if features.shape[1] and scatter > 0 else 1.0


def _variance(features: FeatureMatrix) -> float:
    if 0 in features.shape:
        return 0.0
    if not features.is_sparse:
        return float(features.data.var(dtype=np.float64))
    csr = features.data.astype(np.float64, copy=False)
    return float(csr.multiply(csr).mean() - csr.mean() ** 2)


def check_positive_integer(kernel: Kernel, name: str) -> None:
    """Refuse a parameter that is not an integer >= 1.

    Raises ValueError if it is something else.
    """
    value: Any = getattr(kernel, name)
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise ValueError(f"{type(kernel).__name__} has {name}={value!r}; it must be an integer >= 1.")
