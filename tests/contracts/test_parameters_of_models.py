"""Parameters that no fit can have are refused with their names, and so are matrices that are no kernels."""

import numpy as np
import pytest
from attacks.small_fits import EVERY
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_param_validation

from labelweave import (
    KernelLogisticClassifier,
    LabelGraphClassifier,
    LowRankClassifier,
    MaxMarginClassifier,
    Taxonomy,
)
from small_models import data, kinds, model, takes

CLASSES = {type(made): made for made in EVERY.values()}
X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X > 0).astype(int)
GRAM = rbf_kernel(X)
OF_KERNELS = [MaxMarginClassifier, KernelLogisticClassifier, LowRankClassifier, LabelGraphClassifier]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_values_that_a_parameter_cannot_have_are_refused_by_its_name(kind, monkeypatch):
    """scikit-learn makes some: of other types, just outside of ranges, and words that are none of those."""
    allowed = kind._parameter_constraints
    names = CLASSES[kind].get_params(deep=False)
    own = {name: allowed[name] if name != "rank" else "no_validation" for name in names}  # a share or a count
    monkeypatch.setattr(kind, "_parameter_constraints", own)
    check_param_validation(kind.__name__, clone(CLASSES[kind]))


@pytest.mark.parametrize(
    ("made", "name", "said"),
    [
        (MaxMarginClassifier(hyperparameters="learn"), "hyperparameters__cv", "to a HyperparameterSearch"),
        (LowRankClassifier(), "rank__cv", "rank is 100, .* to a RankSearch"),
        (LabelGraphClassifier(), "graph__refit", "graph is 'learn', which has no 'refit'; set graph to"),
    ],
)
def test_a_group_of_parameters_has_to_be_there_before_its_parts(made, name, said):
    with pytest.raises(ValueError, match=f"{said}.* first"):
        made.set_params(**{name: 3})


OF_LABELS = {
    "label_covariance": [
        (np.eye(4), "over 4 labels but y has 5"),
        (-np.eye(5), "smallest eigenvalue is -1"),
        (np.diag([1.0, 0, 1, 1, 1]), "(?i)variance"),
        (Taxonomy([("root", "leaf")]), "'0' is not in the taxonomy"),
    ],
    "false_negative_cost": [
        ([1, 2], r"false_negative_cost has shape \(2,\); .* each of the 5 labels"),
        ([1, 2, -1, 1, 1], "is -1 at label 2; costs must be finite and >= 0"),
        ([1, 2, np.inf, 1, 1], "false_negative_cost is inf at label 2"),
        (["a", 2, 1, 1, 1], "false_negative_cost has a non-numeric entry"),
    ],
    "label_mean": [
        (np.zeros((5, 4)), "5 labels and 4 features, but there are 5 and 6"),
        (np.zeros((2, 6)), "2 labels and 6 features"),
        (np.zeros(6), r"label_factors has shape \(6,\)"),
        (np.full((5, 6), np.nan), "not finite"),
    ],
    "flip_rates": [
        ((0.6, 0.5), "add up to 1"),
        ((None, 0.1), "None"),
        ((0.1,), "pair"),
        (([0.1, 0.2], 0.0), "shape"),
        ((-0.1, 0.0), "-0.1"),
    ],
}


PLAIN = (
    "margins, coordinates",
    "margins, rbf",
    "logistic, fixed",
    "low rank",
    "graph, none",
    "tree of one node",
)


@kinds(lambda name: name in PLAIN)
def test_what_is_given_a_label_is_checked(name):
    X, Y = data(name)
    for parameter, cases in OF_LABELS.items():
        for value, said in cases if takes(parameter)(name) else ():
            with pytest.raises(ValueError, match=said) as error:
                model(name, **{parameter: value}).fit(X, Y)
            assert "\n" not in str(error.value)


def spoiled(**entries):
    K = GRAM.copy()
    for place, value in entries.items():
        K[tuple(int(k) for k in place[1:].split("_"))] = value
    return K


@pytest.mark.parametrize("kind", OF_KERNELS)
@pytest.mark.parametrize(
    ("K", "message"),
    [
        (spoiled(_3_7=0.9), r"not symmetric: entry \((3, 7|7, 3)\) is"),
        (spoiled(_3_7=np.nan), "NaN at row 3, column 7"),
        (spoiled(_3_7=np.inf), "infinity at row 3, column 7"),
        (-GRAM, "not positive semi-definite"),
        (GRAM[:, :5], r"(?s)\(60, 5\).*square"),
        (spoiled(_3_3=-1.0), "not positive semi-definite"),
    ],
)
def test_a_kernel_matrix_that_is_none_is_refused(K, message, kind):
    with pytest.raises(ValueError, match=message) as error:
        kind(kernel="precomputed").fit(K, Y)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", OF_KERNELS)
def test_a_kernel_matrix_of_other_rows_is_refused_in_predictions(kind):
    model = kind(kernel="precomputed").fit(GRAM, Y)
    with pytest.raises(ValueError, match="59"):
        model.predict(GRAM[:, :59])


@pytest.mark.parametrize("kind", OF_KERNELS)
def test_a_kernel_matrix_is_split_by_rows_and_columns_in_searches(kind):
    search = GridSearchCV(kind(kernel="precomputed"), {"max_iter": [50]}, cv=3, error_score="raise")
    assert search.fit(GRAM, Y).best_score_ > 0.1
