"""Classification with related labels: models that carry certificates."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelweave import (
        dask,
        datasets,
        decisions,
        display,
        kernels,
        metrics,
        noise,
        postprocessing,
        report,
        splits,
    )
    from labelweave.app.active import suggest_queries
    from labelweave.decisions import (
        CalibratedLabelClassifier,
        ConformalLabelClassifier,
        HierarchicalClassifier,
        LabelTextClassifier,
        TunedThresholdClassifier,
    )
    from labelweave.decisions.automatic import AutoLabelClassifier
    from labelweave.decisions.comparison import compare
    from labelweave.decisions.stored_models import load
    from labelweave.estimators import (
        BinaryRelevance,
        GraphGrowth,
        HyperparameterSearch,
        KernelLogisticClassifier,
        LabelGraphClassifier,
        LabelTreeClassifier,
        LowRankClassifier,
        MaxMarginClassifier,
        RankSearch,
        TableModel,
        UnobservedLabelWarning,
        ZeroShotClassifier,
    )
    from labelweave.foundation.config import config_context, set_config
    from labelweave.labels import (
        ClassProbabilities,
        CliqueGraph,
        LabelCovariance,
        LabelMatrix,
        LabelMean,
        LabelText,
        Taxonomy,
        read_class_columns,
    )
    from labelweave.model_files.pipelines import save
    from labelweave.problems.losses import AsymmetricLoss

__version__ = "0.1.0"

__all__ = [
    "AsymmetricLoss",
    "AutoLabelClassifier",
    "BinaryRelevance",
    "CalibratedLabelClassifier",
    "ClassProbabilities",
    "CliqueGraph",
    "ConformalLabelClassifier",
    "GraphGrowth",
    "HierarchicalClassifier",
    "HyperparameterSearch",
    "KernelLogisticClassifier",
    "LabelCovariance",
    "LabelGraphClassifier",
    "LabelMatrix",
    "LabelMean",
    "LabelText",
    "LabelTextClassifier",
    "LabelTreeClassifier",
    "LowRankClassifier",
    "MaxMarginClassifier",
    "RankSearch",
    "TableModel",
    "Taxonomy",
    "TunedThresholdClassifier",
    "UnobservedLabelWarning",
    "ZeroShotClassifier",
    "compare",
    "config_context",
    "dask",
    "datasets",
    "decisions",
    "display",
    "kernels",
    "load",
    "metrics",
    "noise",
    "postprocessing",
    "read_class_columns",
    "report",
    "save",
    "set_config",
    "splits",
    "suggest_queries",
    "testing",
]

# imported when first used: the command line's help needs none of them
_PACKAGES = ("estimators", "labels", "decisions")  # each has what it names in its ``__all__``
_HOMES = {
    "AsymmetricLoss": "labelweave.problems.losses",
    "AutoLabelClassifier": "labelweave.decisions.automatic",
    "compare": "labelweave.decisions.comparison",
    "config_context": "labelweave.foundation.config",
    "load": "labelweave.decisions.stored_models",
    "suggest_queries": "labelweave.app.active",
    "save": "labelweave.model_files.pipelines",
    "set_config": "labelweave.foundation.config",
}
_MODULES = {
    "dask": "labelweave.dask",
    "datasets": "labelweave.datasets",
    "decisions": "labelweave.decisions",
    "display": "labelweave.app.display",
    "kernels": "labelweave.kernels",
    "metrics": "labelweave.metrics",
    "noise": "labelweave.app.noise",
    "postprocessing": "labelweave.postprocessing",
    "report": "labelweave.app.report",
    "splits": "labelweave.splits",
    "testing": "labelweave.testing",
}


_views = import_module("labelweave.foundation.views")
_views.register("picture", lambda: __getattr__("display").LabelCovarianceDisplay.from_covariance)
_views.register("facts", lambda: import_module("labelweave.app.facts").facts_html)
_views.register("answer", lambda: __getattr__("dask").answer)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in __all__:
        packages = (import_module(f"labelweave.{package}") for package in _PACKAGES)
        return next(getattr(package, name) for package in packages if name in package.__all__)
    raise AttributeError(f"module 'labelweave' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
