"""Losses, kernels, label covariances and solvers of your own: what a loss is made from, and checks of all.

A kernel is a subclass of :class:`labelweave.kernels.Kernel`, a covariance one of
:class:`labelweave.LabelCovariance`, a loss one of :class:`EntryLoss`, a solver one of
:class:`labelweave.solvers.Solver`.  The checks are for the tests of such
classes, as scikit-learn's ``check_estimator`` is for estimators.
"""

from labelweave.extending.check_parts import check_kernel, check_solver
from labelweave.extending.checks import ContractError, check_covariance, check_loss
from labelweave.problems.losses import EntryLoss

__all__ = ["ContractError", "EntryLoss", "check_covariance", "check_kernel", "check_loss", "check_solver"]
