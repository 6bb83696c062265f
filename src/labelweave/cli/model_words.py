"""What is said of a model's kernel and prior, after a fit and by ``inspect``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labelweave.features.kernels import Kernel, ProductKernel, ScaledKernel, SumKernel
from labelweave.labels import Taxonomy

__all__ = [
    "hyperparameter_words",
    "kernel_words",
    "learning_words",
    "n_support_rows",
    "taxonomy_words",
    "words_of",
]

_MOST_VALUES = 6


def kernel_words(classifier: Any) -> str:
    """Say which kernel a fitted classifier has, with its numbers.

    Returns such as ``2 * RBFKernel(gamma=0.5) + LinearKernel()``; "precomputed" where X was the kernel.
    """
    if hasattr(classifier, "prior_"):
        return _prior_kernel(classifier.prior_)
    kernel = getattr(classifier, "kernel_", None)
    return words_of(getattr(classifier, "kernel", "linear") if kernel is None else kernel)


def _prior_kernel(prior: Any) -> str:
    """Say which kernel a prior has, or how many that differ in their numbers."""
    first, *others = [term.kernel for term in prior.terms]
    if first is None:
        return "precomputed"
    return f"{len(others) + 1} kernels, the first {words_of(first)}" if others else words_of(first)


def hyperparameter_words(classifier: Any) -> str:
    """Say what the scales and kernel parameters of a fitted classifier are.

    Returns such as ``scale 4.6, gamma 0.0037``; where there are many, from the least to the largest.
    """
    values: dict[str, float] = classifier.hyperparameters_
    if len(values) <= _MOST_VALUES:
        return ", ".join(f"{name} {value:.4g}" for name, value in values.items())
    kinds: dict[str, list[float]] = {}
    for name, value in values.items():
        kinds.setdefault(name.partition("[")[0], []).append(value)
    return ", ".join(_range_words(kind, found) for kind, found in kinds.items())


def _range_words(kind: str, values: Sequence[float]) -> str:
    if len(values) == 1:
        return f"{kind} {values[0]:.4g}"
    return f"{len(values)} x {kind} from {min(values):.4g} to {max(values):.4g}"


def learning_words(classifier: Any) -> str | None:
    """Say how the learning of hyper-parameters went.

    Returns its evaluations, loss and end; None for models that have nothing to learn.
    """
    if not hasattr(classifier, "learning_status_"):
        return None
    count, status = len(classifier.learning_trace_), classifier.learning_status_.replace("_", " ")
    if not count:
        return "none, hyper-parameters are as given" if status == "fixed" else f"none, {status}"
    return f"{count} evaluations, cross-validation loss {classifier.cross_validation_loss_:.4f} ({status})"


def taxonomy_words(taxonomy: Taxonomy, classes: Sequence[str]) -> str:
    """Say how large a taxonomy is.

    classes: the classes of the model.
    Returns its nodes, and at what depths the classes are.
    """
    depths = taxonomy.depth(list(classes))
    low, high = int(depths.min()), int(depths.max())
    where = f"at depth {low}" if low == high else f"at depths {low} to {high}"
    roots = f" in {len(taxonomy.roots)} trees" if len(taxonomy.roots) > 1 else ""
    return f"{len(taxonomy)} nodes{roots}, the {len(depths)} classes {where}"


def words_of(kernel: Any) -> str:
    """Write a kernel as one would in Python.

    Returns all its parameters, numbers with six digits.
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

    Returns their number; None for a model of weights.
    """
    return len(classifier.support_) if hasattr(classifier, "support_") else None
