"""Fits on many machines through Dask: rows stay in their partitions; labels, or sums over rows, travel.

The estimators here take Dask's collections, give the ordinary estimators by ``to_local()``, and predict
lazily. The bits of a fit depend on the partitions and the seed, not on the number of workers or on which of
them died. Needs ``labelweave[dask]``, on the client, the scheduler and the workers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelweave.dask.automatic import AutoLabelClassifier
    from labelweave.dask.comparison import compare
    from labelweave.dask.decisions import (
        CalibratedLabelClassifier,
        ConformalLabelClassifier,
        HierarchicalClassifier,
        TunedThresholdClassifier,
    )
    from labelweave.dask.files import read_files
    from labelweave.dask.kernel_logistic import KernelLogisticClassifier
    from labelweave.dask.label_graph import LabelGraphClassifier
    from labelweave.dask.label_tree import LabelTreeClassifier
    from labelweave.dask.low_rank import LowRankClassifier
    from labelweave.dask.max_margin import MaxMarginClassifier
    from labelweave.dask.table_model import TableModel

__all__ = [
    "AutoLabelClassifier",
    "CalibratedLabelClassifier",
    "ConformalLabelClassifier",
    "HierarchicalClassifier",
    "KernelLogisticClassifier",
    "LabelGraphClassifier",
    "LabelTreeClassifier",
    "LowRankClassifier",
    "MaxMarginClassifier",
    "TableModel",
    "TunedThresholdClassifier",
    "compare",
    "read_files",
]

_HOMES = {
    "AutoLabelClassifier": "labelweave.dask.automatic",
    "CalibratedLabelClassifier": "labelweave.dask.decisions",
    "ConformalLabelClassifier": "labelweave.dask.decisions",
    "HierarchicalClassifier": "labelweave.dask.decisions",
    "KernelLogisticClassifier": "labelweave.dask.kernel_logistic",
    "LabelGraphClassifier": "labelweave.dask.label_graph",
    "LabelTreeClassifier": "labelweave.dask.label_tree",
    "LowRankClassifier": "labelweave.dask.low_rank",
    "MaxMarginClassifier": "labelweave.dask.max_margin",
    "TableModel": "labelweave.dask.table_model",
    "TunedThresholdClassifier": "labelweave.dask.decisions",
    "compare": "labelweave.dask.comparison",
    "read_files": "labelweave.dask.files",
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
