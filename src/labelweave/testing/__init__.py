"""Building blocks of custom losses, and checks of custom losses, kernels, label covariances and solvers.

Subclass :class:`labelweave.kernels.Kernel` for a kernel, :class:`labelweave.LabelCovariance` for a
covariance, :class:`EntryLoss` for a loss, :class:`CliqueFeatures` for features of cliques of labels and
:class:`labelweave.solvers.Solver` for a solver.  Use the
checks in the tests of such classes, like scikit-learn's ``check_estimator`` for estimators.
"""

from labelweave.problems.losses import EntryLoss
from labelweave.problems.structured_margin import CliqueFeatures
from labelweave.testing.check_parts import check_kernel, check_solver
from labelweave.testing.checks import ContractError, check_covariance, check_loss

__all__ = [
    "CliqueFeatures", "ContractError", "EntryLoss", "check_covariance", "check_kernel", "check_loss",
    "check_solver",
]  # fmt: skip
