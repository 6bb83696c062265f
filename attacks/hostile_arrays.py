"""Sparse arrays with unusual parts that mean the same, and with inconsistent parts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

Random = np.random.Generator
_FAR = (0, 1, 5, 10**6, 2**31 - 1)  # beyond the last index
_PARTS = {
    "csr": ("indptr", "indices", "data"),
    "csc": ("indptr", "indices", "data"),
    "coo": ("coords", "data"),
}


def _converted(random: Random, table: sp.csr_array) -> Any:
    name = str(random.choice(["csr", "csc", "coo", "lil", "dok", "dia", "bsr"]))
    made = table.tobsr((1, 1)) if name == "bsr" else table.asformat(name)
    if random.random() < 0.5:
        return made
    return getattr(sp, f"{name}_matrix")(made)


def _with_parts(random: Random, table: sp.csr_array, change: Callable[[np.ndarray], np.ndarray]) -> Any:
    made = table.asformat(str(random.choice(list(_PARTS)))).copy()
    for name in _PARTS[made.format]:
        part = getattr(made, name)
        changed = tuple(change(one) for one in part) if isinstance(part, tuple) else change(part)
        setattr(made, name, changed)
    return made


def _misaligned(part: np.ndarray) -> np.ndarray:
    raw = np.zeros(part.nbytes + 1, np.uint8)
    moved = raw[1:].view(part.dtype)
    moved[:] = part
    return moved


def _strided(part: np.ndarray) -> np.ndarray:
    return np.repeat(part, 2)[::2]


def _read_only(part: np.ndarray) -> np.ndarray:
    part = part.copy()
    part.flags.writeable = False
    return part


def _wide(part: np.ndarray) -> np.ndarray:
    return part.astype(np.int64) if part.dtype.kind == "i" else part


def _swapped(part: np.ndarray) -> np.ndarray:
    return part.astype(part.dtype.newbyteorder())


def _unsorted(random: Random, table: sp.csr_array) -> Any:
    """Reverse the entries of every row; maybe mark them as sorted."""
    made = table.copy()
    for first, end in zip(made.indptr[:-1], made.indptr[1:], strict=True):
        made.indices[first:end] = made.indices[first:end][::-1].copy()
        made.data[first:end] = made.data[first:end][::-1].copy()
    if random.random() < 0.5:
        made.has_sorted_indices = made.has_canonical_format = True
    return made


SOUND: dict[str, Callable[[Random, sp.csr_array], Any]] = {
    "another format": _converted,
    "misaligned": lambda random, table: _with_parts(random, table, _misaligned),
    "strided": lambda random, table: _with_parts(random, table, _strided),
    "read-only": lambda random, table: _with_parts(random, table, _read_only),
    "64-bit indices": lambda random, table: _with_parts(random, table, _wide),
    "byte-swapped": lambda random, table: _with_parts(random, table, _swapped),
    "unsorted": _unsorted,
}


def _change_index(random: Random, made: Any, value: int) -> None:
    if made.format == "coo":
        axis = int(random.integers(2))
        coords = [part.astype(np.int64) for part in made.coords]
        coords[axis][random.integers(made.nnz)] = value if value < 0 else value + made.shape[axis]
        made.coords = tuple(coords)
        return
    indices, size = made.indices.astype(np.int64), made.shape[made.format == "csr"]
    indices[random.integers(made.nnz)] = value if value < 0 else value + size
    fits = np.abs(indices).max() < 2**31
    made.indices = indices.astype(np.int32) if fits and random.random() < 0.7 else indices


def _cut(random: Random, made: Any) -> None:
    name = str(random.choice(_PARTS[made.format]))
    part = getattr(made, name)
    setattr(made, name, (part[0], part[1][:-1]) if isinstance(part, tuple) else part[:-1])


def _retype(random: Random, made: Any) -> None:
    kinds: list[Callable[[Any], Any]] = [
        lambda part: part.astype(complex), lambda part: part.astype(object), lambda part: part.astype("S4"),
        lambda part: part.astype("M8[s]"), lambda part: part.astype(bool)[None], lambda part: part[None],
    ]  # fmt: skip
    name, kind = str(random.choice(_PARTS[made.format])), kinds[random.integers(len(kinds))]
    part = getattr(made, name)
    setattr(made, name, tuple(map(kind, part)) if isinstance(part, tuple) else kind(part))


def _change_start(random: Random, made: Any) -> None:
    starts = made.indptr.astype(np.int64 if random.random() < 0.3 else np.int32)
    place, end = int(random.integers(1, len(starts) - 1)), int(starts[-1])
    kind = int(random.integers(4))
    if kind == 0:
        starts[place] = end + int(random.choice(_FAR[1:4]))
    elif kind == 1:
        starts[place] = -int(random.choice(_FAR[1:]))
    elif kind == 2:
        starts[0] = int(random.choice(_FAR[1:4]))
    else:
        starts[-1] = end + int(random.choice(_FAR[1:4]))
    made.indptr = starts


def _damaged(change: Callable[[Random, Any], None], formats: tuple[str, ...]) -> Any:
    def make(random: Random, table: sp.csr_array) -> Any:
        name = str(random.choice(formats))
        kind = getattr(sp, f"{name}_{random.choice(['array', 'matrix'])}")
        made = kind(table.asformat(name)).copy()
        change(random, made)
        return made

    return make


DAMAGED: dict[str, Callable[[Random, sp.csr_array], Any]] = {
    "index too large": _damaged(
        lambda random, made: _change_index(random, made, int(random.choice(_FAR))), tuple(_PARTS)
    ),
    "index negative": _damaged(
        lambda random, made: _change_index(random, made, -1 - int(random.choice(_FAR))), tuple(_PARTS)
    ),
    "index of 40 bits": _damaged(lambda random, made: _change_index(random, made, 2**40), tuple(_PARTS)),
    "row starts": _damaged(_change_start, ("csr", "csc")),
    "part too short": _damaged(_cut, tuple(_PARTS)),
    "part of another type": _damaged(_retype, tuple(_PARTS)),
}


def _other_shape(random: Random, made: Any) -> None:
    made._shape = tuple(max(0, size + int(random.choice([-2, -1, 1, 1000]))) for size in made.shape)


LYING: dict[str, Callable[[Random, sp.csr_array], Any]] = {
    "another shape": _damaged(_other_shape, tuple(_PARTS))
}
"""Whether these make sense depends on where their entries are; nothing may break."""
