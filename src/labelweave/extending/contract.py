"""What the checks share: how they compare, and what they say where something is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelweave.model_files import decode, encode
from labelweave.model_files.storable import is_registered


class ContractError(AssertionError):
    """An object does not do what the library asks of its kind; the message says what, and where."""


def require(holds: Any, message: str) -> None:
    if not holds:
        raise ContractError(message)


def require_array(found: Any, shape: tuple[int, ...], what: str) -> None:
    """Refuse what is no finite array of real numbers of a shape."""
    require(
        isinstance(found, np.ndarray) and found.dtype.kind == "f",
        f"{what} gave {_shown(found)}; it must give an array of floating numbers.",
    )
    require(found.shape == shape, f"{what} gave shape {found.shape}; it must give {shape}.")
    if not np.isfinite(found).all():
        place = _place(~np.isfinite(found))
        raise ContractError(f"{what} gave {found[place]} at {_written(place)}; it must be finite.")


def require_close(
    found: Any,
    due: npt.ArrayLike,
    what: str,
    than: str,
    relative: float = 1e-9,
    absolute: float = 1e-12,
    unit: float = 0.0,
) -> None:
    """Refuse an array that differs from another, at the place where it does most.

    what, than: what both are called in the message.
    absolute: in units of the largest number of the other, or of ``unit`` if that is larger.
    """
    due = np.asarray(due, np.float64)
    require_array(found, due.shape, what)
    scale = float(np.abs(due).max(initial=unit))
    excess = np.abs(found - due) - relative * np.abs(due) - absolute * scale
    if excess.max(initial=0.0) > np.finfo(np.float64).tiny:
        place = tuple(int(k) for k in np.unravel_index(int(excess.argmax()), due.shape))
        raise ContractError(f"{what} is {found[place]:.9g} at {_written(place)}, {than} {due[place]:.9g}.")


def require_semidefinite(matrix: npt.NDArray[Any], what: str) -> None:
    """Refuse a matrix that is not symmetric, or has an eigenvalue below those of rounding."""
    require_close(matrix, matrix.T, what, "but its mirror image is", 1e-12, 1e-12)
    scale = float(np.abs(matrix).max(initial=0.0))
    least = float(np.linalg.eigvalsh(matrix).min(initial=0.0))
    require(
        least >= -1e-10 * scale * max(1, len(matrix)),
        f"{what} is not positive semi-definite: its least eigenvalue is {least:.3g}.",
    )


def through_file(value: Any) -> Any:
    """Return an object as it comes back from a model file; None for one that model files cannot hold."""
    arrays: dict[str, Any] = {}
    try:
        plain = encode(value, arrays) if is_registered(value) else None
    except TypeError as error:
        if "cannot be stored" not in str(error):  # as of kernels that are functions
            raise
        return None
    return None if plain is None else decode(plain, arrays)


def _place(where: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(k) for k in np.argwhere(where)[0])


def _written(place: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, place))})"


def _shown(found: Any) -> str:
    kind = f"a {type(found).__name__}"
    return f"{kind} of type {found.dtype}" if isinstance(found, np.ndarray) else kind
