"""Arrays named by shape, which NumPy's types cannot say: n rows, d features, L labels, C classes."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Floats: TypeAlias = npt.NDArray[np.float64]

PerRow: TypeAlias = npt.NDArray[Any]  # (n,)
PerFeature: TypeAlias = npt.NDArray[Any]  # (d,)
PerLabel: TypeAlias = npt.NDArray[Any]  # (L,)
RowsByFeatures: TypeAlias = npt.NDArray[Any]  # (n, d)
RowsByLabels: TypeAlias = npt.NDArray[Any]  # (n, L)
RowsByClasses: TypeAlias = npt.NDArray[Any]  # (n, C)
RowsByRows: TypeAlias = npt.NDArray[Any]  # (n, n)
LabelsByLabels: TypeAlias = npt.NDArray[Any]  # (L, L)
GroupedColumns: TypeAlias = npt.NDArray[Any]  # (n, groups, columns)
