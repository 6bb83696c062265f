"""Learning the parameters of kernels and label covariances from the cross-validation likelihood."""

from labelweave.hyperparameters.coupled_priors import GivenCovariance, LearnedCoupling
from labelweave.hyperparameters.cross_validation import (
    CrossValidationLikelihood,
    Evaluation,
    FoldedData,
    InnerSettings,
)
from labelweave.hyperparameters.learned_intercepts import LearnedIntercepts
from labelweave.hyperparameters.prior_family import PriorFamily, PriorSlopes, TermSlopes
from labelweave.hyperparameters.search import LearnedParameters, SearchRecord, SearchSettings, learn
from labelweave.hyperparameters.tied_priors import NodeGroups, TiedPriors

__all__ = [
    "CrossValidationLikelihood",
    "Evaluation",
    "FoldedData",
    "GivenCovariance",
    "InnerSettings",
    "LearnedCoupling",
    "LearnedIntercepts",
    "LearnedParameters",
    "NodeGroups",
    "PriorFamily",
    "PriorSlopes",
    "SearchRecord",
    "SearchSettings",
    "TermSlopes",
    "TiedPriors",
    "learn",
]
