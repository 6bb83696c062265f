"""scikit-learn's own checks of an estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from labelweave import MaxMarginClassifier

# two fits that stop at a gap of 1e-3 differ by about its square root in the weights, the check
# compares seven digits; the second test below runs it with a tolerance that allows that
STOPS_AT_A_GAP = {
    "check_sample_weight_equivalence_on_dense_data": "stops at a relative duality gap of 1e-3",
    "check_sample_weight_equivalence_on_sparse_data": "stops at a relative duality gap of 1e-3",
}
# kernel matrices of the training rows are checked, and some checks give arrays that are none
NO_KERNEL_MATRIX = {
    "check_positive_only_tag_during_fit": "fits on a matrix that is not positive semi-definite",
    "check_estimators_dtypes": "fits on a matrix that is not positive semi-definite",
    "check_estimators_nan_inf": "predicts with a matrix of another width",
    "check_classifiers_one_label_sample_weights": "fits on a matrix that is not symmetric",
}


def _expected_to_fail(estimator):
    return STOPS_AT_A_GAP | (NO_KERNEL_MATRIX if estimator.kernel == "precomputed" else {})


# some checks draw features around 100, which no coordinate method solves in 1000 rounds; the
# model says so with this warning, and the checks are about other things
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        MaxMarginClassifier(),
        MaxMarginClassifier(kernel="rbf", gamma=0.1),
        MaxMarginClassifier(kernel="precomputed"),
    ],
    expected_failed_checks=_expected_to_fail,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        MaxMarginClassifier(tol=1e-15, max_iter=3000),
        MaxMarginClassifier(kernel="rbf", gamma=0.1, tol=1e-15, max_iter=3000),
    ]
)
def test_scikit_learn_checks_of_exact_fits(estimator, check):
    name = check.func.__name__
    if name not in STOPS_AT_A_GAP:
        pytest.skip("runs with the default tolerance")
    check(estimator)
