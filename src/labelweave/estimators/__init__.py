"""What users call: thin classes that check, state the problem, solve and keep the result."""

from labelweave.estimators.kernel_logistic import KernelLogisticClassifier
from labelweave.estimators.label_graph import LabelGraphClassifier
from labelweave.estimators.low_rank import LowRankClassifier, LowRankClassifierCV
from labelweave.estimators.max_margin import MaxMarginClassifier
from labelweave.estimators.table_model import TableModel
from labelweave.estimators.targets import UnobservedLabelWarning
from labelweave.estimators.zero_shot import ZeroShotClassifier

# here, because reading a model file needs the classes above to be registered
from labelweave.model_files import load_object as load

__all__ = [
    "KernelLogisticClassifier",
    "LabelGraphClassifier",
    "LowRankClassifier",
    "LowRankClassifierCV",
    "MaxMarginClassifier",
    "TableModel",
    "UnobservedLabelWarning",
    "ZeroShotClassifier",
    "load",
]
