"""Where the arrays of a call are: X decides, as in scikit-learn's array API dispatch.

With ``sklearn.config_context(array_api_dispatch=True)`` an X of PyTorch, CuPy or array-api-strict is the home of
its call.  It is read and checked as a NumPy array, like y and weights of any library.  Large tables are then made
at the home: kernel matrices, their factors, the variables of solvers, and scores.  Sums for decisions, single
numbers and arrays of labels are NumPy's, as are the arrays of a model, which therefore has one form and one file.
Results return to the home, unless they are text, sparse or frames.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import sklearn

from labelweave.foundation.arguments import ParameterError
from labelweave.foundation.arrays.linear_algebra import HOME, Home, is_numpy, namespace, placed, to_numpy

_SHARE = 0.8  # of a device's free memory: the default budget


def is_of_a_library(value: Any) -> bool:
    """Return whether a value is an array with a device, of another library than NumPy."""
    return hasattr(value, "__dlpack_device__") and hasattr(value, "device") and not is_numpy(value)


def home_of(X: Any) -> Home | None:
    """Return the home of an array; None for NumPy's and what is no array."""
    if not is_of_a_library(X):
        return None
    home = Home(namespace(X), X.device)
    if "float64" not in home.xp.__array_namespace_info__().dtypes(device=X.device):
        raise ValueError(
            f"X is on the device {X.device}, which has no float64 for certificates; pass X on a device that "
            "has, such as cuda or cpu."
        )
    return home


def called_where_x_is(method: Callable[..., Any], self: Any, X: Any, *given: Any, **named: Any) -> Any:
    """Call a method of an estimator at the home of X, with NumPy arguments; results return there."""
    if not sklearn.get_config()["array_api_dispatch"]:
        return method(self, X, *given, **named)
    home, arguments = home_of(X), [_here(value) for value in (X, *given)]
    options = {name: _here(value) for name, value in named.items()}
    if home is None:
        return method(self, *arguments, **options)
    require_form(self, home)
    with made_at(home):
        return _returned(method(self, *arguments, **options))


@contextmanager
def made_at(home: Home) -> Iterator[None]:
    """Make large tables at a home."""
    before = HOME.set(home)
    try:
        yield
    finally:
        HOME.reset(before)


def require_form(estimator: Any, home: Home) -> None:
    """Raise TypeError for an estimator without a form for arrays of other libraries."""
    model = estimator
    while (inner := getattr(model, "estimator", None)) is not None:
        model = inner
    if not getattr(model, "_takes_devices", False):
        raise TypeError(
            f"{type(model).__name__} has no form for arrays of {library_of(home)}; pass X as a NumPy array, or use "
            "MaxMarginClassifier, KernelLogisticClassifier or LowRankClassifier."
        )


def library_of(home: Home) -> str:
    return str(home.xp.__name__).rpartition(".")[2]


def refuse(what: str, otherwise: str) -> None:
    """Raise ValueError at a home, where something has only compiled loops over NumPy arrays."""
    home = HOME.get()
    if home is not None:
        raise ParameterError(f"{what} has no form for arrays of {library_of(home)}; {otherwise}.")


def free_megabytes() -> float | None:
    """Return the default memory budget of a home on a GPU; None elsewhere."""
    home = HOME.get()
    device = None if home is None else home.device
    if getattr(device, "type", None) == "cuda":  # PyTorch's
        return _SHARE * float(sys.modules["torch"].cuda.mem_get_info(device)[0]) / 1e6
    if hasattr(device, "mem_info"):  # CuPy's
        return _SHARE * float(device.mem_info[0]) / 1e6
    return None


def _here(value: Any) -> Any:
    return to_numpy(value) if is_of_a_library(value) else value


def _returned(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(map(_returned, result))
    return placed(result) if isinstance(result, np.ndarray) and result.dtype.kind in "biuf" else result


def torch_home(device: str) -> Home:
    """Return PyTorch's home of a device by name, for the command line.

    Raises ValueError if PyTorch, or the device, is missing.
    """
    try:
        import torch
    except ImportError:
        raise ValueError(
            f"The device {device} needs PyTorch, which is not installed; install torch, or leave the device out."
        ) from None
    try:
        table = torch.empty(1, dtype=torch.float64, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        said = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"PyTorch has no device {device} here ({said}); leave the device out, or install PyTorch for it."
        ) from None
    return Home(namespace(table), table.device)
