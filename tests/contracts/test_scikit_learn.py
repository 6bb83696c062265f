"""scikit-learn's own checks of every public estimator, at its default parameters and at others."""

import pytest
from attacks.small_fits import grouped
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import labelweave as lw

WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
STOPS_EARLY = dict.fromkeys(WEIGHTS, "stops at a relative gap, the check compares seven digits")
SPLITS = dict.fromkeys(WEIGHTS, "repeated rows are in another part")
FOLDS = dict.fromkeys(WEIGHTS, "repeated rows are in other folds")
# a tenth of mistakes with probability 0.95 needs 29 calibration rows, a quarter of 116; these have fewer,
# and run below at a level for which they are enough
_OF_FEW_ROWS = """
classifier_data_not_an_array classifier_multioutput classifiers_classes
classifiers_multilabel_output_format_decision_function classifiers_multilabel_output_format_predict
classifiers_multilabel_output_format_predict_proba classifiers_multilabel_representation_invariance
classifiers_one_label_sample_weights dict_unchanged dont_overwrite_parameters dtype_object
estimator_sparse_array estimator_sparse_matrix estimator_sparse_tag estimators_dtypes
estimators_fit_returns_self estimators_nan_inf estimators_overwrite_params estimators_pickle
f_contiguous_array_estimator fit2d_1feature fit2d_predict1d fit_check_is_fitted fit_idempotent
fit_score_takes_y methods_sample_order_invariance methods_subset_invariance n_features_in
n_features_in_after_fitting pipeline_consistency readonly_memmap_input sample_weights_list
sample_weights_not_an_array sample_weights_not_overwritten sample_weights_pandas_series
sample_weights_shape supervised_y_2d
"""
FEW_ROWS = dict.fromkeys(
    [f"check_{name}" for name in _OF_FEW_ROWS.split()],
    "has fewer than the 29 calibration rows that the level needs",
)
# scikit-learn compares the signs of all scores with one and the same threshold
OWN_THRESHOLDS = {"check_classifier_multioutput": "labels have thresholds of their own"}
SETS = {"check_classifier_not_supporting_multiclass": "of classes there are sets, which are no classes"}
EXPECTED_TO_FAIL = {
    "MaxMarginClassifier": STOPS_EARLY,
    "KernelLogisticClassifier": FOLDS,
    "LabelGraphClassifier": STOPS_EARLY,
    "LabelTreeClassifier": STOPS_EARLY,
    "AutoLabelClassifier": FOLDS,
    "TunedThresholdClassifier": OWN_THRESHOLDS,
    "ConformalLabelClassifier": FEW_ROWS | SETS | SPLITS,
    "ZeroShotClassifier": FOLDS,
}
# need columns or labels with names, while the checks pass arrays
TAKES_FRAMES = {"TableModel", "HierarchicalClassifier", "LabelTextClassifier"}
# forests in five folds, passes over rows far from the origin, five fits instead of one
SLOW = {
    "AutoLabelClassifier",
    "CalibratedLabelClassifier",
    "ConformalLabelClassifier",
    "LabelGraphClassifier",
}


def _public():
    """Make every public estimator; wrappers get a simple one."""
    homes = (lw, lw.estimators, lw.decisions)
    found = {name: getattr(home, name) for home in homes for name in home.__all__ if name[0].isupper()}
    kinds = [kind for _, kind in sorted(found.items()) if hasattr(kind, "fit")]
    kinds = [kind for kind in kinds if kind.__name__ not in TAKES_FRAMES]
    around = lw.decisions.base.DecisionClassifier
    return [kind(lw.BinaryRelevance()) if issubclass(kind, around) else kind() for kind in kinds]


