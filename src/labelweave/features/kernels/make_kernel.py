"""A kernel from what users write: a name, a kernel object or a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labelweave.features.kernels.callable_kernel import CallableKernel
from labelweave.features.kernels.distances import LaplacianKernel, RBFKernel
from labelweave.features.kernels.dot_products import CosineKernel, LinearKernel, PolynomialKernel
from labelweave.features.kernels.kernel import Kernel


def make_kernel(
    kernel: str | Kernel | Callable[[Any, Any], Any],
    gamma: float | str = "scale",
    degree: int = 3,
    coef0: float = 1.0,
) -> Kernel:
    """Make a kernel from its name, or take one.

    Parameters
    ----------
    kernel : str, Kernel or callable
        "rbf", "polynomial" (or "poly"), "laplacian", "cosine" or "linear"; a kernel,
        returned as it is; or a function of two arrays of rows, see :class:`CallableKernel`.
    gamma : float, "scale" or "auto", default="scale"
        For the names "rbf", "polynomial" and "laplacian".
    degree, coef0 : int, default=3, and float, default=1.0
        For the name "polynomial".

    Returns
    -------
    Kernel
        The kernel; its parameters are checked when it is used.

    Raises
    ------
    ValueError
        If the name is unknown, or it is none of these.
    """
    if isinstance(kernel, Kernel):
        return kernel
    named: dict[str, Callable[[], Kernel]] = {
        "rbf": lambda: RBFKernel(gamma),
        "polynomial": lambda: PolynomialKernel(degree, gamma, coef0),
        "poly": lambda: PolynomialKernel(degree, gamma, coef0),
        "laplacian": lambda: LaplacianKernel(gamma),
        "cosine": CosineKernel,
        "linear": LinearKernel,
    }
    if isinstance(kernel, str) and kernel in named:
        return named[kernel]()
    if isinstance(kernel, type) or not callable(kernel):  # a class is callable, but no kernel yet
        raise ValueError(
            f"kernel={_shown(kernel)} is not known; it must be one of {', '.join(map(repr, named))}, "
            "a kernel object such as RBFKernel(), or a function of two arrays of rows."
        )
    return CallableKernel(kernel)


def _shown(kernel: Any) -> str:
    return f"{kernel.__name__} (a class)" if isinstance(kernel, type) else repr(kernel)
