"""Learning the parameters of kernels and label covariances from the cross-validation likelihood."""

from labelweave.hyperparameters.coupled_priors import GivenCovariance, LearnedCoupling
from labelweave.hyperparameters.cross_validation import (
    CrossValidationLikelihood,
    Evaluation,
    FoldedData,
    InnerSettings,
)
from labelweave.hyperparameters.learned_intercepts import LearnedIntercepts
from labelweave.hyperparameters.mean_criterion import MeanCriterion
from labelweave.hyperparameters.prior_family import PriorFamily, PriorSlopes, TermSlopes
from labelweave.hyperparameters.ridge_cross_validation import FoldedRidge, RidgeCrossValidation
from labelweave.hyperparameters.ridge_priors import RidgePriors
from labelweave.hyperparameters.search import LearnedParameters, SearchRecord, SearchSettings, learn
from labelweave.hyperparameters.tied_priors import NodeGroups, TiedPriors

__all__ = [
    "CrossValidationLikelihood",
    "Evaluation",
    "FoldedData",
    "FoldedRidge",
    "GivenCovariance",
    "InnerSettings",
    "LearnedCoupling",
    "LearnedIntercepts",
    "LearnedParameters",
    "MeanCriterion",
    "NodeGroups",
    "PriorFamily",
    "PriorSlopes",
    "RidgeCrossValidation",
    "RidgePriors",
    "SearchRecord",
    "SearchSettings",
    "TermSlopes",
    "TiedPriors",
    "learn",
]
