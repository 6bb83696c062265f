"""Classification with related labels: models that carry certificates."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelweave import datasets, display, inference, metrics
    from labelweave.estimators import (
        KernelLogisticClassifier,
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
    "MaxMarginClassifier",
    "Taxonomy",
    "ZeroShotClassifier",
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
    "MaxMarginClassifier": "labelweave.estimators",
    "Taxonomy": "labelweave.labels",
    "ZeroShotClassifier": "labelweave.estimators",
    "load": "labelweave.estimators",
}
_MODULES = {
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
