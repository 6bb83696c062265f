"""scikit-learn's own checks of the wrappers."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from labelweave import (
    BinaryRelevance,
    CalibratedLabelClassifier,
    ConformalLabelClassifier,
    TunedThresholdClassifier,
)

OWN_LEVEL = {"check_classifiers_train": "probabilities are not compared with 1/2 once thresholds are chosen"}
SETS = {
    "check_classifiers_train": "sets that may miss half of the labels are not accurate",
    "check_classifier_not_supporting_multiclass": "of classes there are sets, which are no classes",
    "check_sample_weight_equivalence_on_dense_data": "repeated rows are in another part",
    "check_sample_weight_equivalence_on_sparse_data": "repeated rows are in another part",
}


def _expected_to_fail(estimator):
    if isinstance(estimator, ConformalLabelClassifier):
        return SETS
    own_level = isinstance(estimator, TunedThresholdClassifier) and hasattr(estimator, "predict_proba")
    return OWN_LEVEL if own_level else {}


@pytest.mark.slow  # the defaults are in tests/test_scikit_learn_defaults.py
@parametrize_with_checks(
    [
        TunedThresholdClassifier(LogisticRegression()),
        TunedThresholdClassifier(BinaryRelevance(), "macro_f1", scope="global", cv=2),
        CalibratedLabelClassifier(BinaryRelevance(), "sigmoid"),
        CalibratedLabelClassifier(LogisticRegression()),
        ConformalLabelClassifier(
            LogisticRegression(), level=0.5, guarantee="expectation", validation_fraction=0.5
        ),
    ],
    expected_failed_checks=_expected_to_fail,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