def _checks(is_slow):
    chosen = [model for model in _public() if (type(model).__name__ in SLOW) == is_slow]
    return parametrize_with_checks(
        chosen, expected_failed_checks=lambda model: EXPECTED_TO_FAIL.get(type(model).__name__, {})
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@_checks(is_slow=False)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


OF_ONE_THRESHOLD = "labels have thresholds of their own, which may or may not agree with the check's one"


def _skip_where_luck_decides(estimator, check):
    if (
        isinstance(estimator, lw.AutoLabelClassifier)
        and check.func.__name__ == "check_classifier_multioutput"
    ):
        pytest.skip(OF_ONE_THRESHOLD)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@_checks(is_slow=True)
def test_scikit_learn_checks_that_take_minutes(estimator, check):
    _skip_where_luck_decides(estimator, check)
    check(estimator)


# kernel matrices of the training rows are checked, and some checks pass arrays that are none
NO_KERNEL_MATRIX = {
    "check_positive_only_tag_during_fit": "fits on a matrix that is not positive semi-definite",
    "check_estimators_dtypes": "fits on a matrix that is not positive semi-definite",
    "check_estimators_nan_inf": "predicts with a matrix of another width",
    "check_classifiers_one_label_sample_weights": "fits on a matrix that is not symmetric",
}
NO_SQUARE = {"check_decision_proba_consistency": "fits on a matrix that is not square"}
OWN_LEVEL = {"check_classifiers_train": "probabilities are not compared with 1/2 once thresholds are chosen"}
INACCURATE = {"check_classifiers_train": "sets that may miss half of the labels are not accurate"}
FIXED = {"hyperparameters": "fixed"}
OTHERS = [
    (lw.MaxMarginClassifier(kernel="rbf", gamma=0.1), STOPS_EARLY),
    (lw.MaxMarginClassifier(kernel="precomputed"), STOPS_EARLY | NO_KERNEL_MATRIX),
    (lw.KernelLogisticClassifier(**FIXED), STOPS_EARLY),
    (lw.KernelLogisticClassifier(kernel="precomputed", **FIXED), STOPS_EARLY | NO_KERNEL_MATRIX | NO_SQUARE),
    (lw.LowRankClassifier(tol=1e-14, max_iter=3000), {}),
    (lw.LowRankClassifier(penalty="ridge"), {}),
    (lw.LowRankClassifier(loss="log_loss", tol=1e-14, max_iter=3000), {}),
    (lw.LowRankClassifier(kernel="rbf", gamma=0.1, tol=1e-14, max_iter=3000), {}),
    (lw.LowRankClassifier(kernel="precomputed"), NO_KERNEL_MATRIX),
    (lw.LabelGraphClassifier(alpha=0.02, tol=0.01, max_iter=200), STOPS_EARLY),
    (lw.LabelGraphClassifier("full", alpha=0.02, tol=0.01, max_iter=200), STOPS_EARLY),
    (lw.BinaryRelevance("log_loss"), {}),
    (lw.BinaryRelevance("squared_hinge"), {}),
    (lw.AutoLabelClassifier(members=["rbf"], time_budget=1e-3), FOLDS),
    (lw.AutoLabelClassifier(members=["forest"], time_budget=1e-3), FOLDS),
    (lw.TunedThresholdClassifier(LogisticRegression()), OWN_LEVEL),
    (lw.TunedThresholdClassifier(lw.BinaryRelevance(), "macro_f1", scope="global", cv=2), {}),
    (lw.CalibratedLabelClassifier(lw.BinaryRelevance(), "sigmoid"), {}),
    (lw.CalibratedLabelClassifier(LogisticRegression()), {}),
    (
        lw.ConformalLabelClassifier(
            LogisticRegression(), level=0.5, guarantee="expectation", validation_fraction=0.5
        ),
        INACCURATE | SETS | SPLITS,
    ),
]
# with repeated or omitted rows the folds differ, which may or may not matter
LEARNING = [
    grouped(lw.LowRankClassifier, penalty="ridge", kernel="rbf", max_learning_iter=2),
    lw.LowRankClassifier(lw.RankSearch([1.0, 0.5], 2, cv=2)),
]
EXACT = [
    lw.MaxMarginClassifier(tol=1e-15, max_iter=3000),
    lw.MaxMarginClassifier(kernel="rbf", gamma=0.1, tol=1e-15, max_iter=3000),
    lw.KernelLogisticClassifier(**FIXED, gamma=0.1, tol=1e-15),
]


# some checks draw features around 100, which no coordinate method solves in 1000 rounds; the
# model warns of it, and the checks are about other things
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [model for model, _ in OTHERS],
    expected_failed_checks=lambda given: next(reasons for model, reasons in OTHERS if model is given),
)
def test_scikit_learn_checks_at_other_parameters(estimator, check):
    _skip_where_luck_decides(estimator, check)
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(LEARNING + EXACT)
def test_scikit_learn_checks_of_folds_and_of_exact_fits(estimator, check):
    is_exact = any(estimator is model for model in EXACT)
    if (check.func.__name__ in WEIGHTS) != is_exact:
        pytest.skip("chooses in other folds, or runs with the default tolerance")
    check(estimator)
