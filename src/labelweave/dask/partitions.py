"""Convert Dask collections to partitions of rows, and predict one partition at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from labelweave.foundation.arrays import is_collection

NO_ROWS = "X has no rows in any of its partitions; pass at least one row."
_GIVE = "pass a dask array, a dask DataFrame, or a list of delayed partitions"


def row_partitions(
    X: Any, y: Any, sample_weight: Any = None, entry_weight: Any = None
) -> list[tuple[Any, Any, Any, Any]]:
    """Split collections into features, targets and weights of every partition, as delayed values or futures.

    X: a dask array or DataFrame, or a list of delayed values or futures, each the rows of a partition; with
        ``y=None`` each a pair of features and targets.
    sample_weight, entry_weight: of rows and of entries; None for partitions without them.
    Raises ValueError for other types, or different partitions.
    """
    rows = _parts_of(X, "X")
    if y is None:
        if not isinstance(X, list | tuple):
            raise ValueError("y is None; pass targets, or X as a list of delayed pairs (X, y) of partitions.")
        pairs = [_pair(part) for part in rows]
        rows, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    else:
        targets = _parts_of(_aligned(y, X), "y")
    found = [rows, targets]
    for name, given in (("sample_weight", sample_weight), ("entry_weight", entry_weight)):
        found.append([None] * len(rows) if given is None else _parts_of(_aligned(given, X), name))
    for name, parts in zip(("y", "sample_weight", "entry_weight"), found[1:], strict=True):
        if len(parts) != len(rows):
            raise ValueError(
                f"X has {len(rows)} partitions but {name} has {len(parts)}; pass the same partitions "
                "(rechunk or repartition one; if .values or .to_dask_array() of a DataFrame joined some, "
                "pass the DataFrame)."
            )
    return list(zip(*found, strict=True))


def _pair(part: Any) -> tuple[Any, Any]:
    import dask

    whole = dask.delayed(part)
    return whole[0], whole[1]


def _is_listed(value: Any) -> bool:
    """Return whether a value is a list of delayed partitions or futures, not another collection or rows."""
    return isinstance(value, list | tuple) and is_collection(value)


def _kind(value: Any) -> str:
    import dask.array as da

    if isinstance(value, da.Array):
        return "array"
    is_frame = is_collection(value) and hasattr(value, "npartitions") and hasattr(value, "to_delayed")
    return "frame" if is_frame else ""


def _parts_of(value: Any, name: str) -> list[Any]:
    if _is_listed(value):
        return list(value)
    kind = _kind(value)
    if not kind or (kind == "frame" and not hasattr(value, "dtypes") and not hasattr(value, "dtype")):
        raise ValueError(
            f"{name} is a {type(value).__name__}, which has no partitions; {_GIVE}, like the other "
            "data of this call."
        )
    if kind == "array":
        if value.ndim > 1 and value.numblocks[1] > 1:
            value = value.rechunk({1: -1})
        value = value.to_delayed().ravel()
        return list(value)
    return _parts_of_frame(value)


def _parts_of_frame(frame: Any) -> list[Any]:
    """Return the partitions that a DataFrame or column reports.

    Converting a DataFrame to delayed values optimizes it, which reads several files at once if few of their
    columns are needed, so that X and y of the same files would have different partitions.
    """
    return list(frame.simplify().to_delayed(optimize_graph=False))


def _aligned(value: Any, X: Any) -> Any:
    """Rechunk an array to the row chunks of X, if both are known and differ."""
    if _kind(value) != "array" or _kind(X) != "array":
        return value
    known = not any(np.isnan(size) for size in (*value.chunks[0], *X.chunks[0]))
    if known and value.chunks[0] != X.chunks[0] and value.shape[0] == X.shape[0]:
        return value.rechunk({0: X.chunks[0]})
    return value


def lazily(X: Any, of_rows: Callable[..., Any], model: Any, meta: Any, width: int | None) -> Any:
    """Apply a function of rows and a model to every partition, lazily.

    of_rows: gets the rows of a partition and the model.
    meta: an empty result, whose type all results have.
    width: the columns of results; None for vectors.
    Returns a dask array or DataFrame, or a list of delayed values for such a list.
    """
    import dask

    kept = dask.delayed(model)
    if _is_listed(X):
        return [dask.delayed(of_rows)(part, kept) for part in X]
    if _kind(X) == "frame":
        parts: Any = _parts_of_frame(X)
        sizes: Any = (np.nan,) * len(parts)
    else:
        if X.ndim != 2:
            raise ValueError(f"X has the shape {X.shape}; pass a table with one row per example.")
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        parts, sizes = X.to_delayed().ravel(), X.chunks[0]
    answers = [dask.delayed(of_rows)(part, kept) for part in parts]
    if hasattr(meta, "columns"):
        import dask.dataframe as dd

        return dd.from_delayed(answers, meta=meta, verify_meta=False)
    return _array_of(answers, sizes, meta, width)


def _array_of(parts: list[Any], sizes: Any, meta: Any, width: int | None) -> Any:
    import dask.array as da

    columns = () if width is None else (width,)
    blocks = [
        da.from_delayed(part, (size, *columns), meta=meta) for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(blocks, axis=0, allow_unknown_chunksizes=True)
