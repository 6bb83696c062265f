"""scikit-learn's own checks of the baselines."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from labelweave.baselines import CPLST, PLST, WSABIE, BinaryRelevance

SAMPLE_WEIGHT = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
DRAWS = dict.fromkeys(SAMPLE_WEIGHT, "draws visits at random, and repeated rows are other visits")
LEVEL = {"check_class_weight_classifiers": "its threshold is the best for all rows, whatever their weights"}
ORIGIN = {"check_class_weight_classifiers": "scores that are 0 at the origin cannot be lowered for all rows"}


def _expected_to_fail(estimator):
    if isinstance(estimator, WSABIE):
        return DRAWS | (LEVEL if estimator.schedule == "constant" else {})
    return ORIGIN if isinstance(estimator, PLST) and not estimator.center else {}


@parametrize_with_checks(
    [
        PLST(regularization=1.0, center=False),
        CPLST(rank=2, regularization=1.0),
        WSABIE(rank=5, n_epochs=30),
        WSABIE(rank=3, n_epochs=30, schedule="constant", fit_intercept=False),
        BinaryRelevance("logistic"),
        BinaryRelevance("squared_hinge"),
    ],
    expected_failed_checks=_expected_to_fail,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
