"""The public estimators: thin classes that validate, state the problem, solve and keep the result.

Each is imported on first use, so that using one model does not wait for the others.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelweave.estimators.binary_relevance import BinaryRelevance
    from labelweave.estimators.kernel_classifier import HyperparameterSearch
    from labelweave.estimators.kernel_logistic import KernelLogisticClassifier
    from labelweave.estimators.label_graph import GraphGrowth, LabelGraphClassifier
    from labelweave.estimators.label_tree import LabelTreeClassifier
    from labelweave.estimators.low_rank import LowRankClassifier, RankSearch
    from labelweave.estimators.max_margin import MaxMarginClassifier
    from labelweave.estimators.table_model import TableModel
    from labelweave.estimators.targets import UnobservedLabelWarning
    from labelweave.estimators.zero_shot import ZeroShotClassifier

__all__ = [
    "BinaryRelevance",
    "GraphGrowth",
    "HyperparameterSearch",
    "KernelLogisticClassifier",
    "LabelGraphClassifier",
    "LabelTreeClassifier",
    "LowRankClassifier",
    "MaxMarginClassifier",
    "RankSearch",
    "TableModel",
    "UnobservedLabelWarning",
    "ZeroShotClassifier",
]

_HOMES = {
    "BinaryRelevance": "labelweave.estimators.binary_relevance",
    "GraphGrowth": "labelweave.estimators.label_graph",
    "HyperparameterSearch": "labelweave.estimators.kernel_classifier",
    "KernelLogisticClassifier": "labelweave.estimators.kernel_logistic",
    "LabelGraphClassifier": "labelweave.estimators.label_graph",
    "LabelTreeClassifier": "labelweave.estimators.label_tree",
    "LowRankClassifier": "labelweave.estimators.low_rank",
    "MaxMarginClassifier": "labelweave.estimators.max_margin",
    "RankSearch": "labelweave.estimators.low_rank",
    "TableModel": "labelweave.estimators.table_model",
    "UnobservedLabelWarning": "labelweave.estimators.targets",
    "ZeroShotClassifier": "labelweave.estimators.zero_shot",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
