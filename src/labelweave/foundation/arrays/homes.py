"""Where the arrays of a call are: X decides, as in scikit-learn's array API dispatch.

With ``sklearn.config_context(array_api_dispatch=True)`` an X of PyTorch, CuPy or array-api-strict is the home
of its call.  X, y and weights are read and checked as NumPy arrays.  Large tables are then made at the home:
kernel matrices, their factors, the variables of solvers, and scores.  NumPy has incomplete factors,
eigenvectors of the size of features or ranks, decisions on scores, and the arrays of a model, so that there
is one kind of model file.  Results return to the home, unless they are text, sparse or frames.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import sklearn

from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.arrays.linear_algebra import HOME, Home, is_foreign, namespace, placed, to_numpy

_SHARE = 0.8  # of a device's free memory: the default budget


def called_where_x_is(
    method: Callable[..., Any], check: Callable[[Any], None], self: Any, X: Any, *given: Any, **named: Any
) -> Any:
    """Call a method of an estimator at the home of X, with NumPy arguments; results return there.

    check: raises an error for an estimator that has no form there.
    """
    dispatches = sklearn.get_config()["array_api_dispatch"]
    for value in filter(is_foreign, (X, *given, *named.values())):
        if not dispatches and "cpu" not in str(value.device).lower():
            raise ValueError(
                f"An array is on the device {value.device}, which NumPy cannot read; fit and predict "
                "within sklearn.config_context(array_api_dispatch=True), or pass NumPy arrays."
            )
    arguments = [_here(value) for value in (X, *given)]
    options = {name: _here(value) for name, value in named.items()}
    if not (dispatches and is_foreign(X)):
        return method(self, *arguments, **options)
    with made_at(_home_of(X)):
        check(self)
        return _returned(method(self, *arguments, **options))


def _home_of(X: Any) -> Home:
    home = Home(namespace(X), X.device, _free_megabytes(X.device))
    if "float64" not in home.xp.__array_namespace_info__().dtypes(device=X.device):
        raise ValueError(
            f"X is on the device {X.device}, which has no float64 for certificates; pass X on one that has, "
            "such as cuda or cpu."
        )
    return home


@contextmanager
def made_at(home: Home) -> Iterator[None]:
    """Make large tables at a home."""
    before = HOME.set(home)
    try:
        yield
    finally:
        HOME.reset(before)


def refuse(what: str, otherwise: str) -> None:
    """Raise ValueError at a home, where something has only compiled loops over NumPy arrays."""
    if (home := HOME.get()) is not None:
        raise ParameterError(f"{what} has no form for arrays of {home.library}; {otherwise}.")


def _free_megabytes(device: Any) -> float | None:
    """Return most of the free memory of a GPU, the default memory budget; None elsewhere.

    What a library holds for its next arrays is free.
    """
    if getattr(device, "type", None) == "cuda":  # PyTorch's
        memory = sys.modules["torch"].cuda
        held = memory.memory_reserved(device) - memory.memory_allocated(device)
        return _SHARE * float(memory.mem_get_info(device)[0] + held) / 1e6
    if not hasattr(device, "mem_info"):
        return None
    held = sys.modules["cupy"].get_default_memory_pool().free_bytes()
    return _SHARE * float(device.mem_info[0] + held) / 1e6


def _here(value: Any) -> Any:
    try:
        return to_numpy(value) if is_foreign(value) else value
    except (BufferError, RuntimeError, TypeError) as error:
        said = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"NumPy cannot read an array of {value.dtype} on {value.device} ({said}); pass one of float32 or "
            "float64."
        ) from None


def _returned(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(map(_returned, result))
    return placed(result) if isinstance(result, np.ndarray) and result.dtype.kind in "biuf" else result


def torch_home(device: str) -> Home:
    """Return PyTorch's home of a device by name, for the command line.

    Raises ValueError if PyTorch, or the device, is missing.
    """
    try:
        import torch  # type: ignore[import-not-found, unused-ignore]

        table = torch.empty(1, dtype=torch.float64, device=device)
    except (ImportError, RuntimeError, AssertionError, TypeError) as error:
        said = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"The device {device} needs a PyTorch that has it ({said}); install one, or leave the device out."
        ) from None
    return _home_of(table)
