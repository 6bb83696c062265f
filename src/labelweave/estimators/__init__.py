"""What users call: thin classes that check, state the problem, solve and keep the result."""

from labelweave.estimators.max_margin import MaxMarginClassifier

__all__ = ["MaxMarginClassifier"]
