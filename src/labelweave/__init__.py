"""Classification with related labels: models that carry certificates."""

from labelweave import datasets, metrics
from labelweave.estimators import MaxMarginClassifier
from labelweave.labels import LabelCovariance, LabelMatrix, Taxonomy
from labelweave.model_files import load_object as load

__version__ = "0.1.0"

__all__ = [
    "LabelCovariance",
    "LabelMatrix",
    "MaxMarginClassifier",
    "Taxonomy",
    "datasets",
    "load",
    "metrics",
]
