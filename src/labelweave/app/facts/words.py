"""Kernels, taxonomies and parameters in words."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from labelweave.features.kernels import Kernel, ProductKernel, ScaledKernel, SumKernel
from labelweave.labels import LabelText, Taxonomy

_MOST_VALUES = 6


def class_words(model: Any) -> str:
    name = type(model).__name__
    return f"a{'n' if name[0] in 'AEIOU' else ''} {name}"


def kernel_words(kernel: Any) -> str:
    """Write a kernel as one would in Python, with all its parameters, numbers with six digits."""
    if not isinstance(kernel, Kernel):
        return kernel if isinstance(kernel, str) else getattr(kernel, "__name__", type(kernel).__name__)
    if isinstance(kernel, SumKernel):
        return f"{kernel_words(kernel.left)} + {kernel_words(kernel.right)}"
    if isinstance(kernel, ProductKernel):
        return f"{_factor(kernel.left)} * {_factor(kernel.right)}"
    if isinstance(kernel, ScaledKernel):
        return f"{kernel.scale:.6g} * {_factor(kernel.kernel)}"
    parameters = kernel.get_params(deep=False)
    return f"{type(kernel).__name__}({', '.join(f'{k}={_number(v)}' for k, v in parameters.items())})"


def _factor(kernel: Kernel) -> str:
    return f"({kernel_words(kernel)})" if isinstance(kernel, SumKernel) else kernel_words(kernel)


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return kernel_words(value) if isinstance(value, Kernel) else repr(value)


def number_words(values: dict[str, float]) -> str:
    """Name hyper-parameters; where there are many, those of each kind from the least to the largest."""
    if len(values) <= _MOST_VALUES:
        return ", ".join(f"{name} {value:.4g}" for name, value in values.items())
    kinds: dict[str, list[float]] = {}
    for name, value in values.items():
        kinds.setdefault(name.partition("[")[0], []).append(value)
    return ", ".join(
        f"{len(found)} x {kind} from {min(found):.4g} to {max(found):.4g}"
        if len(found) > 1
        else f"{kind} {found[0]:.4g}"
        for kind, found in kinds.items()
    )


def taxonomy_words(taxonomy: Taxonomy, names: list[str], kind: str) -> str:
    """Say how large a taxonomy is, and at what depths labels or classes are."""
    depths = taxonomy.depth(names)
    low, high = int(depths.min()), int(depths.max())
    where = f"at depth {low}" if low == high else f"at depths {low} to {high}"
    roots = f" in {len(taxonomy.roots)} trees" if len(taxonomy.roots) > 1 else ""
    return f"{len(taxonomy)} nodes{roots}, the {len(depths)} {kind} {where}"


def plain_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters of a classifier as plain data, without the classifier inside."""
    return {name: _plain(value) for name, value in _own_parameters(model).items()}


def changed_parameters(model: Any) -> tuple[str, ...]:
    defaults = {name: p.default for name, p in inspect.signature(type(model)).parameters.items()}
    given = _own_parameters(model).items()
    return tuple(name for name, value in given if not _is_same(value, defaults.get(name)))


def _own_parameters(model: Any) -> dict[str, Any]:
    given = model.get_params(deep=False)
    return {name: value for name, value in given.items() if name != "estimator"}


def _is_same(value: Any, default: Any) -> bool:
    value = value.item() if isinstance(value, np.generic) else value
    kinds = {type(value), type(default)}
    is_one_kind = len(kinds) == 1 or kinds == {int, float}  # True is not 1
    return value is default or (is_one_kind and not np.ndim(value) and value == default)


def _plain(value: Any) -> Any:
    """Return numbers and words as they are, anything larger by its type and size."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Kernel) or callable(value):
        return kernel_words(value)
    if isinstance(value, Taxonomy):
        return f"Taxonomy of {len(value)} nodes"
    if isinstance(value, (tuple, list)) and all(isinstance(item, (str, int, float)) for item in value):
        return ",".join(map(str, value))
    size = getattr(value, "n_labels", None)
    if size is None:
        size = len(value) if isinstance(value, (tuple, list, LabelText)) else np.size(value)
    return f"{type(value).__name__} over {size} labels"
