"""Type aliases that document shapes, which NumPy's types cannot express: n rows, L labels, C classes."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Floats: TypeAlias = npt.NDArray[np.float64]

PerRow: TypeAlias = npt.NDArray[Any]  # (n,)
PerLabel: TypeAlias = npt.NDArray[Any]  # (L,)
RowsByLabels: TypeAlias = npt.NDArray[Any]  # (n, L)
RowsByClasses: TypeAlias = npt.NDArray[Any]  # (n, C)
RowsByRows: TypeAlias = npt.NDArray[Any]  # (n, n)
LabelsByLabels: TypeAlias = npt.NDArray[Any]  # (L, L)
GroupedColumns: TypeAlias = npt.NDArray[Any]  # (n, groups, columns)
