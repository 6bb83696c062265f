"""What is said of a model's kernel, after a fit and by ``inspect``."""

from __future__ import annotations

from typing import Any

from labelweave.features.kernels import Kernel, ProductKernel, ScaledKernel, SumKernel

__all__ = ["kernel_words", "n_support_rows", "words_of"]


def kernel_words(classifier: Any) -> str:
    """Say which kernel a fitted classifier has, with its numbers.

    Parameters
    ----------
    classifier : LabelClassifier
        The classifier.

    Returns
    -------
    str
        Such as ``2 * RBFKernel(gamma=0.5) + LinearKernel()``; "precomputed" where X was the kernel.
    """
    kernel = getattr(classifier, "kernel_", None)
    return words_of(getattr(classifier, "kernel", "linear") if kernel is None else kernel)


def words_of(kernel: Any) -> str:
    """Write a kernel as one would in Python.

    Parameters
    ----------
    kernel : Kernel, str or callable
        The kernel.

    Returns
    -------
    str
        All its parameters, numbers with six digits.
    """
    if not isinstance(kernel, Kernel):
        return kernel if isinstance(kernel, str) else getattr(kernel, "__name__", type(kernel).__name__)
    if isinstance(kernel, SumKernel):
        return f"{words_of(kernel.left)} + {words_of(kernel.right)}"
    if isinstance(kernel, ProductKernel):
        return f"{_factor(kernel.left)} * {_factor(kernel.right)}"
    if isinstance(kernel, ScaledKernel):
        return f"{kernel.scale:.6g} * {_factor(kernel.kernel)}"
    parameters = kernel.get_params(deep=False)
    return f"{type(kernel).__name__}({', '.join(f'{k}={_number(v)}' for k, v in parameters.items())})"


def _factor(kernel: Kernel) -> str:
    return f"({words_of(kernel)})" if isinstance(kernel, SumKernel) else words_of(kernel)


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return words_of(value) if isinstance(value, Kernel) else repr(value)


def n_support_rows(classifier: Any) -> int | None:
    """Count the rows that a kernel model keeps.

    Parameters
    ----------
    classifier : LabelClassifier
        The classifier.

    Returns
    -------
    int or None
        Their number; None for a model of weights.
    """
    return len(classifier.support_) if hasattr(classifier, "support_") else None
