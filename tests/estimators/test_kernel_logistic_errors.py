"""Input that KernelLogisticClassifier refuses, with its messages; and warnings."""

import re
import warnings

import numpy as np
import pytest
from attacks.small_fits import grouped
from sklearn.model_selection import KFold

import labelweave as lw

TREE = {"x": ["a", "b"], "y": ["c"]}
X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.array(list("abc") * 4)
UNKNOWN = [None] * 3 + Y[3:].tolist()
LABELS = (Y[:, None] == np.array(list("abc"))).astype(float)


def with_entry(table, place, value):
    table = np.array(table, dtype=object if isinstance(value, str) else None)
    table[place] = value
    return table


REFUSED = {
    "fixed widths": ({"kernel": "ard", "hyperparameters": "fixed"}, (X, Y), "kernel='ard' is learned, but"),
    "two structures": (
        {"taxonomy": TREE, "label_covariance": np.eye(3)},
        (X, Y),
        "taxonomy and label_covariance are given, but labels have one structure",
    ),
    "a tree and a learned covariance": (
        {"taxonomy": TREE, "label_covariance": 2},
        (X, Y),
        "taxonomy and label_covariance are given",
    ),
    "level without a tree": ({"tie": "level"}, (X, Y), "tie='level' needs a taxonomy"),
    "half a level without a tree": ({"tie": ("shared", "subtree")}, (X, Y), "'subtree') needs a taxonomy"),
    "a tie with learned weights": (
        {"tie": "class", "label_covariance": lw.LabelCovariance.weighted([np.eye(3)])},
        (X, Y),
        "tie='class' is invalid with a label_covariance of learned weights",
    ),
    "groups of other classes": ({"tie": [0, 1]}, (X, Y), "tie has 2 groups, but there are 3 functions"),
    "a class without a group": ({"tie": {"a": 0, "b": 1}}, (X, Y), "tie has no group for 'c'"),
    "no kernel": ({"kernel": []}, (X, Y), "give one kernel or more"),
    "fewer covariances than kernels": (
        {"kernel": ["rbf", "linear"], "label_covariance": [2]},
        (X, Y),
        "kernel is a list of 2, and label_covariance one of 1",
    ),
    "covariances of one kernel": (
        {"label_covariance": [2, None]},
        (X, Y),
        "A label covariance has shape (2,)",
    ),
    "a list that learns": (
        {"kernel": ["rbf", "linear"], "label_covariance": [2, None], "hyperparameters": "fixed"},
        (X, Y),
        "is learned, but hyperparameters='fixed'",
    ),
    "a pair of nonsense": (
        {"tie": ("shared", "nonsense")},
        (X, Y),
        "tie=('shared', 'nonsense') is invalid; use one of",
    ),
    "three ties": ({"tie": ["shared"] * 3}, (X, Y), "use one of 'shared', 'scale'"),
    "scale in a pair": ({"tie": ("scale", "class")}, (X, Y), "or a pair of 'shared', 'class'"),
    "too many factors": ({"label_covariance": 4}, (X, Y), "label_covariance is 4, but there are 3 labels"),
    "a fixed coupling": (
        {"label_covariance": 2, "hyperparameters": "fixed"},
        (X, Y),
        "label_covariance=2 is learned, but hyperparameters='fixed'",
    ),
    "a decision without a tree": (
        {"decision": "best_parent"},
        (X, Y),
        "decision='best_parent' needs a taxonomy",
    ),
    "a decision on many labels": (
        {"decision": "least_expected_loss", "taxonomy": TREE},
        (X, LABELS),
        "is for one class per row, but y has many labels per row",
    ),
    "no such node": (
        {"taxonomy": TREE},
        (X, with_entry(Y, 7, "d")),
        "y at row 7 is 'd', which is not a node",
    ),
    "labels that are no nodes": ({"taxonomy": TREE}, (X, LABELS), "'0'"),
    "a tree with a cycle": ({"taxonomy": [("a", "b"), ("b", "a")]}, (X, Y), "cycle"),
    "one leaf": ({"taxonomy": TREE}, (X, ["y", "c"] * 6), "y has one class only"),
    "no number": (
        {"taxonomy": TREE},
        (X, np.full(12, np.nan)),
        "y has 12 rows and no observed class",
    ),
    "mixed classes": ({}, (X, np.array([*"abcabcabcab", 3], dtype=object)), "y mixes entries of the types"),
    "numbers that are no classes": ({}, (X, X[:, 0]), "continuous"),
    "an infinite class": ({}, (X, np.where(Y == "a", np.inf, 1.0)), "infinity"),
    "a function that is no kernel": ({"kernel": lambda a, b: -a @ b.T}, (X, Y), "not positive semi-definite"),
    "folds of unknown rows": (
        {"hyperparameters": lw.HyperparameterSearch([(range(3, 12), range(3))])},
        (X, UNKNOWN),
        "among the 9 of 12 rows for learning",
    ),
    "no tree at all": ({"taxonomy": [("a", "b", "c")]}, (X, Y), "a"),
    "weights of unknown rows alone": (
        {"hyperparameters": "fixed"},
        (X, UNKNOWN, np.arange(12) < 3),
        "one row with an observed label needs a positive weight",
    ),
    "a scale that cannot start": (
        {"kernel": "linear", "scale": 1e60},
        (X[:4], [0, 1, 0, 1]),
        "did not converge at the initial hyperparameters; scale the features",
    ),
    "more blocks than there are rows": (
        {"learning_rows": 5, "learning_blocks": 3},
        (X, Y),
        "learning_rows=5 rows need 15 rows, but only 12",
    ),
    "more blocks than there are known rows": (
        {"learning_blocks": 5},
        (X, UNKNOWN),
        "blocks of at least 2 rows need 10 rows, but only 9 have known",
    ),
    "exact solves of tied classes": (
        {"taxonomy": TREE, "solver": "exact", "hyperparameters": "fixed"},
        (X, Y),
        "conjugate gradients",
    ),
    "entries of one class a row": (
        {"hyperparameters": "fixed"},
        (X, Y, None, np.ones((12, 3))),
        "entry_weight is for many labels per row",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case):
    parameters, given, words = REFUSED[case]
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        grouped(lw.KernelLogisticClassifier, **parameters).fit(*given)
    message = str(error.value)
    assert "\n" not in message or "sample" in message


def test_refuses_a_budget_that_is_too_small():
    small = pytest.raises(ValueError, match="memory_budget is 1e-06 MB, too small")
    with lw.config_context(memory_budget=1e-6), small:
        lw.KernelLogisticClassifier().fit(X, Y)


@pytest.mark.parametrize("taxonomy", [5, "a/b"])
def test_refuses_what_is_no_taxonomy(taxonomy):
    with pytest.raises(TypeError, match="The taxonomy is of type"):
        lw.KernelLogisticClassifier(taxonomy=taxonomy).fit(X, Y)


def test_a_rank_beyond_the_rows_is_all_rows():
    model = lw.KernelLogisticClassifier(kernel_rank=50, hyperparameters="fixed").fit(X, Y)
    assert len(model.support_) <= 12


def test_nothing_to_learn_on_is_no_error():
    tree = lw.Taxonomy.from_any(TREE)
    rows = ["x", "y"] * 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = lw.KernelLogisticClassifier(taxonomy=tree).fit(X, ["x"] * 11 + ["c"])
    assert model.learning_status_ == "fixed"
    model = grouped(lw.KernelLogisticClassifier, taxonomy=tree, cv=KFold(2)).fit(X, rows)
    assert model.learning_status_ != "stalled"


def test_a_covariance_of_unknown_names_is_by_position():
    covariance = lw.LabelCovariance.dense(np.eye(3) + 1, ["p", "q", "r"])
    model = lw.KernelLogisticClassifier(label_covariance=covariance, hyperparameters="fixed").fit(X, Y)
    assert model.classes_.tolist() == list("abc")
