"""scikit-learn's own checks of the low-rank classifiers that choose something on folds."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from labelweave import LowRankClassifier, LowRankClassifierCV

# with rows repeated or left out the folds are others
OTHER_FOLDS = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "chooses in other folds",
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        LowRankClassifier(penalty="ridge", kernel="rbf", hyperparameters="learn", max_learning_iter=2),
        LowRankClassifierCV(ranks=[1.0, 0.5], regularizations=2, cv=2),
    ],
)
def test_scikit_learn_checks(estimator, check):
    name = check.func.__name__
    if name in OTHER_FOLDS:
        pytest.skip(OTHER_FOLDS[name])
    check(estimator)
