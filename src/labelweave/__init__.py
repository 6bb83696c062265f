"""Classification with related labels: models that carry certificates."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelweave import datasets, metrics
    from labelweave.estimators import MaxMarginClassifier, ZeroShotClassifier, load
    from labelweave.labels import LabelCovariance, LabelMatrix, Taxonomy

__version__ = "0.1.0"

__all__ = [
    "LabelCovariance",
    "LabelMatrix",
    "MaxMarginClassifier",
    "Taxonomy",
    "ZeroShotClassifier",
    "datasets",
    "load",
    "metrics",
]

# imported when first used: the command line's help needs none of them
_HOMES = {
    "LabelCovariance": "labelweave.labels",
    "LabelMatrix": "labelweave.labels",
    "MaxMarginClassifier": "labelweave.estimators",
    "Taxonomy": "labelweave.labels",
    "ZeroShotClassifier": "labelweave.estimators",
    "load": "labelweave.estimators",
}


def __getattr__(name: str) -> Any:
    if name in ("datasets", "metrics"):
        return import_module(f"labelweave.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'labelweave' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
