"""Building blocks of custom losses, and checks of custom losses, kernels, label covariances and solvers.

Subclass :class:`labelweave.kernels.Kernel` for a kernel, :class:`labelweave.LabelCovariance` for a
covariance, :class:`EntryLoss` for a loss, :class:`CliqueFeatures` for features of cliques of labels and
:class:`labelweave.solvers.Solver` for a solver.  Use the
checks in the tests of such classes, like scikit-learn's ``check_estimator`` for estimators.
"""

from typing import TYPE_CHECKING

from labelweave.foundation.views import names_on_use

if TYPE_CHECKING:
    from labelweave.problems.losses import EntryLoss as EntryLoss
    from labelweave.problems.structured_margin import CliqueFeatures as CliqueFeatures
    from labelweave.testing.check_parts import check_kernel as check_kernel
    from labelweave.testing.check_parts import check_solver as check_solver
    from labelweave.testing.checks import ContractError as ContractError
    from labelweave.testing.checks import check_covariance as check_covariance
    from labelweave.testing.checks import check_loss as check_loss

__getattr__, __dir__, __all__ = names_on_use(__name__)
