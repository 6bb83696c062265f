"""Prior covariances between labels, as operators.

A label covariance is the positive semi-definite matrix R of the M3L penalty ``1/2 sum_lk (R^-1)_lk z_l .
z_k`` (Hariharan et al. 2012, equation 10): a high ``R_lk`` makes the scores of labels l and k alike.  The
models use only products, diagonals and small blocks, so a structured R is never made dense.
"""

from labelweave.labels.covariance.base import IdentityCovariance as IdentityCovariance
from labelweave.labels.covariance.base import LabelCovariance as LabelCovariance
from labelweave.labels.covariance.kinds import DenseCovariance as DenseCovariance
from labelweave.labels.covariance.kinds import FactorCovariance as FactorCovariance
from labelweave.labels.covariance.kinds import WeightedCovariance as WeightedCovariance
