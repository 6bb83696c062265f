"""The public estimators: thin classes that validate, state the problem, solve and keep the result.

Each is imported on first use, so that using one model does not wait for the others.
"""

from typing import TYPE_CHECKING

from labelweave.foundation.views import names_on_use

if TYPE_CHECKING:
    from labelweave.estimators.binary_relevance import BinaryRelevance as BinaryRelevance
    from labelweave.estimators.kernel_classifier import HyperparameterSearch as HyperparameterSearch
    from labelweave.estimators.kernel_logistic import KernelLogisticClassifier as KernelLogisticClassifier
    from labelweave.estimators.label_graph import GraphGrowth as GraphGrowth
    from labelweave.estimators.label_graph import LabelGraphClassifier as LabelGraphClassifier
    from labelweave.estimators.label_tree import LabelTreeClassifier as LabelTreeClassifier
    from labelweave.estimators.low_rank import LowRankClassifier as LowRankClassifier
    from labelweave.estimators.low_rank import RankSearch as RankSearch
    from labelweave.estimators.max_margin import MaxMarginClassifier as MaxMarginClassifier
    from labelweave.estimators.table_model import TableModel as TableModel
    from labelweave.estimators.zero_shot import ZeroShotClassifier as ZeroShotClassifier
    from labelweave.labels.targets import UnobservedLabelWarning as UnobservedLabelWarning

__getattr__, __dir__, __all__ = names_on_use(__name__)
