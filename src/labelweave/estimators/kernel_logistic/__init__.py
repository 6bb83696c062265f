"""Kernel logistic classification, with given or learned hyperparameters."""

from labelweave.estimators.kernel_logistic.classifier import KernelLogisticClassifier

__all__ = ["KernelLogisticClassifier"]
