"""Classification with related labels: models that carry certificates."""

from importlib import import_module
from typing import TYPE_CHECKING

from labelweave.foundation import views as _views
from labelweave.foundation.views import names_on_use

if TYPE_CHECKING:
    from labelweave import dask as dask
    from labelweave import datasets as datasets
    from labelweave import decisions as decisions
    from labelweave import display as display
    from labelweave import kernels as kernels
    from labelweave import metrics as metrics
    from labelweave import noise as noise
    from labelweave import postprocessing as postprocessing
    from labelweave import report as report
    from labelweave import splits as splits
    from labelweave import testing as testing
    from labelweave.app.active import suggest_queries as suggest_queries
    from labelweave.decisions import CalibratedLabelClassifier as CalibratedLabelClassifier
    from labelweave.decisions import ConformalLabelClassifier as ConformalLabelClassifier
    from labelweave.decisions import HierarchicalClassifier as HierarchicalClassifier
    from labelweave.decisions import LabelTextClassifier as LabelTextClassifier
    from labelweave.decisions import TunedThresholdClassifier as TunedThresholdClassifier
    from labelweave.decisions.automatic import AutoLabelClassifier as AutoLabelClassifier
    from labelweave.decisions.comparison import compare as compare
    from labelweave.decisions.stored_models import load as load
    from labelweave.estimators import BinaryRelevance as BinaryRelevance
    from labelweave.estimators import GraphGrowth as GraphGrowth
    from labelweave.estimators import HyperparameterSearch as HyperparameterSearch
    from labelweave.estimators import KernelLogisticClassifier as KernelLogisticClassifier
    from labelweave.estimators import LabelGraphClassifier as LabelGraphClassifier
    from labelweave.estimators import LabelTreeClassifier as LabelTreeClassifier
    from labelweave.estimators import LowRankClassifier as LowRankClassifier
    from labelweave.estimators import MaxMarginClassifier as MaxMarginClassifier
    from labelweave.estimators import RankSearch as RankSearch
    from labelweave.estimators import TableModel as TableModel
    from labelweave.estimators import UnobservedLabelWarning as UnobservedLabelWarning
    from labelweave.estimators import ZeroShotClassifier as ZeroShotClassifier
    from labelweave.foundation.config import config_context as config_context
    from labelweave.foundation.config import set_config as set_config
    from labelweave.labels import ClassProbabilities as ClassProbabilities
    from labelweave.labels import CliqueGraph as CliqueGraph
    from labelweave.labels import LabelCovariance as LabelCovariance
    from labelweave.labels import LabelMatrix as LabelMatrix
    from labelweave.labels import LabelMean as LabelMean
    from labelweave.labels import LabelText as LabelText
    from labelweave.labels import Taxonomy as Taxonomy
    from labelweave.labels import read_class_columns as read_class_columns
    from labelweave.model_files.pipelines import save as save

__version__ = "0.1.0"

# imported when first used: the command line's help needs none of them
__getattr__, __dir__, __all__ = names_on_use(__name__)

_views.register("picture", lambda: __getattr__("display").LabelCovarianceDisplay.from_covariance)
_views.register("facts", lambda: import_module("labelweave.app.facts").facts_html)
_views.register("answer", lambda: __getattr__("dask").answer)
