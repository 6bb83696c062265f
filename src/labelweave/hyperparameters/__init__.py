"""Learning the parameters of kernels and label covariances from the cross-validation likelihood."""

from labelweave.hyperparameters.coupled_priors import GivenCovariance, LearnedCoupling
from labelweave.hyperparameters.cross_validation import CrossValidationLikelihood, Evaluation, FoldedData
from labelweave.hyperparameters.prior_family import PriorFamily, TermSlopes
from labelweave.hyperparameters.search import LearnedParameters, SearchRecord, learn
from labelweave.hyperparameters.tied_priors import NodeGroups, TiedPriors

__all__ = [
    "CrossValidationLikelihood",
    "Evaluation",
    "FoldedData",
    "GivenCovariance",
    "LearnedCoupling",
    "LearnedParameters",
    "NodeGroups",
    "PriorFamily",
    "SearchRecord",
    "TermSlopes",
    "TiedPriors",
    "learn",
]
