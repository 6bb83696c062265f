"""What users call: thin classes that check, state the problem, solve and keep the result."""

from labelweave.estimators.max_margin import MaxMarginClassifier
from labelweave.estimators.table_model import TableModel

__all__ = ["MaxMarginClassifier", "TableModel"]
