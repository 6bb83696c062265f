"""Whatever a model was set to and fitted to, its file holds it, and threads change no bit of it."""

import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from attacks.small_fits import fitted, mark
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

import labelweave
from drawn import draw_classes, draw_labels
from labelweave import (
    CalibratedLabelClassifier,
    ConformalLabelClassifier,
    HierarchicalClassifier,
    KernelLogisticClassifier,
    LabelCovariance,
    LabelGraphClassifier,
    LabelMean,
    LowRankClassifier,
    MaxMarginClassifier,
    Taxonomy,
    TunedThresholdClassifier,
)
from labelweave.features import LinearKernel, RBFKernel

X, Y = draw_labels(40, 4, 4, above=0.5)
GAPS = np.where(np.random.default_rng(1).random(Y.shape) < 0.2, np.nan, Y)
ROWS, CLASSES = draw_classes(40)
NAMED = pd.DataFrame(Y, columns=list("abcd"))
TREE = Taxonomy.from_nested({"x": ["a", "b"], "y": ["c", "d"]})
GRAPH = Taxonomy([("x", "a"), ("x", "b"), ("y", "b"), ("y", "c"), ("y", "d")])  # b has two parents
PARTLY = np.where(np.arange(40) % 3 == 0, TREE.parents_of(CLASSES.tolist()), CLASSES)
UNKNOWN = np.where(CLASSES == "a", None, CLASSES.astype(object))
GRAM, GRAM_OF_CLASSES = rbf_kernel(X), rbf_kernel(ROWS)
SPARSE = sp.csr_array(ROWS * (ROWS > 0))
TIES = np.eye(4) + 1.0
MEAN = LabelMean(np.ones((4, 2)), np.arange(8.0).reshape(4, 2) / 10, np.ones(4))
COSTS = pd.Series([1.0, 5.0, 0.2, 1.0], list("dbca"))


def logistic(**parameters):
    return KernelLogisticClassifier(max_learning_iter=2, **parameters)


def margins(**parameters):
    return MaxMarginClassifier(kernel="rbf", **parameters)


def graph(*given, **parameters):
    return LabelGraphClassifier(*given, **{"regularization": 0.05, "max_rounds": 2, "tol": 0.05} | parameters)


