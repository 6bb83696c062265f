"""Classification with related labels: models that carry certificates."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelweave import baselines, datasets, display, inference, metrics
    from labelweave.estimators import (
        KernelLogisticClassifier,
        LowRankClassifier,
        LowRankClassifierCV,
        MaxMarginClassifier,
        ZeroShotClassifier,
        load,
    )
    from labelweave.features import kernels
    from labelweave.labels import LabelCovariance, LabelMatrix, Taxonomy

__version__ = "0.1.0"

__all__ = [
    "KernelLogisticClassifier",
    "LabelCovariance",
    "LabelMatrix",
    "LowRankClassifier",
    "LowRankClassifierCV",
    "MaxMarginClassifier",
    "Taxonomy",
    "ZeroShotClassifier",
    "baselines",
    "datasets",
    "display",
    "inference",
    "kernels",
    "load",
    "metrics",
]

# imported when first used: the command line's help needs none of them
_HOMES = {
    "KernelLogisticClassifier": "labelweave.estimators",
    "LabelCovariance": "labelweave.labels",
    "LabelMatrix": "labelweave.labels",
    "LowRankClassifier": "labelweave.estimators",
    "LowRankClassifierCV": "labelweave.estimators",
    "MaxMarginClassifier": "labelweave.estimators",
    "Taxonomy": "labelweave.labels",
    "ZeroShotClassifier": "labelweave.estimators",
    "load": "labelweave.baselines",
}
_MODULES = {
    "baselines": "labelweave.baselines",
    "datasets": "labelweave.datasets",
    "display": "labelweave.display",
    "inference": "labelweave.inference",
    "kernels": "labelweave.features.kernels",
    "metrics": "labelweave.metrics",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'labelweave' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
