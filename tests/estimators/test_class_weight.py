"""``class_weight`` equals explicit weights, and scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.class_weight import compute_sample_weight

import labelweave as lw
from labelweave.estimators.entry_weights import class_weight_of_state, class_weight_state, weights_by_class
from labelweave.labels.targets import read_targets
from labelweave.model_files import ModelFileError

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(90, 4))
SCORES = X[:, :3] + 0.7 * RANDOM.normal(size=(90, 3))
Y = (SCORES > [0.2, 1.0, -0.8]).astype(float)
CLASSES = np.array(["a", "b", "c"])[(SCORES + np.array([0.0, -0.8, 0.6])).argmax(axis=1)]


@pytest.mark.parametrize("class_weight", ["balanced", {"b": 4.0}], ids=["balanced", "dict"])
@pytest.mark.parametrize(
    "prior",
    [{"label_covariance": np.eye(2) + 0.5}, {"taxonomy": lw.Taxonomy.from_nested({"all": ["a", "b"]})}],
)
def test_two_classes_that_are_related_have_the_same_rule(class_weight, prior):
    pair = np.where(CLASSES == "c", "a", CLASSES).astype(object)
    by_hand = compute_sample_weight(class_weight, pair)
    model = lw.KernelLogisticClassifier(hyperparameters="fixed", tol=1e-7, **prior)
    model.fit(np.r_[X, X[:9]], np.r_[pair, [None] * 9], np.r_[by_hand, np.ones(9)])
    expected = model.decision_function(X)
    model.set_params(class_weight=class_weight).fit(np.r_[X, X[:9]], np.r_[pair, [None] * 9])
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-5)


def test_models_with_one_weight_a_row_refuse_weights_of_entries():
    model = lw.AutoLabelClassifier(members=["linear"], class_weight="balanced")
    with pytest.raises(ValueError, match="needs one class per row, but y has many labels"):
        model.fit(X, Y)
    with pytest.raises(ValueError, match="class_weight is 0 for every class"):
        model.set_params(class_weight={"a": 0.0, "b": 0.0, "c": 0.0}).fit(X, CLASSES)
    model.set_params(class_weight={"a": 0.0}).fit(X, CLASSES)
    assert np.isfinite(model.decision_function(X)).all()


def test_like_linear_svc():
    pair = (CLASSES == "b").astype(int)
    ours = lw.MaxMarginClassifier(C=0.5, class_weight="balanced", tol=1e-7).fit(X, pair)
    theirs = LinearSVC(
        C=1.0, loss="hinge", class_weight="balanced", tol=1e-8, max_iter=200_000, random_state=0
    )
    np.testing.assert_allclose(ours.decision_function(X), theirs.fit(X, pair).decision_function(X), atol=2e-3)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 0.3, 1: 2.0}], ids=["balanced", "dict"])
def test_like_logistic_regression(class_weight):
    pair = (CLASSES == "b").astype(int)
    theirs = LogisticRegression(
        C=2.0, solver="liblinear", intercept_scaling=1.0, class_weight=class_weight, tol=1e-10
    ).fit(X, pair)
    ours = lw.BinaryRelevance("log_loss", alpha=0.5, class_weight=class_weight, tol=1e-10).fit(X, pair)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    kernel = lw.KernelLogisticClassifier(
        "linear",
        scale=2.0,
        intercept_variance=2.0,
        hyperparameters="fixed",
        class_weight=class_weight,
        tol=1e-9,
    ).fit(X, pair)
    np.testing.assert_allclose(kernel.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


def test_labels_of_one_value_and_unobserved_rows_count_for_nothing():
    y = np.array([[1, np.nan], [1, 0], [np.nan, 1], [1, 0], [1, 0.0]])
    labels, form = read_targets(lw.LabelMatrix.from_any(y))
    weights, (positive, negative) = weights_by_class("balanced", labels, form, np.array([1.0, 1, 1, 1, 0]))
    assert weights.tolist() == [1, 1, 1, 1, 0]
    assert positive.tolist() == [1.0, 1.5]
    assert negative.tolist() == [1.0, 0.75]


def test_rows_known_in_part_have_the_mean_weight_of_what_they_may_be():
    tree = lw.Taxonomy.from_nested({"animal": ["cat", "dog"], "tree": ["elm", "oak"]})
    y = np.array(["cat", "dog", "elm", "oak", "animal", None], object)
    labels, form = read_targets(y, tree)
    given = {"cat": 1.0, "dog": 3.0, "elm": 5.0, "oak": 7.0}
    weights, _ = weights_by_class(given, labels, form, np.ones(6))
    assert weights.tolist() == [1, 3, 5, 7, 2, 4]
    model = lw.KernelLogisticClassifier(taxonomy=tree, hyperparameters="fixed", class_weight=given)
    by_hand = lw.KernelLogisticClassifier(taxonomy=tree, hyperparameters="fixed")
    found = model.fit(X[:6], y).predict_proba(X)
    np.testing.assert_allclose(found, by_hand.fit(X[:6], y, [1, 3, 5, 7, 2, 4]).predict_proba(X), atol=1e-6)


def test_partial_fit_counts_all_rows_seen():
    whole = lw.MaxMarginClassifier(class_weight="balanced", tol=1e-6).fit(X, Y)
    parts = lw.MaxMarginClassifier(class_weight="balanced", tol=1e-6)
    parts.partial_fit(X[:40], Y[:40]).partial_fit(X[40:], Y[40:])
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), atol=2e-3)


def test_sparse_labels_and_label_matrices():
    dense = lw.LowRankClassifier(rank=2, class_weight="balanced").fit(X, Y).decision_function(X)
    for y in (sp.csr_array(Y), lw.LabelMatrix.from_any(Y)):
        found = lw.LowRankClassifier(rank=2, class_weight="balanced").fit(X, y).decision_function(X)
        np.testing.assert_allclose(found, dense, atol=1e-12)


def test_a_fold_may_be_without_a_class():
    rows = CLASSES != "b"
    model = lw.MaxMarginClassifier(class_weight={"a": 1.0, "b": 2.0, "c": 3.0})
    assert model.fit(X[rows], CLASSES[rows]).classes_.tolist() == ["a", "c"]


@pytest.mark.parametrize(
    "state",
    [{"classes": [0]}, {"classes": [0], "weights": []}, {"classes": [[0]], "weights": [1.0]}, [{"a": 1}]],
)
def test_damaged_weights_are_refused(state):
    assert class_weight_of_state(class_weight_state([{0: 1.0}])) == [{0: 1.0}]
    with pytest.raises(ModelFileError, match="class_weight"):
        class_weight_of_state(state)