CASES = {
    "classes": (logistic(), ROWS, CLASSES),
    "fixed": (logistic(hyperparameters="fixed"), ROWS, CLASSES),
    "a kernel a class": (logistic(tie="class"), ROWS, CLASSES),
    "intercepts": (logistic(intercept_variance="learn"), ROWS, CLASSES),
    "a pair of ties": (logistic(tie=("class", "shared")), ROWS, CLASSES),
    "levels": (logistic(taxonomy=TREE, tie="level", decision="least_expected_loss"), ROWS, CLASSES),
    "a nested tree": (logistic(taxonomy={"x": ["a", "b"], "y": ["c", "d"]}), ROWS, CLASSES),
    "inner nodes": (logistic(taxonomy=TREE, tie="subtree", decision="best_parent"), ROWS, PARTLY),
    "several parents": (logistic(taxonomy=GRAPH), X, NAMED),
    "a covariance of a tree": (
        logistic(label_covariance=LabelCovariance.from_taxonomy(TREE, list("abcd"))), ROWS, CLASSES,
    ),
    "a covariance": (logistic(label_covariance=TIES), ROWS, CLASSES),
    "a learned covariance": (logistic(coupling="full"), ROWS, CLASSES),
    "learned factors": (logistic(coupling=2), ROWS, CLASSES),
    "pivots": (logistic(kernel_rank=15), ROWS, CLASSES),
    "pivots and levels": (logistic(kernel_rank=15, taxonomy=TREE, tie="level"), ROWS, CLASSES),
    "a linear kernel": (logistic(kernel="linear"), ROWS, CLASSES),
    "a sum of kernels": (logistic(kernel=RBFKernel() + 0.5 * LinearKernel()), ROWS, CLASSES),
    "a kernel matrix": (logistic(kernel="precomputed"), GRAM_OF_CLASSES, CLASSES),
    "sparse rows": (logistic(), SPARSE, CLASSES),
    "two classes": (logistic(), ROWS, CLASSES < "c"),
    "two classes tied": (logistic(coupling=1), ROWS, CLASSES < "c"),
    "unknown classes": (logistic(), ROWS, UNKNOWN),
    "numbers and None": (logistic(), ROWS, [None, 1, 2, 3] * 10),
    "labels": (logistic(), X, Y),
    "a kernel a label": (logistic(tie="class"), X, Y),
    "labels coupled": (logistic(coupling=1), X, Y),
    "a frame": (logistic(), X, NAMED),
    "sparse labels": (logistic(), X, sp.csr_array(Y)),
    "random numbers": (logistic(random_state=np.random.RandomState(3)), ROWS, CLASSES),
    **{
        f"margins, {kernel}": (MaxMarginClassifier(kernel=kernel, label_covariance=TIES), rows, GAPS)
        for kernel in ("polynomial", "cosine", RBFKernel(0.2) + LinearKernel() * 0.5)
        for rows in (X, sp.csr_array(X))
    },
    "margins, matrix": (MaxMarginClassifier(kernel="precomputed"), GRAM, GAPS),
    "margins, sparse matrix": (MaxMarginClassifier(kernel="precomputed"), sp.csr_array(GRAM), GAPS),
    "margins, tree": (MaxMarginClassifier(label_covariance=TREE), X, NAMED),
    "margins, costs by name": (margins(false_negative_cost=COSTS, flip_rates=(0.1, 0.0)), X, NAMED),
    "margins, weights of classes": (margins(class_weight={"a": 2.0}), ROWS, CLASSES),
    "margins, weights of labels": (margins(class_weight=[{1: 2.0}, {}, {0: 1.0}, {}]), X, Y),
    "margins, balanced": (margins(class_weight="balanced"), X, Y),
    "low rank, tree": (LowRankClassifier(3, label_covariance=TREE), X, NAMED),
    **{
        f"low rank, {kernel}, {rank}, {precision}": (
            LowRankClassifier(3, kernel=kernel, kernel_rank=rank, precision=precision),
            GRAM if kernel == "precomputed" else X,
            GAPS,
        )
        for kernel in ("linear", "rbf", "precomputed")
        for rank in (None, 10)
        for precision in ("float64", "float32")
    },
    **{
        f"{type(made).__name__} around a mean": (made.set_params(label_mean=MEAN), X, Y)
        for made in (margins(label_covariance=TIES), logistic(), LowRankClassifier(3, kernel="rbf"))
    },
    **{
        f"linear {type(made).__name__} around a mean": (made.set_params(label_mean=MEAN), X, Y)
        for made in (MaxMarginClassifier(), logistic(kernel="linear"), LowRankClassifier(3))
    },
    "graph, part held out": (graph(validation_fraction=0.2, random_state=np.random.RandomState(0)), X, NAMED),
    "graph, names": (graph([("a", "b"), ("c", "d", "a")]), X, NAMED),
    "graph of networkx": (graph(networkx.Graph([("a", "b")]), false_positive_cost=[1, 2, 3, 4]), X, NAMED),
    "calibrated classes": (CalibratedLabelClassifier(MaxMarginClassifier()), ROWS, CLASSES),
    "calibrated in folds": (CalibratedLabelClassifier(MaxMarginClassifier(), cv=5), ROWS, CLASSES),
    "sets of classes": (ConformalLabelClassifier(MaxMarginClassifier(), level=0.4), ROWS, CLASSES),
    "a hierarchy inside": (
        TunedThresholdClassifier(HierarchicalClassifier(LowRankClassifier(2), GRAPH.pairs()), cv=2),
        X, NAMED,
    ),
}  # fmt: skip


PLAIN = (bool, int, float, str, list, dict, type(None))
READ = ("taxonomy", "graph", "false_positive_cost", "cv")  # of which files hold what was read, or nothing


@pytest.mark.parametrize("case", CASES)
def test_files_and_threads(case, tmp_path):
    """A model read from its file, and one fitted by two threads, are the same to the last bit."""
    model, rows, y = CASES[case]
    whole = fitted(clone(model), rows, y)
    expected, predicted = mark(whole, rows), whole.predict(rows)
    whole.save(tmp_path / "model.lw")
    others = [labelweave.load(tmp_path / "model.lw")]
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, PLAIN) and name not in READ:
            assert others[0].get_params(deep=False)[name] == value
    if "n_jobs" in model.get_params():
        others.append(fitted(clone(model).set_params(n_jobs=2), rows, y))
    for other in others:
        assert mark(other, rows) == expected
        assert type(other.predict(rows)) is type(predicted)
        assert [type(c) for c in other.classes_.tolist()] == [type(c) for c in whole.classes_.tolist()]
    if not isinstance(model.get_params().get("random_state"), np.random.RandomState):
        assert mark(fitted(clone(others[0]), rows, y), rows) == expected
