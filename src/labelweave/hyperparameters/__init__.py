"""Learning the parameters of kernels and label covariances from the cross-validation likelihood."""

from labelweave.hyperparameters.cross_validation import (
    CrossValidationLikelihood,
    Evaluation,
    FoldedData,
    InnerSettings,
    MeanCriterion,
)
from labelweave.hyperparameters.priors import (
    FeatureWidths,
    GivenCovariance,
    LearnedCoupling,
    LearnedIntercepts,
    NodeGroups,
    PriorFamily,
    PriorGradient,
    TermGradient,
    TiedPriors,
)
from labelweave.hyperparameters.ridge_cross_validation import FoldedRidge, RidgeCrossValidation, RidgePriors
from labelweave.hyperparameters.search import (
    EvaluationLog,
    LearnedParameters,
    SearchRecord,
    SearchSettings,
    SearchState,
    StagedSearch,
    learn,
)

__all__ = [
    "CrossValidationLikelihood",
    "Evaluation",
    "EvaluationLog",
    "FeatureWidths",
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
    "PriorGradient",
    "RidgeCrossValidation",
    "RidgePriors",
    "SearchRecord",
    "SearchSettings",
    "SearchState",
    "StagedSearch",
    "TermGradient",
    "TiedPriors",
    "learn",
]
