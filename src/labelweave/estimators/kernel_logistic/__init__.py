"""Kernel logistic classification, its hyper-parameters given or learned."""

from labelweave.estimators.kernel_logistic.classifier import KernelLogisticClassifier

__all__ = ["KernelLogisticClassifier"]
