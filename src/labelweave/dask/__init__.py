"""Distributed fits with Dask: rows stay in their partitions; labels, or sums over rows, travel.

X decides: given Dask collections, estimators are fitted on the current client's cluster and predict lazily.
A fit depends bit by bit on partitions and seed.  All machines need ``labelweave[dask]``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelweave.dask.files import read_files
    from labelweave.dask.predictions import score_table

__all__ = ["read_files", "score_table"]

_HOMES = {
    "FAMILIES": "labelweave.dask.models",
    "answer": "labelweave.dask.predictions",
    "files_of": "labelweave.dask.files",
    "read_files": "labelweave.dask.files",
    "refuse_in_memory": "labelweave.dask.models",
    "score_table": "labelweave.dask.predictions",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import_module("distributed")
    except ImportError:
        raise ImportError("labelweave.dask needs Dask: install labelweave[dask].") from None
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
